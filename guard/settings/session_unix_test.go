//go:build !windows

package settings

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// A pipe in a file's place must not hold up the start until somebody writes.
func TestPipeAtStart(t *testing.T) {
	p := newPlace(t)
	p.write(localFile, "{}")
	if err := syscall.Mkfifo(p.path(projectFile), 0o600); err != nil {
		t.Skip("no pipes here: ", err)
	}
	if err := errors.Join(Load(p.cfg).Broken...); err == nil || !strings.Contains(err.Error(), "not a regular file") {
		t.Errorf("got %v", err)
	}
}

// A file that becomes unreadable tightens nothing and loosens nothing.
func TestUnreadable(t *testing.T) {
	if os.Geteuid() == 0 {
		t.Skip("root reads everything: run as an ordinary user")
	}
	for _, name := range []string{userFile, projectFile, managedFile} {
		p := newPlace(t)
		p.cfg.TrustWorkspace = true
		p.write(name, rules("a", "x"))
		r := p.start()
		chmod := func(path string, mode os.FileMode) {
			t.Helper()
			if err := os.Chmod(path, mode); err != nil {
				t.Fatal(err)
			}
		}
		dir := p.path(name[:strings.LastIndex(name, "/")])
		for _, path := range []string{p.path(name), dir} {
			was := os.FileMode(0o600)
			if path == dir {
				was = 0o755
			}
			chmod(path, 0)
			s := r.next()
			if texts(s.Allow) != "a" || texts(s.Deny) != "x" || len(s.Broken) != 0 || !strings.Contains(warnings(s), "cannot be read") {
				t.Errorf("%s of mode 0: allow %s deny %s broken %v\n%s", path, texts(s.Allow), texts(s.Deny), s.Broken, warnings(s))
			}
			chmod(path, was)
			if s := r.next(); warnings(s) != "" {
				t.Errorf("%s readable again, yet %s", path, warnings(s))
			}
		}
		chmod(p.path(name), 0)
		if s := Load(p.cfg); len(s.Broken) != 1 {
			t.Errorf("%s unreadable at the start: broken %v", name, s.Broken)
		}
	}
}

// What every user can write is said, for the files that need no trust.
func TestWritableByAll(t *testing.T) {
	for name, want := range map[string]bool{userFile: true, managedFile: true, projectFile: false} {
		p := newPlace(t)
		p.write(name, "{}")
		if err := os.Chmod(p.path(name), 0o666); err != nil {
			t.Fatal(err)
		}
		if got := strings.Contains(warnings(Load(p.cfg)), "every user"); got != want {
			t.Errorf("%s: warned %v", name, got)
		}
	}
}

// A drop-in directory that cannot be listed may hide rules.
func TestDropInsUnlistable(t *testing.T) {
	if os.Geteuid() == 0 {
		t.Skip("root reads everything: run as an ordinary user")
	}
	p := newPlace(t)
	p.write(dropInA, rules("", "x"))
	dir := filepath.Dir(p.path(dropInA))
	chmod := func(mode os.FileMode) {
		if err := os.Chmod(dir, mode); err != nil {
			t.Fatal(err)
		}
	}
	chmod(0)
	r := p.start()
	if len(r.last.Broken) != 1 {
		t.Errorf("at the start: broken %v", r.last.Broken)
	}
	chmod(0o755)
	if s := r.next(); len(s.Broken) != 0 || texts(s.Deny) != "x" {
		t.Errorf("mended: broken %v, deny %s", s.Broken, texts(s.Deny))
	}
	chmod(0)
	if s := r.next(); len(s.Broken) != 0 || texts(s.Deny) != "x" || warnings(s) == "" {
		t.Errorf("while running: broken %v, deny %s", s.Broken, texts(s.Deny))
	}
	chmod(0o755)
}
