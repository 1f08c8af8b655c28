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
			if texts(s.Allow) != "a" || texts(s.Deny) != "x" || len(s.Broken) != 0 ||
				!strings.Contains(warnings(s), "cannot be read") {
				t.Errorf("%s of mode 0: allow %s deny %s broken %v\n%s", path, texts(s.Allow), texts(s.Deny), s.Broken,
					warnings(s))
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

// TestRunningTakesTighteningThroughRoots: a file of the user that is reached through a root tightens while the server runs, and
// loosens at the next start.
func TestRunningTakesTighteningThroughRoots(t *testing.T) {
	before, after := rules("a", "x"), rules("a,b", "y")
	for name, tt := range map[string]struct {
		set, change func(p *place)
		allow, deny string
	}{
		"the file is a link": {
			func(p *place) { p.write("work/dot/s.json", before); p.link("work/dot/s.json", userFile) },
			func(p *place) { p.write("work/dot/s.json", after) }, "a", "y,x",
		},
		"the directory is a link": {
			func(p *place) { p.write("work/dot/settings.json", before); p.link("work/dot", "home/.claude") },
			func(p *place) { p.write("work/dot/settings.json", after) }, "a", "y,x",
		},
		"a link in the root leads out of it": {
			func(p *place) {
				p.write("else/s.json", before)
				p.link("else", "work/dot")
				p.link("work/dot/s.json", userFile)
			},
			func(p *place) { p.write("else/s.json", after) }, "a", "y,x",
		},
		"a link in the root is replaced": {
			func(p *place) {
				p.write("work/a/settings.json", before)
				p.link("work/a", "work/dot")
				p.link("work/dot", "home/.claude")
			},
			func(p *place) {
				p.write("work/b/settings.json", after)
				p.remove("work/dot")
				p.link("work/b", "work/dot")
			}, "a", "y,x",
		},
		"the link comes with other content": {
			func(p *place) { p.write(userFile, before) },
			func(p *place) {
				p.write("work/dot/s.json", after)
				p.remove(userFile)
				p.link("work/dot/s.json", userFile)
			}, "a", "y,x",
		},
		"the link comes first": {
			func(*place) {},
			func(p *place) { p.write("work/dot/settings.json", after); p.link("work/dot", "home/.claude") }, "", "y",
		},
		"a drop-in of the administrator": {
			func(p *place) { p.write("work/dot/s.json", before); p.link("work/dot/s.json", dropInA) },
			func(p *place) { p.write("work/dot/s.json", after) }, "a", "y,x",
		},
		"a link that stays outside": {
			func(p *place) { p.write("else/s.json", before); p.link("else/s.json", userFile) },
			func(p *place) { p.write("else/s.json", after) }, "a,b", "y",
		},
	} {
		p := newPlace(t)
		tt.set(p)
		r := p.start()
		tt.change(p)
		s := r.next()
		if texts(s.Allow) != tt.allow || texts(s.Deny) != tt.deny || len(s.Broken) != 0 {
			t.Errorf("%s: allow %q, deny %q, broken %v", name, texts(s.Allow), texts(s.Deny), s.Broken)
		}
		if again := r.read(); again != nil {
			t.Errorf("%s: read again without a change", name)
		}
		if s := Load(p.cfg); !strings.HasPrefix(texts(s.Allow), "a,b") || !strings.HasPrefix(texts(s.Deny), "y") {
			t.Errorf("%s, at the next start: allow %q, deny %q", name, texts(s.Allow), texts(s.Deny))
		}
	}
}
