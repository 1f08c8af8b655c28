package search

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// saving leaves an index of a root on disk.
func saving(tb testing.TB, dir, root string) {
	tb.Helper()
	settled(tb, root)
	e := host(tb, dir, Scope{Base: root, Path: root})
	warm(tb, e, GrepQuery{Scope: Scope{Base: root, Path: root}, Pattern: "warm"})
	closeHost(tb, e)
}

// found is what an engine has found with an index that an earlier one has saved, while only
// queries list the tree.
func found(tb testing.TB, dir, root string) *Engine {
	tb.Helper()
	e := New(Config{GlobalIgnore: os.DevNull, Dir: dir})
	e.cache.gate.patient = time.Hour
	e.cache.gate.enter() // as a query would that does not end
	tb.Cleanup(func() {
		e.cache.gate.leave()
		closeHost(tb, e)
	})
	if e.Warm(root); !e.saves(root) {
		tb.Fatal("no index was saved")
	}
	return e
}

// anew is what an engine that keeps nothing answers.
func anew(tb testing.TB, q GrepQuery) *GrepResult {
	tb.Helper()
	e := New(Config{GlobalIgnore: os.DevNull, MaxKept: -1})
	defer closeHost(tb, e)
	return mustAnswer(tb, e, q)
}

func mustAnswer(tb testing.TB, e *Engine, q GrepQuery) *GrepResult {
	tb.Helper()
	r, err := e.Grep(context.Background(), q)
	if err != nil {
		tb.Fatal(err)
	}
	return r
}

// reached counts the directories of a tree that have been listed.
func reached(e *Engine, root string) (n int) {
	t := e.cache.get(root).tree
	t.mu.Lock()
	defer t.mu.Unlock()
	var count func(*node)
	count = func(of *node) {
		if of.listed {
			n++
		}
		for _, e := range of.entries {
			if e.sub != nil {
				count(e.sub)
			}
		}
	}
	count(t.top)
	return n
}

// many is a tree of 100 directories, two below each other, with three needles in each.
func many() map[string]string {
	files := map[string]string{".ignore": "ignored\n"}
	for d := range 50 {
		for i := range 3 {
			files[fmt.Sprintf("d%02d/f%d.txt", d, i)] = "needle\n"
			files[fmt.Sprintf("d%02d/sub/f%d.txt", d, i)] = "needle\n"
		}
		files[fmt.Sprintf("d%02d/ignored", d)] = "needle\n"
	}
	return files
}

// TestPageAhead: a page needs only what comes before its end, and that as it is.
func TestPageAhead(t *testing.T) {
	root, dir := writeTree(t, many()), filepath.Join(t.TempDir(), "index")
	saving(t, dir, root)
	write := func(name, text string) func() error {
		return func() error { return os.WriteFile(filepath.Join(root, name), []byte(text), 0o644) }
	}
	page := GrepQuery{Scope: Scope{Base: root, Path: root}, Pattern: "needle", Mode: Content, Limit: 20}
	e := found(t, dir, root)
	for _, step := range []struct {
		name string
		do   func() error
	}{
		{"as it was saved", func() error { return nil }},
		{"changed before the end", write("d00/f0.txt", "another needle\nneedle\n")},
		{"changed behind the end", write("d48/f0.txt", "another needle\n")},
		{"deleted before the end", func() error { return os.Remove(filepath.Join(root, "d01/f2.txt")) }},
		{"created before the end", write("d01/a.txt", "a needle\n")},
		{"created behind the end", write("d49/a.txt", "a needle\n")},
		{"a directory moved to the front", func() error { return os.Rename(filepath.Join(root, "d47"), filepath.Join(root, "c47")) }},
		{"a directory moved behind the end", func() error { return os.Rename(filepath.Join(root, "d00"), filepath.Join(root, "e00")) }},
		{"other rules", write("d02/.ignore", "f0.txt\n")},
		{"a link to a file behind the end, changed by it", func() error {
			name := filepath.Join(root, "d02", "link.txt")
			if err := os.Link(filepath.Join(root, "d46/f0.txt"), name); err != nil {
				return err
			}
			return os.WriteFile(name, []byte("no more\n"), 0o644)
		}},
	} {
		if err := step.do(); err != nil {
			t.Fatal(err)
		}
		for range 2 {
			if got, want := mustAnswer(t, e, page), anew(t, page); cmp.Diff(want, got) != "" {
				t.Errorf("%s:\n%s", step.name, cmp.Diff(want, got))
			}
		}
	}
	for offset := 20; offset < 320; offset += 20 {
		page.Offset = offset
		if got, want := mustAnswer(t, e, page), anew(t, page); cmp.Diff(want, got) != "" {
			t.Errorf("from %d on:\n%s", offset, cmp.Diff(want, got))
		}
	}
	for _, q := range []GrepQuery{
		{Pattern: "needle", Mode: Count, Limit: 300}, {Pattern: "nothing", Mode: Content, Limit: 5}, {Pattern: "needle"},
		{Pattern: "another", Mode: Content, Limit: 2, Globs: []string{"d4*"}}, {Pattern: "needle", Mode: Count, Limit: 1, NoIgnore: true},
	} {
		q.Scope = page.Scope
		if got, want := mustAnswer(t, e, q), anew(t, q); cmp.Diff(want, got) != "" {
			t.Errorf("%+v:\n%s", q, cmp.Diff(want, got))
		}
	}
}

// TestPageBelow: a search of a directory does not wait for the others.
func TestPageBelow(t *testing.T) {
	root, dir := writeTree(t, many()), filepath.Join(t.TempDir(), "index")
	saving(t, dir, root)
	for _, mode := range []Mode{Content, FilesWithMatches} {
		e := found(t, dir, root)
		q := GrepQuery{Scope: Scope{Base: root, Path: filepath.Join(root, "d40")}, Pattern: "needle", Mode: mode, Limit: 250}
		if got, want := mustAnswer(t, e, q), anew(t, q); cmp.Diff(want, got) != "" || got.Files != 6 {
			t.Error(cmp.Diff(want, got))
		}
		if n := reached(e, root); n != 3 {
			t.Errorf("%d directories were listed", n)
		}
	}
}

// TestPageAheadMeanwhile changes a tree between two parts of a listing, and lets another
// search find that out first.
func TestPageAheadMeanwhile(t *testing.T) {
	root, dir := writeTree(t, many()), filepath.Join(t.TempDir(), "index")
	saving(t, dir, root)
	scope := Scope{Base: root, Path: root}
	all := GrepQuery{Scope: scope, Pattern: "needle", Mode: Count}
	for name, do := range map[string]func() error{
		"behind the page":    func() error { return os.WriteFile(filepath.Join(root, "d49/f0.txt"), []byte("none\n"), 0o644) },
		"before the part":    func() error { return os.WriteFile(filepath.Join(root, "d00/f0.txt"), []byte("none\n"), 0o644) },
		"a directory gone":   func() error { return os.RemoveAll(filepath.Join(root, "d10")) },
		"a directory moved":  func() error { return os.Rename(filepath.Join(root, "d20"), filepath.Join(root, "a20")) },
		"a directory anew":   func() error { return os.MkdirAll(filepath.Join(root, "d20/sub"), 0o755) },
		"a rule for it":      func() error { return os.WriteFile(filepath.Join(root, ".ignore"), []byte("d3*\n"), 0o644) },
		"the root's own end": func() error { return os.Chmod(root, 0o700) },
	} {
		e := found(t, dir, root)
		var once sync.Once
		q := all
		q.Limit = 260
		q.Asked = func(string) bool {
			once.Do(func() {
				if err := do(); err != nil {
					t.Error(err)
				}
				if got, want := mustAnswer(t, e, all), anew(t, all); cmp.Diff(want, got) != "" {
					t.Errorf("%s, meanwhile:\n%s", name, cmp.Diff(want, got))
				}
			})
			return false
		}
		mustAnswer(t, e, q) // of what has changed since it was asked it may show one or the other
		q.Asked = nil
		if got, want := mustAnswer(t, e, q), anew(t, q); cmp.Diff(want, got) != "" {
			t.Errorf("%s:\n%s", name, cmp.Diff(want, got))
		}
	}
}
