package main

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/toolhost/toolhost/builtin"
	"github.com/toolhost/toolhost/cmd/toolhost/internal/clients"
	"github.com/toolhost/toolhost/guard/privatefile"
)

// A runClient is a client as toolhost run starts it.
type runClient struct {
	name    string
	env     clients.Env
	state   string          // where layers are kept
	client  *clients.Client // nil: it is not in the table
	needs   clients.Run
	roots   []string // real paths
	alone   bool     // it sees no sessions of the user or of other agents
	entries string   // the copy of needs.Entry; "" if there is none
}

func newRunClient(name, stateDir string) (*runClient, error) {
	env, err := clients.System()
	if err != nil {
		return nil, err
	}
	r := &runClient{name: name, env: env}
	if c, err := clients.Find(name); err == nil && c.Runs != nil && c.Program == name {
		r.client, r.name, r.needs = &c, c.Name, c.Runs.OnPlatform(env)
	}
	r.state = runState(stateDir, r.name)
	return r, nil
}

// runState returns the directory of a client's layers.
func runState(stateDir, name string) string {
	return filepath.Join(stateDir, "run", strings.Trim(name, "."))
}

// entryFile is the file in the directory of a cell with the entry of this host.
func (r *runClient) entryFile(dir string) string {
	return filepath.Join(dir, "mcp."+strings.TrimSuffix(r.client.Format, "c"))
}

// hosts are those of the client's models.
func (r *runClient) hosts() []string { return slices.Concat(r.needs.Hosts, r.needs.Addresses(r.env)) }

// files sets which files of the user the client uses, and which files of its own it gets.
func (r *runClient) files(spec *builtin.CellSpec, roots []string) error {
	r.roots = roots
	r.state = filepath.Join(r.state, workspaceKey(roots))
	spec.Layers = map[string]string{}
	if r.client == nil {
		spec.Ask = true
		return r.unknown(spec)
	}
	for i, dir := range r.needs.Layers {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return err
		}
		layer, err := r.layer(spec, dir, i)
		if err != nil {
			return err
		}
		if rel, err := filepath.Rel(dir, r.needs.Entry); err == nil && filepath.IsLocal(rel) && layer != dir {
			r.entries = filepath.Join(layer, rel)
		}
		for to, from := range r.needs.Copies {
			if rel, err := filepath.Rel(dir, to); err == nil && filepath.IsLocal(rel) {
				if err := copyNewer(from, filepath.Join(layer, rel)); err != nil {
					return err
				}
			}
		}
	}
	for _, path := range r.needs.Shared {
		if r.alone && !slices.Contains(r.needs.Logins, path) {
			if err := r.hide(spec, path); err != nil {
				return err
			}
			continue
		}
		if dir, isDir := strings.CutSuffix(path, "/"); isDir {
			if err := os.MkdirAll(dir, 0o700); err != nil {
				return err
			}
			path = dir
		}
		if r.env.Exists(path) {
			spec.Writable = append(spec.Writable, path)
		}
	}
	spec.Open = r.needs.Logins
	return nil
}

// hide hides a file or directory of the user from a client that shares the directory around it: the layer gets one of
// its own in that place.
func (r *runClient) hide(spec *builtin.CellSpec, path string) error {
	path, isDir := strings.CutSuffix(path, "/")
	for dir, layer := range spec.Layers {
		rel, err := filepath.Rel(dir, path)
		if err != nil || !filepath.IsLocal(rel) {
			continue
		}
		own := filepath.Join(layer, rel)
		if isDir { // an empty directory would not hide the user's
			own = filepath.Join(own, ".own")
		}
		if _, err := os.Lstat(own); err == nil {
			return nil
		}
		if err := privatefile.MakeDir(filepath.Dir(own)); err != nil {
			return err
		}
		return privatefile.ReplaceQuickly(own, []byte("\n"))
	}
	return nil
}

// workspaceKey names the layers of a workspace: what a client leaves there must not reach another workspace.
func workspaceKey(roots []string) string {
	sum := sha256.Sum256([]byte(strings.Join(roots, "\x00")))
	return hex.EncodeToString(sum[:8])
}

// forgetLayers removes the layers of a workspace in which no client runs any more.
func forgetLayers(stateDir string, roots []string) error {
	dirs, err := filepath.Glob(filepath.Join(stateDir, "run", "*", workspaceKey(roots)))
	for _, dir := range dirs {
		err = errors.Join(err, os.RemoveAll(dir))
	}
	return err
}

// layer puts a private directory in the place of one of the user, unless a root lies in it: a layer would hide that.
func (r *runClient) layer(spec *builtin.CellSpec, dir string, number int) (layer string, err error) {
	real, err := filepath.EvalSymlinks(dir)
	if err != nil {
		return "", err
	}
	if slices.ContainsFunc(r.roots, func(root string) bool { return isBelow(root, real) }) {
		return dir, nil
	}
	layer = filepath.Join(r.state, strconv.Itoa(number)+"-"+strings.Trim(filepath.Base(dir), "."))
	spec.Layers[real] = layer
	return layer, os.MkdirAll(layer, 0o700)
}

// commonLayers are the directories in which clients keep their configuration and files. They are created here,
// because a client cannot create them.
var commonLayers = clients.Run{Layers: []string{
	"$CONFIG", "${XDG_CACHE_HOME:-$HOME/.cache}", "${XDG_DATA_HOME:-$HOME/.local/share}", "${XDG_STATE_HOME:-$HOME/.local/state}",
}}

// unknown gives a client that is not in the table private directories in place of those for configuration and caches.
// They begin with copies of the files and directories that have the name of the client.
func (r *runClient) unknown(spec *builtin.CellSpec) error {
	for i, dir := range commonLayers.OnPlatform(r.env).Layers {
		if os.MkdirAll(dir, 0o700) != nil {
			continue // the client does not get it either
		}
		if _, err := r.layer(spec, dir, i); err != nil {
			return err
		}
		spec.Seed = append(spec.Seed, filepath.Join(dir, r.name))
	}
	own := filepath.Join(r.env.Home, "."+r.name)
	entries, err := os.ReadDir(own)
	if err != nil {
		return nil // there is no such file
	}
	for _, e := range entries {
		spec.Seed = append(spec.Seed, filepath.Join(own, e.Name()))
	}
	_, err = r.layer(spec, own, len(commonLayers.Layers))
	return err
}

// entry writes the entry of this host for the client, and returns the arguments that name it.
func (r *runClient) entry(spec *builtin.CellSpec, dir, socket string) (args []string, err error) {
	if r.client == nil {
		return nil, nil
	}
	self := ownProgram()
	text, err := r.client.Entry(r.env, clients.Server{Name: "toolhost", Command: self, Args: []string{"connect", socket}})
	if err != nil {
		return nil, err
	}
	file := r.entryFile(dir)
	if r.entries != "" {
		return nil, privatefile.ReplaceQuickly(r.entries, text)
	}
	args, env := r.needs.Filled(r.env, text, file, self, socket)
	spec.Env = append(slices.DeleteFunc(spec.Env, func(e string) bool {
		name, _, _ := strings.Cut(e, "=")
		return slices.ContainsFunc(env, func(own string) bool { return strings.HasPrefix(own, name+"=") })
	}), env...)
	return args, os.WriteFile(file, text, 0o600)
}

// copyNewer copies a file if it is newer than the copy. The copy replaces what a program may have put in its place. A
// missing file is not an error.
func copyNewer(from, to string) error {
	now, err := os.Stat(from)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	if was, err := os.Lstat(to); err == nil && !now.ModTime().After(was.ModTime()) {
		return nil
	}
	text, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	return privatefile.ReplaceQuickly(to, text)
}

// ownProgram is the path of this program, as a client in a cell starts it.
func ownProgram() string {
	self, err := clients.Self()
	if err != nil {
		self, _ = os.Executable() // without a path no program can be started
	}
	return self
}
