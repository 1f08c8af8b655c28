package search

import (
	"context"
	"os"
	"path/filepath"
	"testing"
)

// TestReuse: of a listing only the directories are made anew that lead to what has changed,
// and what is in the others is still told of.
func TestReuse(t *testing.T) {
	root := writeTree(t, map[string]string{
		".ignore": "*.log\n/z\n", "a/b/one.txt": "x\n", "a/c/two.txt": "x\n", "d/three.txt": "x\n", "d/e/four.log": "x\n", "z/five.txt": "x\n",
	})
	scope := Scope{Base: root, Path: root}
	e := New(Config{GlobalIgnore: os.DevNull})
	t.Cleanup(func() { closeEngine(t, e) })
	settle(t, e, root)
	ask := func(want string, ignored int) map[string]*dir {
		t.Helper()
		r, err := e.Grep(context.Background(), GrepQuery{Scope: scope, Pattern: "x", Mode: Count})
		if err != nil || r.Text != want || r.IgnoredFiles != ignored {
			t.Errorf("got %q, %d ignored, %v; want %q, %d", r.Text, r.IgnoredFiles, err, want, ignored)
		}
		k := e.cache.start(root, nil).tree
		k.mu.Lock()
		defer k.mu.Unlock()
		dirs := map[string]*dir{}
		for below := []*dir{k.snapshots[0].top}; len(below) > 0; below = below[1:] {
			dirs[below[0].rel] = below[0]
			for _, c := range below[0].children {
				if c.dir != nil {
					below = append(below, c.dir)
				}
			}
		}
		return dirs
	}
	write := func(name, text string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(root, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	before := ask("a/b/one.txt:1\na/c/two.txt:1\nd/three.txt:1\n", 1)
	for _, step := range []struct {
		change  func()
		want    string
		ignored int
		same    []string // directories
	}{
		{func() {}, "a/b/one.txt:1\na/c/two.txt:1\nd/three.txt:1\n", 1, []string{"", "a/", "a/b/", "a/c/", "d/", "d/e/"}},
		{func() { write("a/b/new.txt", "x\n") }, "a/b/new.txt:1\na/b/one.txt:1\na/c/two.txt:1\nd/three.txt:1\n", 1, []string{"a/c/", "d/", "d/e/"}},
		{func() { write("d/e/six.log", "x\n") }, "a/b/new.txt:1\na/b/one.txt:1\na/c/two.txt:1\nd/three.txt:1\n", 2, []string{"a/", "a/b/", "a/c/"}},
		{func() { write("d/.ignore", "!*.log\n") }, "a/b/new.txt:1\na/b/one.txt:1\na/c/two.txt:1\nd/e/four.log:1\nd/e/six.log:1\nd/three.txt:1\n", 0, []string{"a/", "a/b/", "a/c/"}},
		{func() { write(".ignore", "one*\n") }, "a/b/new.txt:1\na/c/two.txt:1\nd/e/four.log:1\nd/e/six.log:1\nd/three.txt:1\nz/five.txt:1\n", 1, nil},
		{func() { _ = os.Remove(filepath.Join(root, "a/c/two.txt")) }, "a/b/new.txt:1\nd/e/four.log:1\nd/e/six.log:1\nd/three.txt:1\nz/five.txt:1\n", 1, []string{"a/b/", "d/", "d/e/", "z/"}},
	} {
		step.change()
		after := ask(step.want, step.ignored)
		same := map[string]bool{}
		for _, rel := range step.same {
			same[rel] = true
		}
		for rel, d := range before {
			if (after[rel] == d) != same[rel] {
				t.Errorf("%q: %q is the same: %t", step.want, rel, after[rel] == d)
			}
		}
		before = after
	}
}
