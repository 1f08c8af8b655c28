//go:build linux

package fault

import (
	"errors"
	"io/fs"
	"os"
	"strings"
	"testing"

	"github.com/toolhost/toolhost/integration/host"
	"golang.org/x/sys/unix"
)

// freeze makes a mounted file system read-only, and thaw undoes that.
func freeze(t *testing.T, dir string) {
	t.Helper()
	if err := unix.Mount("", dir, "", unix.MS_REMOUNT|unix.MS_RDONLY, ""); err != nil {
		t.Skipf("making a file system read-only: %v", err)
	}
}

func thaw(t *testing.T, dir string) {
	t.Helper()
	if err := unix.Mount("", dir, "", unix.MS_REMOUNT, ""); err != nil {
		t.Fatal(err)
	}
}

// TestFaultFull lets every change meet a full disk, then a read-only one, then one with room again.
func TestFaultFull(t *testing.T) {
	g := newGround(t)
	host.Tmpfs(t, g.WS, "size=4m")
	all := victims()
	g.lay(all)
	s := g.start(host.StdioModern)
	for _, v := range all {
		s.MustCall("Read", host.Args{"file_path": v.name, "limit": 1})
	}
	unchanged := func() {
		t.Helper()
		for _, v := range all {
			if n, err := v.number(host.Get(t, g.Path(v.name))); err != nil || n != 0 {
				t.Errorf("%s holds number %d, %v", v.name, n, err)
			}
		}
		if left := host.Leftovers(t, g.WS); len(left) > 0 {
			t.Errorf("left behind: %q", left)
		}
	}
	filler := host.Fill(t, g.WS, 8<<10)
	for _, v := range all {
		if v.inPlace && v.tool == "Edit" {
			continue // its size stays: it has the room it needs
		}
		s.Refused(v.tool, v.change(g.Path(v.name), 1), "free some space")
	}
	s.Refused("Write", host.Args{"file_path": "new.txt", "content": bulk(1, 100_000)}, "free some space")
	s.Refused("Write", host.Args{"file_path": "deep/er/new.txt", "content": bulk(1, 100_000)}, "free some space")
	if _, err := os.Lstat(g.Path("deep")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the directories of a file that could not be made are left: %v", err)
	}
	unchanged()
	if err := os.Remove(filler); err != nil {
		t.Fatal(err)
	}
	freeze(t, g.WS)
	for _, v := range all {
		s.Refused(v.tool, v.change(g.Path(v.name), 1), "read-only file system", "mounted read-only")
	}
	s.Refused("Write", host.Args{"file_path": "new.txt", "content": "x"}, "read-only file system", "mounted read-only")
	s.Refused("Write", host.Args{"file_path": "a/b/new.txt", "content": "x"}, "read-only file system",
		"mounted read-only")
	if text, failed := s.Try("Bash", host.Args{"command": "echo hello; touch x"}); !failed ||
		!strings.Contains(text, "hello") {
		t.Errorf("a command on a read-only file system: %v, %s", failed, text)
	}
	unchanged()
	thaw(t, g.WS)
	for _, v := range all {
		s.MustCall(v.tool, v.change(g.Path(v.name), 1))
		if n, err := v.number(host.Get(t, g.Path(v.name))); err != nil || n != 1 {
			t.Errorf("with room again, %s holds number %d, %v", v.name, n, err)
		}
	}
	s.End()
	g.checkHistory(t, g.Path("renamed"))
	g.Tidy()
}

// TestFaultStateFull fills the disk of the state directory. Files are changed all the same where that is safe, and each result says
// what it cannot keep.
func TestFaultStateFull(t *testing.T) {
	g := newGround(t)
	if err := os.MkdirAll(g.State, 0o700); err != nil {
		t.Fatal(err)
	}
	host.Tmpfs(t, g.State, "size=1m")
	all := victims()
	g.lay(all)
	s := g.start(host.StdioModern)
	for _, v := range all {
		s.MustCall("Read", host.Args{"file_path": v.name, "limit": 1})
	}
	filler := host.Fill(t, g.State, 0)
	for _, v := range all {
		text, failed := s.Try(v.tool, v.change(g.Path(v.name), 1))
		n, err := v.number(host.Get(t, g.Path(v.name)))
		switch {
		case err != nil:
			t.Error(err)
		case failed && (n != 0 || !strings.Contains(text, "space")):
			t.Errorf("%s: refused, and it holds number %d: %s", v.name, n, text)
		case !failed && (n != 1 || !strings.Contains(text, "cannot be undone")):
			t.Errorf("%s: made, and it holds number %d: %.300s", v.name, n, text)
		case v.inPlace && !failed:
			t.Errorf("%s was written in place without a journal", v.name)
		}
	}
	text := s.MustCall("Bash", host.Args{"command": "seq 100000"})
	if !strings.Contains(text, "could not be kept") || !strings.Contains(text, "100000") {
		t.Errorf("a long result on a full disk: %s", text[max(0, len(text)-600):])
	}
	if err := os.Remove(filler); err != nil {
		t.Fatal(err)
	}
	if text := s.MustCall("Bash", host.Args{"command": "seq 50000"}); !strings.Contains(text, "results/") {
		t.Errorf("a long result with room again: %s", text[max(0, len(text)-600):])
	}
	s.End()
	g.Tidy()
}
