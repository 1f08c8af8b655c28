package packages

import (
	"context"
	"crypto/sha256"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/toolhost/toolhost/integration/host"
)

func TestMain(m *testing.M) { host.Main(m) }

// A manager is a package manager. REGISTRY, PACKAGE and HOME stand for the address of the registry, a package and the
// home directory.
type manager struct {
	name  string
	needs []string // programs
	// toolchain prints the directory of the programs, where a version manager starts them, which looks for them in
	// the home directory.
	toolchain string
	env       []string
	files     map[string]string // in the workspace
	add       string            // downloads and uses a package, whose name is the last line of the output
	offline   string            // uses one that was downloaded; "" if the manager asks its registry each time
}

// managers are all of them; the slow tests have more.
var managers = []manager{
	{
		name: "go", needs: []string{"go"}, env: []string{"GOPROXY=REGISTRY/go", "GOSUMDB=off", "GOTOOLCHAIN=local"},
		files:   map[string]string{"go.mod": "module x\n\ngo 1.24\n"},
		add:     "go get example.test/PACKAGE && go list -f '{{.Name}}' example.test/PACKAGE",
		offline: "GOPROXY=off go get example.test/PACKAGE@v1.0.0 && go list -f '{{.Name}}' example.test/PACKAGE",
	},
}

// A site is a workspace and a home directory, and what a manager needs.
type site struct {
	t        *testing.T
	manager  manager
	registry string
	ws, home string
	env      []string
}

// cached and fresh are the packages of the registry: one that a person has downloaded before, and one that is new.
const (
	cached = "cachedpackage"
	fresh  = "freshpackage"
)

func newSite(t *testing.T, m manager) *site {
	t.Helper()
	s := &site{t: t, manager: m, registry: startRegistry(t, cached, fresh), home: host.TempDir(t)}
	s.env = host.CleanEnv(s.home)
	for _, entry := range m.env {
		s.env = append(s.env, s.fill(entry, ""))
	}
	if m.toolchain != "" {
		s.env = append(s.env, "PATH="+toolchainPath(t, m.toolchain))
	}
	s.ws = s.workspace()
	return s
}

// pythonToolchain is the [manager].toolchain of Python.
const pythonToolchain = `python3 -c 'import os, sys; print(os.path.dirname(sys.executable))'`

// toolchainPath is PATH with what a command prints in front.
func toolchainPath(t *testing.T, command string) string {
	t.Helper()
	dir, err := exec.Command("sh", "-c", command).Output()
	if err != nil {
		t.Skipf("%s: %v", command, err)
	}
	return strings.TrimSpace(string(dir)) + ":" + os.Getenv("PATH")
}

func (s *site) fill(text, name string) string {
	return strings.NewReplacer("REGISTRY", s.registry, "PACKAGE", name, "HOME", s.home).Replace(text)
}

// workspace makes a workspace.
func (s *site) workspace() string {
	s.t.Helper()
	ws := filepath.Join(host.TempDir(s.t), "ws")
	host.Must(s.t, os.Mkdir(ws, 0o755))
	for name, text := range s.manager.files {
		host.MustWrite(s.t, filepath.Join(ws, name), s.fill(text, ""))
	}
	return ws
}

// download has a person download a package, in a workspace of their own.
func (s *site) download(name string) {
	s.t.Helper()
	cmd := exec.Command("bash", "-c", s.fill(s.manager.add, name))
	cmd.Dir, cmd.Env = s.workspace(), s.env
	if out, err := cmd.CombinedOutput(); err != nil {
		s.t.Fatalf("outside: %v\n%s", err, out)
	}
}

// start starts a host on a workspace.
func (s *site) start(as func(*exec.Cmd), ws, state string) *host.Session {
	s.t.Helper()
	settings := filepath.Join(host.TempDir(s.t), "settings.json")
	const text = `{"permissions":{"allow":["Bash"]},"sandbox":{"network":{"allowedDomains":[%q]}}}`
	host.MustWrite(s.t, settings, fmt.Sprintf(text, strings.TrimPrefix(s.registry, "http://")))
	ctx, cancel := context.WithTimeout(context.Background(), 4*host.Patience)
	s.t.Cleanup(cancel)
	flags := []string{"--root", ws, "--settings", settings, "--state-dir", state}
	h, err := host.StartHostAs(ctx, as, host.StdioModern, ws, s.env, flags...)
	host.Must(s.t, err)
	s.t.Cleanup(func() { _ = h.Cmd.Process.Kill() })
	return &host.Session{Host: h, T: s.t, Ctx: ctx}
}

// gets has a command get a package.
func (s *site) gets(in *host.Session, what, command, name string) {
	s.t.Helper()
	out, failed := in.Try("Bash", host.Args{"command": s.fill(command, name), "timeout": host.Patience.Milliseconds()})
	if failed || !strings.Contains(out, name) {
		s.t.Errorf("%s: %s", what, out)
	}
}

// files describes every file of the home directory but those of the host.
func (s *site) files() map[string]string {
	s.t.Helper()
	list := map[string]string{}
	err := filepath.WalkDir(s.home, func(path string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(s.home, path)
		if err != nil {
			return err
		}
		if rel == ".cache/toolhost" || rel == "state" || rel == "config" {
			return fs.SkipDir
		}
		info, err := e.Info()
		if err != nil || rel == "." || rel == ".cache" { // in which the host makes its own
			return err
		}
		line := fmt.Sprint(info.Mode(), info.ModTime())
		if e.Type().IsRegular() {
			text, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			line += fmt.Sprintf(" %x", sha256.Sum256(text))
		}
		list[rel] = line
		return nil
	})
	host.Must(s.t, err)
	return list
}

// unchanged fails the test if the home directory has changed.
func (s *site) unchanged(before map[string]string) {
	s.t.Helper()
	if diff := cmp.Diff(before, s.files()); diff != "" {
		s.t.Errorf("the home directory changed (-before +after):\n%s", host.Clip(diff, 2000))
	}
}

// each runs a test for the managers that are installed.
func each(t *testing.T, test func(*testing.T, *site)) {
	host.NeedsContained(t)
	for _, m := range managers {
		t.Run(m.name, func(t *testing.T) {
			for _, name := range m.needs {
				if _, err := exec.LookPath(name); err != nil {
					t.Skip(err)
				}
			}
			test(t, newSite(t, m))
		})
	}
}

func plain(*exec.Cmd) {}

// TestFreshHome: each manager works in a home directory without caches, of which nothing is left there.
func TestFreshHome(t *testing.T) {
	each(t, func(t *testing.T, s *site) {
		before := s.files()
		in := s.start(plain, s.ws, filepath.Join(s.home, "state"))
		s.gets(in, "first", s.manager.add, cached)
		s.gets(in, "second", s.manager.add, fresh)
		in.End()
		s.unchanged(before)
	})
}

// TestFullHome: commands use what a person has downloaded and add to it, of which the person's cache shows nothing.
// What they have added is there the next time, and in no other workspace.
func TestFullHome(t *testing.T) {
	each(t, func(t *testing.T, s *site) {
		s.download(cached)
		before := s.files()
		state := filepath.Join(s.home, "state")
		in := s.start(plain, s.ws, state)
		if s.manager.offline != "" {
			s.gets(in, "downloaded outside", s.manager.offline, cached)
		}
		s.gets(in, "new", s.manager.add, fresh)
		in.End()
		s.unchanged(before)
		if s.manager.offline == "" {
			return
		}
		in = s.start(plain, s.ws, state)
		s.gets(in, "downloaded by a command before", s.manager.offline, fresh)
		in.End()
		other := s.workspace()
		in = s.start(plain, other, state)
		if out, failed := in.Try("Bash", host.Args{"command": s.fill(s.manager.offline, fresh)}); !failed {
			t.Errorf("another workspace has it: %s", out)
		}
		in.End()
		s.unchanged(before)
	})
}

// withoutOverlays has a host find no directory for the layers of overlays.
func (s *site) withoutOverlays() (state string) {
	state = filepath.Join(s.home, "state")
	host.MustWrite(s.t, filepath.Join(state, "overlays"), "")
	host.Must(s.t, os.Chmod(state, 0o700))
	return state
}

// TestNoOverlay: without overlays, managers download to directories of the sandbox's own, and offline work goes on
// with the person's.
func TestNoOverlay(t *testing.T) {
	each(t, func(t *testing.T, s *site) {
		in := s.start(plain, s.ws, s.withoutOverlays())
		s.gets(in, "fresh", s.manager.add, fresh)
		in.End()
		if s.manager.offline == "" || s.manager.name == "npm" { // which downloads again
			return
		}
		s.download(cached)
		before := s.files()
		in = s.start(plain, s.workspace(), filepath.Join(s.home, "state"))
		s.gets(in, "full", s.manager.offline, cached)
		in.End()
		s.unchanged(before)
	})
}

// TestNoNamespaces: Landlock leaves commands no network. They work offline with what a person has downloaded.
func TestNoNamespaces(t *testing.T) {
	as := host.WithoutNamespaces(t)
	each(t, func(t *testing.T, s *site) {
		if s.manager.offline == "" || s.manager.name == "npm" {
			t.Skip("it cannot work offline without its cache")
		}
		s.download(cached)
		before := s.files()
		in := s.start(as, s.ws, filepath.Join(s.home, "state"))
		s.gets(in, "full", s.manager.offline, cached)
		in.End()
		s.unchanged(before)
	})
}

// TestReadOnlyHome: managers work where the home directory cannot be written at all.
func TestReadOnlyHome(t *testing.T) {
	unshare, err := exec.LookPath("unshare")
	if err != nil {
		t.Skip(err)
	}
	each(t, func(t *testing.T, s *site) {
		s.download(cached)
		const script = `mount --bind "$HOME" "$HOME" && mount -o remount,ro,bind "$HOME" && exec "$@"`
		if err := exec.Command(unshare, "--user", "--map-root-user", "--mount", "true").Run(); err != nil {
			t.Skip("making a user namespace: ", err)
		}
		as := func(cmd *exec.Cmd) {
			wrapper := []string{unshare, "--user", "--map-root-user", "--mount", "sh", "-c", script, "sh", host.Binary}
			cmd.Args = append(wrapper, cmd.Args[1:]...)
			cmd.Path = unshare
		}
		state := host.TempDir(t)
		host.Must(t, os.Chmod(state, 0o700))
		in := s.start(as, s.ws, state)
		if out := in.MustCall("Bash", host.Args{"command": "echo $TMPDIR"}); out != "/tmp\n" {
			t.Errorf("the sandbox has the temporary directory %s", out)
		}
		s.gets(in, "new", s.manager.add, fresh)
		if s.manager.offline != "" {
			s.gets(in, "downloaded outside", s.manager.offline, cached)
		}
		in.End()
	})
}
