package gateway

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/toolhost/toolhost/builtin"
)

// openProcess starts the process of a server and speaks over its pipes.
func (u *upstream) openProcess(ctx context.Context, e *Entry, s *session) error {
	command, err := lookPath(e.Command)
	if err != nil {
		return fmt.Errorf("its command %s was not found in PATH: install it, or name its file", e.Command)
	}
	files, ours, err := pipes()
	if err != nil {
		return err
	}
	defer closeAll(files)
	w := &processHosts{open: true}
	spec := builtin.ServerSpec{
		Key: fmt.Sprintf("\x00mcp\x00%s\x00%d", u.srv.Name, u.g.nextID.Add(1)), Argv: append([]string{command}, e.Args...), Dir: e.Cwd, Env: serverEnv(e), Files: files,
		Outside: !e.sandboxed(), Workspace: e.workspace(), Shown: shownFiles(command, e), Domains: e.domains(),
	}
	if hosts, env := registries(command, e); len(hosts) > 0 {
		spec.Domains, spec.Env = append(slices.Clone(spec.Domains), hosts...), append(spec.Env, env...)
		spec.Reaches = func(host string) bool {
			is := func(one string) bool { return one == host || strings.HasPrefix(one, host+":") }
			return w.isOpen() || !slices.ContainsFunc(hosts, is) || slices.ContainsFunc(e.domains(), is)
		}
	}
	if spec.Workspace && e.Cwd == "" && len(u.g.cfg.Roots) > 0 {
		spec.Dir = u.g.cfg.Roots[0]
	}
	p, err := u.g.cfg.Start(ctx, u.srv.Name, u.principal, spec)
	if err != nil {
		closeAll(ours)
		return err
	}
	s.w = &processWire{stdioWire: newStdioWire(p, ours[0], ours[1], readLast(ours[2]), s), hosts: w}
	return nil
}

// A processWire is a stdio wire whose process reaches more hosts until it has answered.
type processWire struct {
	*stdioWire
	hosts *processHosts
}

func (w *processWire) initialized() { w.hosts.close() }

// processHosts says whether a process may still reach the registries.
type processHosts struct {
	mu   sync.Mutex
	open bool
}

func (h *processHosts) isOpen() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.open
}

func (h *processHosts) close() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.open = false
}

// pipes returns descriptors 0, 1 and 2 of a process, and our ends of them.
func pipes() (theirs, ours []*os.File, err error) {
	for i := range 3 {
		r, w, err := os.Pipe()
		if err != nil {
			closeAll(theirs)
			closeAll(ours)
			return nil, nil, err
		}
		if i == 0 {
			theirs, ours = append(theirs, r), append(ours, w)
		} else {
			theirs, ours = append(theirs, w), append(ours, r)
		}
	}
	return theirs, ours, nil
}

func closeAll(files []*os.File) {
	for _, f := range files {
		f.Close()
	}
}

// serverEnv is the environment of a server: nothing of ours but where programs are and the language.
func serverEnv(e *Entry) []string {
	all := map[string]string{"PATH": os.Getenv("PATH"), "LANG": os.Getenv("LANG")}
	for name, value := range e.Env {
		all[name] = value
	}
	var env []string
	for name, value := range all {
		if value != "" || e.Env[name] != "" {
			env = append(env, name+"="+value)
		}
	}
	slices.Sort(env)
	return env
}

// interpreters are programs whose first argument that is no option is the program that they run.
var interpreters = strings.Fields("node nodejs bun deno tsx python python3 pypy3 ruby perl php sh bash")

// shownFiles are what a server needs to see of itself: its command, and the program that an interpreter is given, each with its package.
// Other files that arguments name are not among them.
func shownFiles(command string, e *Entry) (all []string) {
	programs := []string{command}
	if slices.Contains(interpreters, strings.TrimSuffix(filepath.Base(command), ".exe")) {
		if i := slices.IndexFunc(e.Args, func(arg string) bool { return !strings.HasPrefix(arg, "-") }); i >= 0 {
			programs = append(programs, e.Args[i])
		}
	}
	for _, name := range programs {
		if !filepath.IsAbs(name) {
			if e.Cwd == "" {
				continue
			}
			name = filepath.Join(e.Cwd, name)
		}
		info, err := os.Stat(name)
		if err != nil || !info.Mode().IsRegular() {
			continue
		}
		all = append(all, name)
		if real, err := filepath.EvalSymlinks(name); err == nil {
			all = append(all, packageOf(real))
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// packageOf is the directory of the package of a program: that of its dependencies where it is installed with others. A home directory, or
// one above it, is none.
func packageOf(file string) string {
	home, _ := os.UserHomeDir()
	if real, err := filepath.EvalSymlinks(home); err == nil { // as that of file is
		home = real
	}
	for dir := filepath.Dir(file); dir != filepath.Dir(dir) && dir != home; dir = filepath.Dir(dir) {
		if filepath.Base(dir) == "node_modules" || filepath.Base(dir) == "site-packages" {
			return dir
		}
	}
	for dir := filepath.Dir(file); dir != filepath.Dir(dir) && dir != home; dir = filepath.Dir(dir) {
		for _, mark := range []string{"package.json", "pyproject.toml", "go.mod", "Cargo.toml", "pyvenv.cfg"} {
			if _, err := os.Stat(filepath.Join(dir, mark)); err == nil {
				return dir
			}
		}
	}
	return file
}
