//go:build slow

package sandbox

import (
	"bufio"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// What connect(2) returns is the same inside and outside.
func TestConnectBehaves(t *testing.T) {
	slow(t)
	f := newFixture(t)
	run := python(t, f)
	argv := run("connect.py")
	cmd := exec.Command(argv[0], argv[1:]...)
	cmd.Dir = t.TempDir()
	want, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, want)
	}
	for backend, s := range available(t, f) {
		if backend == backendLandlock {
			continue // no sockets
		}
		r := runIn(t, s, f.tmp, f.env, argv...)
		if diff := cmp.Diff(string(want), r.output); diff != "" {
			t.Errorf("%s: (-outside +inside):\n%s", backend, diff)
		}
	}
}

// A thousand connections that wait hold up no other, and leave nothing behind when their
// callers are killed.
func TestManyConnections(t *testing.T) {
	if testing.Short() {
		t.Skip("slow")
	}
	f := newFixture(t)
	run := python(t, f)
	for backend, s := range available(t, f) {
		if backend == backendLandlock {
			continue
		}
		before := openFiles(t)
		out, w, err := os.Pipe()
		if err != nil {
			t.Fatal(err)
		}
		p, err := s.Spawn(Spec{Argv: run("many.py"), Dir: f.tmp, Env: f.env, Files: []*os.File{nil, w, w}})
		w.Close()
		if err != nil {
			t.Fatal(err)
		}
		lines := bufio.NewScanner(out)
		for lines.Scan() && lines.Text() != "waiting, and through" {
			t.Logf("%s: %s", backend, lines.Text())
		}
		if lines.Text() != "waiting, and through" {
			t.Errorf("%s: it ended", backend)
		}
		if _, err := p.Kill(); err != nil {
			t.Error(err)
		}
		out.Close()
		waitFor(t, "the end of the connections", func() bool { return openFiles(t) <= before })
	}
}

// The same attacks reach the server where there is no sandbox.
func TestHostSocketsAreReal(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	run := python(t, f)
	h := serveOutside(t, f.ws, 0, "stream:plain", "datagrams:datagrams")
	for name, want := range map[string]int{"plain": 18, "datagrams": 12} {
		argv := run("reach.py", f.ws+"/"+name)
		cmd := exec.Command(argv[0], argv[1:]...)
		cmd.Dir = f.ws
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		if got := strings.Count(string(out), breach); got < want {
			t.Errorf("%s: %d attacks succeed, want at least %d\n%s", name, got, want, out)
		}
	}
	waitFor(t, "the server", func() bool { return len(h.reached()) >= 20 })
}
