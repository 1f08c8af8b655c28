//go:build unix

package search

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
)

// TestSwappedDirectory swaps a directory for a link to a place outside while
// searches run: nothing of that place may be found.
func TestSwappedDirectory(t *testing.T) {
	outside := writeTree(t, map[string]string{"in/f.txt": "secret\n", "f.txt": "secret\n", "in/.gitignore": "secret"})
	root := writeTree(t, map[string]string{"sub/in/f.txt": "harmless\n", "sub/f.txt": "harmless\n"})
	sub, aside := filepath.Join(root, "sub"), filepath.Join(root, "aside")
	done := make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() {
		for {
			select {
			case <-done:
				return
			default:
			}
			_ = os.Rename(sub, aside)
			_ = os.Symlink(outside, sub)
			_ = os.Remove(sub)
			_ = os.Rename(aside, sub)
		}
	})
	es := newEngines(t, Config{})
	settle(t, es["keeping"], root)
	for range 500 {
		for name, e := range es {
			for _, path := range []string{root, sub} {
				q := GrepQuery{Scope: Scope{Base: root, Path: path}, Pattern: "secret", Mode: Content}
				if r, err := e.Grep(context.Background(), q); err == nil && r.Text != "" {
					t.Fatalf("%s: found outside of %s: %q", name, path, r.Text)
				}
			}
		}
	}
	close(done)
	wg.Wait()
}

// TestSpecialFiles: a FIFO without a writer must not hold the search up, in the
// tree or as the path.
func TestSpecialFiles(t *testing.T) {
	root := writeTree(t, map[string]string{"a.txt": "x\n"})
	for _, name := range []string{"fifo", ".gitignore", ".ignore"} {
		if err := syscall.Mkfifo(filepath.Join(root, name), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink(root, filepath.Join(root, "loop")); err != nil {
		t.Fatal(err)
	}
	e := quiet(Config{})
	if r := mustGrep(t, e, root, GrepQuery{Pattern: "x"}); r.Text != "a.txt\n" || r.Unreadable != 0 {
		t.Errorf("got %+v", r)
	}
	for _, path := range []string{filepath.Join(root, "fifo"), filepath.Join(root, "loop"), "/dev/zero"} {
		_, err := e.Grep(context.Background(), GrepQuery{Scope: Scope{Base: root, Path: path}, Pattern: "x"})
		if !errors.Is(err, ErrScope) {
			t.Errorf("%s: %v, want it refused", path, err)
		}
	}
}

func TestUnreadable(t *testing.T) {
	if os.Geteuid() == 0 {
		t.Skip("root may read everything")
	}
	root := writeTree(t, map[string]string{"a.txt": "x\n", "b.txt": "x\n", "d/c.txt": "x\n"})
	for _, name := range []string{"b.txt", "d"} {
		if err := os.Chmod(filepath.Join(root, name), 0); err != nil {
			t.Fatal(err)
		}
	}
	t.Cleanup(func() { _ = os.Chmod(filepath.Join(root, "d"), 0o700) })
	r := mustGrep(t, quiet(Config{}), root, GrepQuery{Pattern: "x"})
	if r.Text != "a.txt\n" || r.Unreadable != 2 ||
		!strings.Contains(strings.Join(r.Notes, "\n"), "b.txt: permission denied") {
		t.Errorf("got %+v", r)
	}
}

func TestNamesOfAnyBytes(t *testing.T) {
	root := writeTree(t, map[string]string{"new\nline.txt": "x\n"})
	if err := os.WriteFile(filepath.Join(root, "bad\xff.txt"), []byte("x\n"), 0o644); err != nil {
		t.Skip("the file system takes no such names")
	}
	r := mustGrep(t, quiet(Config{}), root, GrepQuery{Pattern: "x", Mode: Count})
	if r.Text != "bad\uFFFD.txt:1\nnew\uFFFDline.txt:1\n" {
		t.Errorf("got %q", r.Text)
	}
}
