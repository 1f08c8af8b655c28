package gateway

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/toolhost/toolhost/builtin"
	"github.com/toolhost/toolhost/guard/hostprogram"
	"github.com/toolhost/toolhost/guard/privatefile"
)

// openProcess starts the process of a server and connects a wire to its pipes.
func (u *upstream) openProcess(ctx context.Context, e *Entry, s *session) error {
	command, err := e.program()
	if err != nil {
		return err
	}
	dir := e.workDir(u.g.cfg.Roots)
	if !e.sandboxed() {
		if err := u.g.cfg.MayRun(hostCommand(e, command, dir)); err != nil {
			return err
		}
	}
	files, ours, err := pipes()
	if err != nil {
		return err
	}
	defer closeAll(files)
	w := &processWire{}
	w.fetches.Store(true)
	spec := builtin.ServerSpec{
		Key:  fmt.Sprintf("\x00mcp\x00%s\x00%d", u.srv.Name, u.g.nextID.Add(1)),
		Argv: append([]string{command}, e.Args...), Dir: dir, Env: serverEnv(e), Files: files,
		Outside: !e.sandboxed(), Workspace: e.workspace(), Shown: shownFiles(command, e), Domains: e.domains(),
		Masks:   serverMasks(e),
		Refused: u.srv.refused.note, AllowHost: e.allowHost,
	}
	if hosts, env := registries(command, e); len(hosts) > 0 {
		spec.Domains, spec.Env = append(slices.Clone(spec.Domains), hosts...), append(spec.Env, env...)
		spec.Reaches = func(host string) bool {
			is := func(one string) bool { return one == host || strings.HasPrefix(one, host+":") }
			return w.fetches.Load() || !slices.ContainsFunc(hosts, is) || slices.ContainsFunc(e.domains(), is)
		}
	}
	p, err := u.g.cfg.Start(ctx, u.srv.Name, u.principal, spec)
	if err != nil {
		closeAll(ours)
		return err
	}
	w.stdioWire = newStdioWire(p, ours[0], ours[1], readLast(ours[2]), s)
	s.w = w
	return nil
}

// A processWire is a stdioWire.
type processWire struct {
	*stdioWire
	fetches atomic.Bool // its process may reach the package registries; false once it is initialized
}

// request sends a request. What the process changes until it has answered is not a person's.
func (w *processWire) request(ctx context.Context, method string, params json.RawMessage) (json.RawMessage, error) {
	leave, err := w.process.Enter()
	if err != nil {
		return nil, err
	}
	defer leave()
	return w.stdioWire.request(ctx, method, params)
}

func (w *processWire) initialized() {
	w.fetches.Store(false)
	w.stdioWire.initialized()
}

// pipes returns descriptors 0, 1 and 2 of a process, and the ends that the host keeps.
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

// serverEnv returns the environment of a server: PATH and LANG of the host, and the variables of the entry. Outside
// of the sandbox it is clean of places that commands write.
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
	if slices.Sort(env); !e.sandboxed() {
		return hostprogram.Clean(env)
	}
	return env
}

// interpreters are programs that run the file in their first argument that is not an option.
var interpreters = strings.Fields("node nodejs bun deno tsx python python3 pypy3 ruby perl php sh bash")

// shownFiles returns the files of the program of a server: its command and the file that an interpreter runs, each
// with its package. Files in other arguments are not included.
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

// packageOf returns the directory of the package of a program: node_modules or site-packages if it is in one, otherwise
// the nearest directory with a package file below the home directory, otherwise the file itself.
func packageOf(file string) string {
	home, _ := os.UserHomeDir()
	if real, err := filepath.EvalSymlinks(home); err == nil { // file has no symbolic links either
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

// A launcher describes programs that fetch packages and run them, such as npx.
type launcher struct {
	commands  []string
	hosts     []string // of the default registry
	variables []string // that set another registry; the first one that is set applies
}

var launchers = []launcher{
	{strings.Fields("npx bunx npm bun pnpm pnpx yarn"), []string{"registry.npmjs.org", "registry.yarnpkg.com"}, []string{"npm_config_registry", "NPM_CONFIG_REGISTRY"}},
	{strings.Fields("uvx uv pipx"), []string{"pypi.org", "files.pythonhosted.org"}, []string{"UV_DEFAULT_INDEX", "UV_INDEX_URL", "PIP_INDEX_URL"}},
}

// registries returns the registry hosts of a launcher, and the variable that sets the user's own registry. It ignores
// registries set by the entry of a project, and does not pass on credentials.
func registries(command string, e *Entry) (hosts, env []string) {
	name := strings.TrimSuffix(filepath.Base(command), ".exe")
	i := slices.IndexFunc(launchers, func(l launcher) bool { return slices.Contains(l.commands, name) })
	if i < 0 {
		return nil, nil
	}
	l := launchers[i]
	for _, variable := range l.variables {
		if given := e.Env[variable]; given != "" {
			if host := registryHost(given); host != "" && e.Trust != Project {
				return []string{host}, nil
			}
			return l.hosts, nil
		}
	}
	for _, variable := range l.variables {
		own := os.Getenv(variable)
		if variable == "npm_config_registry" {
			own = cmp.Or(own, npmrcRegistry())
		}
		if host := registryHost(own); host != "" {
			return []string{host}, []string{variable + "=" + own}
		}
	}
	return l.hosts, nil
}

// registryHost returns the host and port of a registry URL, or "" if the URL is invalid or has credentials.
func registryHost(address string) string {
	u, err := url.Parse(address)
	if err != nil || u.User != nil || u.Scheme != "http" && u.Scheme != "https" {
		return ""
	}
	return u.Host
}

// maxNpmrc limits the size of ~/.npmrc, in bytes.
const maxNpmrc = 64 << 10

// npmrcRegistry returns the registry in the user's ~/.npmrc.
func npmrcRegistry() string {
	home, err := os.UserHomeDir()
	if err != nil {
		return ""
	}
	text, err := privatefile.Read(filepath.Join(home, ".npmrc"), maxNpmrc)
	if err != nil {
		return ""
	}
	found := ""
	for lines := bufio.NewScanner(bytes.NewReader(text)); lines.Scan(); {
		if key, value, ok := strings.Cut(lines.Text(), "="); ok && strings.TrimSpace(key) == "registry" {
			found = strings.Trim(strings.TrimSpace(value), `"'`) // the last one applies
		}
	}
	return found
}
