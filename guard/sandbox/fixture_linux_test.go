package sandbox

import (
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/toolhost/toolhost/guard/sandbox/internal/place"
	"github.com/toolhost/toolhost/integration/testenv"
)

const (
	secret = "TOPSECRET" // what no command may ever print
	breach = "BREACH"    // what an attack prints when it succeeded otherwise
)

// fixture is a workspace with something to protect, in a directory that is the
// test's own.
type fixture struct {
	base string // everything lies in here
	ws   string // the workspace
	tmp  string // TMPDIR
	out  string // a directory that is not writable
	home string
	env  []string

	overlay bool // what commands change is dropped
}

// newFixture creates one. With -short only TestBenign has one.
func newFixture(t testing.TB) *fixture {
	t.Helper()
	testenv.NotShort(t, "starts a sandbox")
	return makeFixture(t)
}

// makeFixture creates one, where an ordinary user can reach it too.
func makeFixture(t testing.TB) *fixture {
	t.Helper()
	base, err := os.MkdirTemp("", "f") // t.TempDir is too long a name for sockets
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(base) })
	if err := os.Chmod(base, 0o755); err != nil {
		t.Fatal(err)
	}
	f := &fixture{
		base: base, ws: base + "/ws", tmp: base + "/tmp", out: base + "/out", home: base + "/home",
	}
	for path, text := range map[string]string{
		"ws/.env":                  secret + "-env",
		"ws/secrets/k":             secret + "-dir",
		"ws/secrets/deep/k":        secret + "-deep",
		"ws/conf/.env":             secret + "-conf",
		"ws/real/target":           secret + "-target",
		"ws/src/main.go":           "package main\n\nfunc main() {}\n",
		"ws/go.mod":                "module example.com/x\n\ngo 1.26\n",
		"ws/.claude/settings.json": "{}\n",
		"ws/.git/hooks/pre-commit": "#!/bin/sh\n",
		"ws/.git/config":           "[core]\n",
		"out/private":              secret + "-private",
		"out/public":               "public\n",
		"home/.ssh/id":             secret + "-ssh",
		"home/.profile":            "\n",
		"state/token":              secret + "-token",
		"state/results/own/1":      "my own result\n",
		"state/results/other/1":    secret + "-other",
		"tmp/x":                    "",
	} {
		path = filepath.Join(base, path)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for name, to := range map[string]string{"link": ".env", "envlink": "real/target"} {
		if err := os.Symlink(to, filepath.Join(f.ws, name)); err != nil {
			t.Fatal(err)
		}
	}
	for name, to := range map[string]string{"hard": ".env", "hard-dir": "secrets/k",
		"hard-settings": ".claude/settings.json"} {
		if err := os.Link(filepath.Join(f.ws, to), filepath.Join(f.ws, name)); err != nil {
			t.Fatal(err)
		}
	}
	f.env = []string{
		"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "HOME=" + f.home, "TMPDIR=" + f.tmp,
		"BASE=" + f.base, "WS=" + f.ws, "OUT=" + f.out, "STATE=" + f.base + "/state",
		"HOST=" + strconv.Itoa(os.Getpid()), "ATTACK=" + os.Args[0] + " " + attackArg, "LC_ALL=C", "GORACE=atexit_sleep_ms=0",
	}
	return f
}

func (f *fixture) policy() Policy {
	p := Policy{
		Writable: []string{f.ws, f.tmp},
		ReadOnly: []string{f.ws + "/.claude", f.ws + "/.git/hooks", f.ws + "/absent/.claude"},
		Denied: []string{f.ws + "/.env", f.ws + "/secrets", f.ws + "/conf/.env", f.ws + "/envlink", f.out + "/private",
			f.ws + "/missing"},
		Masked: []string{f.home + "/.ssh", f.base + "/state"},
		Shown:  []string{f.base + "/state/results/own"},
	}
	if f.overlay {
		p.Overlay, p.Temporary = 1<<30, []string{f.tmp}
	}
	return p
}

// serve starts what a command could talk to if its network were the host's, and
// adds to the environment how. Whoever connects reads that it got through.
func (f *fixture) serve(t testing.TB) {
	t.Helper()
	for name, l := range map[string]net.Listener{
		"TCP":      listen(t, "tcp", "127.0.0.1:0"),
		"SOCKET":   listen(t, "unix", f.base+"/out/daemon.sock"),
		"SOCKET2":  listen(t, "unix", f.ws+"/agent.sock"),
		"ABSTRACT": listen(t, "unix", "@"+f.base),
	} {
		f.env = append(f.env, name+"="+strings.TrimPrefix(l.Addr().String(), "@"))
		if tcp, ok := l.Addr().(*net.TCPAddr); ok {
			f.env = append(f.env, "PORT="+strconv.Itoa(tcp.Port))
		}
		go func() {
			for {
				c, err := l.Accept()
				if err != nil {
					return
				}
				c.Write([]byte(breach + "\n"))
				c.Close()
			}
		}()
	}
}

func listen(t testing.TB, network, address string) net.Listener {
	t.Helper()
	l, err := net.Listen(network, address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	return l
}

// snapshot describes every file of the fixture that no command may change: all of them in an overlay.
func (f *fixture) snapshot(t testing.TB) map[string]string {
	t.Helper()
	got := make(map[string]string)
	err := filepath.WalkDir(f.base, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, _ := filepath.Rel(f.base, path)
		var st unix.Stat_t
		if err := unix.Lstat(path, &st); err != nil {
			return err
		}
		guarded := f.overlay || !place.Within(path, f.tmp) && !place.Within(path, f.ws)
		for _, g := range []string{".env", "secrets", "conf/.env", "real/target", ".claude", ".git/hooks", "hard",
			"hard-settings"} {
			guarded = guarded || place.Within(path, filepath.Join(f.ws, g))
		}
		if !guarded {
			return nil
		}
		line := strconv.FormatUint(uint64(st.Mode), 8) + " " + strconv.FormatUint(st.Ino, 10)
		if d.Type().IsRegular() {
			text, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			line += " " + string(text)
		}
		if f.overlay {
			line += " " + strconv.FormatInt(st.Mtim.Nano(), 10)
		}
		got[rel] = line
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return got
}

// write puts a file there, and the directories above it.
func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}
