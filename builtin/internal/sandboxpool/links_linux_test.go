package sandboxpool

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/toolhost/toolhost/guard/sandbox"
	"github.com/toolhost/toolhost/integration/testenv"
)

// TestLinkAppears: a name that somebody gives a denied file while a command runs is out of that command's reach, wherever it
// is: in a directory made at the same moment, where nothing is watched, and for a file in a denied directory.
func TestLinkAppears(t *testing.T) {
	testenv.NeedsNotifications(t)
	for name, c := range map[string]struct{ deny, file, link string }{
		"in a new directory":           {"Read(*.key)", "sub/old.key", "n/e/w/name"},
		"in .git":                      {"Read(*.key)", "sub/old.key", ".git/objects/ab/name"},
		"in a new .git":                {"Read(*.key)", "sub/old.key", "clone/.git/refs/name"},
		"out of a denied directory":    {"Read(sub/**)", "sub/deep/a", "n/name"},
		"out of a directory by a rule": {"Read(sub)", "sub/deep/a", ".git/objects/name"},
		"in the root":                  {"Read(/sub/old.key)", "sub/old.key", "name"},
	} {
		t.Run(name, func(t *testing.T) {
			base, err := filepath.EvalSymlinks(t.TempDir())
			if err != nil {
				t.Fatal(err)
			}
			ws := filepath.Join(base, "ws")
			for _, dir := range []string{"sub/deep", ".git/objects/ab"} {
				if err := os.MkdirAll(filepath.Join(ws, dir), 0o755); err != nil {
					t.Fatal(err)
				}
			}
			put(t, filepath.Join(ws, "sub/old.key"), kept)
			put(t, filepath.Join(ws, "sub/deep/a"), kept)
			_, box := sandboxOf(t, base, "", c.deny)
			out, w, err := os.Pipe()
			if err != nil {
				t.Fatal(err)
			}
			defer out.Close()
			p, err := box.box.Spawn(sandbox.Spec{
				Argv: []string{"/bin/bash", "-c", "until [ -e go ]; do :; done; cat $(cat go)"}, Dir: ws,
				Env: []string{"PATH=/usr/bin:/bin"}, Files: []*os.File{nil, w, w},
			})
			w.Close()
			if err != nil {
				t.Fatal(err)
			}
			link := filepath.Join(ws, c.link)
			if err := os.MkdirAll(filepath.Dir(link), 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.Link(filepath.Join(ws, c.file), link); err != nil {
				t.Fatal(err)
			}
			await(t, "the cover", func() bool {
				box.mu.Lock()
				defer box.mu.Unlock()
				for _, file := range box.denied {
					if file.names == 2 {
						return true
					}
				}
				return false
			})
			put(t, filepath.Join(ws, "going"), c.link)
			if err := os.Rename(filepath.Join(ws, "going"), filepath.Join(ws, "go")); err != nil {
				t.Fatal(err)
			}
			text, err := io.ReadAll(out)
			if err != nil || !strings.Contains(string(text), "denied") {
				t.Errorf("the command read %q, %v", text, err)
			}
			if _, err := p.Kill(); err != nil {
				t.Error(err)
			}
		})
	}
}

// TestIsLinked: another name of a denied or masked file is known, but not one of a file that has left a masked path, and
// not one of a new file that got the number of a removed one.
func TestIsLinked(t *testing.T) {
	for name, c := range map[string]struct {
		masked bool
		change func(file string) error // before the file of the link is known
		want   bool
	}{
		"denied":                {false, func(string) error { return nil }, true},
		"denied, and replaced":  {false, func(file string) error { return os.Rename(file, file+".old") }, true},
		"masked":                {true, func(string) error { return nil }, true},
		"masked, and moved out": {true, func(file string) error { return os.Rename(file, file+".old") }, false},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			file, link := filepath.Join(dir, "file"), filepath.Join(dir, "link")
			put(t, file, kept)
			d := deniedFiles{}
			if d.count([]string{dir}); c.masked {
				d = deniedFiles{}
				d.countMasked([]string{dir})
			}
			if err := errors.Join(os.Link(file, link), c.change(file)); err != nil {
				t.Fatal(err)
			}
			at, err := lookAt(link)
			if err != nil {
				t.Fatal(err)
			}
			if got := d.isLinked(at); got != c.want {
				t.Errorf("isLinked = %t", got)
			}
			at.born++ // as of a new file with this number
			if d.isLinked(at) {
				t.Error("a new file with the number of a denied one counts as a name of it")
			}
		})
	}
}
