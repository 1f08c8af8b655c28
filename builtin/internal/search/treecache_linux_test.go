package search

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// keeping makes an engine that keeps what it can, with all of that in place for
// a scope.
func keeping(tb testing.TB, c Config, s Scope) *Engine {
	tb.Helper()
	c.GlobalIgnore = os.DevNull
	e := New(c)
	tb.Cleanup(func() {
		if err := e.Close(); err != nil {
			tb.Error(err)
		}
	})
	warm(tb, e, GrepQuery{Scope: s, Pattern: "warm"})
	return e
}

// descriptors counts what is open in this process by what it is.
func descriptors(tb testing.TB, what string) (n int) {
	tb.Helper()
	names, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		tb.Fatal(err)
	}
	for _, name := range names {
		if to, err := os.Readlink("/proc/self/fd/" + name.Name()); err == nil && strings.Contains(to, what) {
			n++
		}
	}
	return n
}

func TestReleased(t *testing.T) {
	root := writeTree(t, map[string]string{"a/b.txt": "needle\n", "c.txt": "hay\n"})
	scope := Scope{Base: root, Path: root}
	before := descriptors(t, "")
	release := map[string]func(e *Engine){
		"closed": func(e *Engine) {},
		"idle":   func(e *Engine) { e.cache.remove(e.cache.start(root, nil)) }, // what the timer does
		"others": func(e *Engine) {
			for range 2 {
				other := writeTree(t, map[string]string{"x": ""})
				warm(t, e, GrepQuery{Scope: Scope{Base: other, Path: other}, Pattern: "x"})
			}
		},
		"root gone": func(e *Engine) {
			if err := os.Rename(root, root+"2"); err != nil {
				t.Fatal(err)
			}
			if _, err := e.Grep(context.Background(), GrepQuery{Scope: scope, Pattern: "x"}); err == nil {
				t.Error("searched a root that is gone")
			}
			if err := os.Rename(root+"2", root); err != nil {
				t.Fatal(err)
			}
		},
	}
	for name, do := range release {
		e := New(Config{GlobalIgnore: os.DevNull, MaxRoots: 2})
		warm(t, e, GrepQuery{Scope: scope, Pattern: "needle"})
		if s := e.Stats(root); s.State != Ready || s.Files != 2 || s.Watches != 2 || s.Index == 0 || s.Memory == 0 {
			t.Errorf("%s: kept %+v", name, s)
		}
		do(e)
		if err := e.Close(); err != nil {
			t.Fatal(err)
		}
		if n := e.texts.kept(); n != 0 {
			t.Errorf("%s: %d bytes are still counted", name, n)
		}
		if s := e.Stats(root); s.State != Walking {
			t.Errorf("%s: %+v", name, s)
		}
	}
	if after := descriptors(t, ""); after > before {
		t.Errorf("%d descriptors are open, %d were before", after, before)
	}
}

// TestIdle: the timer that releases a tree is set by its last query.
func TestIdle(t *testing.T) {
	root := writeTree(t, map[string]string{"a.txt": "x\n"})
	synctest.Test(t, func(t *testing.T) {
		e := New(Config{Idle: time.Minute})
		e.cache.add(root, nil, nil)
		for range 3 {
			time.Sleep(40 * time.Second) // of the bubble's clock
			synctest.Wait()
			if e.cache.mu.Lock(); len(e.cache.trees) != 1 {
				t.Fatal("released while in use")
			}
			e.cache.mu.Unlock()
			e.cache.start(root, nil)
		}
		time.Sleep(61 * time.Second)
		synctest.Wait()
		if e.cache.mu.Lock(); len(e.cache.trees) != 0 {
			t.Error("not released")
		}
		e.cache.mu.Unlock()
		if err := e.Close(); err != nil {
			t.Error(err)
		}
	})
}

// TestOverflow: where events were lost, everything is examined.
func TestOverflow(t *testing.T) {
	root := writeTree(t, map[string]string{"a/old.txt": "needle\n", "b/same.txt": "needle\n", "c/d/gone.txt": "needle\n"})
	scope := Scope{Base: root, Path: root}
	e := keeping(t, Config{}, scope)
	if err := os.Rename(filepath.Join(root, "a", "old.txt"), filepath.Join(root, "b", "new.txt")); err != nil {
		t.Fatal(err)
	}
	if err := os.RemoveAll(filepath.Join(root, "c", "d")); err != nil {
		t.Fatal(err)
	}
	e.cache.start(root, nil).tree.feed.Lose()
	r, err := e.Grep(context.Background(), GrepQuery{Scope: scope, Pattern: "needle", Mode: Count})
	if err != nil || r.Text != "b/new.txt:1\nb/same.txt:1\n" {
		t.Errorf("got %+v, %v", r, err)
	}
}

// TestViews: contents are kept once for all who search a tree, of the files that
// one of them may see, and no one is shown what is hidden from him.
func TestViews(t *testing.T) {
	root := writeTree(t, map[string]string{"open.txt": "needle\n", "shut.txt": "needle and more\n"})
	hide := func(names ...string) Scope {
		return Scope{Base: root, Path: root, HiddenTag: strings.Join(names, " "), Hidden: func(real string, dir bool) bool {
			return strings.Contains(strings.Join(names, " "), filepath.Base(real))
		}}
	}
	e := keeping(t, Config{}, hide("shut.txt"))
	kept := func() (out []string) {
		k := e.cache.start(root, nil).tree
		k.mu.Lock()
		defer k.mu.Unlock()
		for _, n := range k.top.entries {
			if known := n.state.Load(); known != nil {
				out = append(out, fmt.Sprintf("%s %t %s", n.name, known.indexed, known.text))
			}
		}
		return out
	}
	const both = "[open.txt true needle\n shut.txt true needle and more\n]"
	for _, tt := range []struct {
		scope       Scope
		found, kept string
	}{
		{hide("shut.txt"), "open.txt:1\n", "[open.txt true needle\n]"},
		{hide("open.txt"), "shut.txt:1\n", both},
		{Scope{Base: root, Path: root}, "open.txt:1\nshut.txt:1\n", both},
		{hide("shut.txt"), "open.txt:1\n", both},
		{hide("open.txt", "shut.txt"), "", both},
	} {
		for range 2 {
			r, err := e.Grep(context.Background(), GrepQuery{Scope: tt.scope, Pattern: "needle", Mode: Count})
			if err != nil || r.Text != tt.found {
				t.Errorf("got %+v, %v", r, err)
			}
			g, err := e.Glob(context.Background(), GlobQuery{Scope: tt.scope, Pattern: "*"})
			if err != nil || g.Total != strings.Count(tt.found, "\n") {
				t.Errorf("got %+v, %v", g, err)
			}
			settle(t, e, root)
		}
		if got := fmt.Sprint(kept()); got != tt.kept {
			t.Errorf("%s: kept %s, want %s", tt.scope.HiddenTag, got, tt.kept)
		}
	}
	scope := hide("open.txt")
	scope.HiddenTag = ""
	r, err := e.Grep(context.Background(), GrepQuery{Scope: scope, Pattern: "needle", Mode: Count})
	if err != nil || r.Text != "shut.txt:1\n" {
		t.Errorf("without a tag: %+v, %v", r, err)
	}
}

// TestEvict: with no room for all, what an index chooses stays, and what every
// query goes through does not push it out.
func TestEvict(t *testing.T) {
	files := map[string]string{}
	for i := range 40 {
		files[fmt.Sprintf("f%02d.txt", i)] = fmt.Sprintf("%s rare%02d\n", strings.Repeat("x", 4000), i)
	}
	root := writeTree(t, files)
	scope := Scope{Base: root, Path: root}
	e := keeping(t, Config{MaxMemory: textShare * 90_000}, scope)
	texts := func(name string) (n int, has bool) {
		k := e.cache.start(root, nil).tree
		k.mu.Lock()
		defer k.mu.Unlock()
		for _, d := range k.top.entries {
			if known := d.state.Load(); known != nil && known.text != nil {
				n++
				has = has || d.name == name
			}
		}
		return n, has
	}
	ask := func(pattern string, want int) {
		t.Helper()
		r, err := e.Grep(context.Background(), GrepQuery{Scope: scope, Pattern: pattern})
		if err != nil || r.Files != want {
			t.Errorf("%s: %+v, %v", pattern, r, err)
		}
	}
	for range 3 {
		ask("rare39", 1)
	}
	for i := range 39 {
		ask(fmt.Sprintf("rare%02d", i), 1)
		if i%10 == 0 {
			ask(`^x+ rare\d+$`, 40)
		}
	}
	n, has := texts("f39.txt")
	if !has || n < 5 || n > 25 {
		t.Errorf("%d texts are kept, that used most: %t", n, has)
	}
	if m := e.Stats(root).Memory; m > textShare*90_000 {
		t.Errorf("%d bytes are kept", m)
	}
}

// TestFit: what a query goes through again is kept if all of it can be, and else takes the place of nothing.
func TestFit(t *testing.T) {
	files := map[string]string{}
	for i := range 200 {
		word := "other"
		if i%5 == 0 {
			word = "many"
		} else if i%20 == 1 {
			word = "some"
		}
		files[fmt.Sprintf("f%03d.txt", i)] = strings.Repeat("x", 4000) + " " + word + "\n"
	}
	root := writeTree(t, files)
	scope := Scope{Base: root, Path: root}
	e := keeping(t, Config{MaxMemory: textShare * 90_000}, scope)
	kept := func(word string) (n int) {
		k := e.cache.start(root, nil).tree
		k.mu.Lock()
		defer k.mu.Unlock()
		for _, d := range k.top.entries {
			if known := d.state.Load(); known != nil && bytes.Contains(known.text, []byte(word)) {
				n++
			}
		}
		return n
	}
	ask := func(word string, want int) {
		t.Helper()
		for range 4 {
			r, err := e.Grep(context.Background(), GrepQuery{Scope: scope, Pattern: word, Mode: Count})
			if err != nil || r.Files != want {
				t.Errorf("%s: %+v, %v", word, r, err)
			}
		}
	}
	ask("some", 10)
	if n := kept("some"); n != 10 {
		t.Errorf("of 10 texts that fit %d are kept", n)
	}
	before := kept("many")
	ask("many", 40)
	if n := kept("many"); n != before || kept("some") != 10 {
		t.Errorf("of texts that do not fit %d are kept, as %d were before, and %d of the others", n, before,
			kept("some"))
	}
}

// TestBudgets: what does not fit is searched all the same.
func TestBudgets(t *testing.T) {
	files := map[string]string{}
	for i := range 50 {
		files[fmt.Sprintf("d%d/f%d.txt", i%5, i)] = fmt.Sprintf("needle %d\n", i)
	}
	root := writeTree(t, files)
	scope := Scope{Base: root, Path: root}
	for name, c := range map[string]Config{
		"files": {MaxKept: 10}, "watches": {MaxWatches: 1}, "memory": {MaxMemory: 100}, "no memory": {MaxMemory: -1},
	} {
		e := keeping(t, c, scope)
		r, err := e.Grep(context.Background(), GrepQuery{Scope: scope, Pattern: `needle \d+`, Mode: Count})
		if err != nil || r.Files != 50 {
			t.Errorf("%s: %+v, %v", name, r, err)
		}
		s := e.Stats(root)
		if s.Watches > e.config.MaxWatches || s.Files > e.config.MaxKept || s.Memory > max(e.config.MaxMemory, 0) {
			t.Errorf("%s: kept %+v", name, s)
		}
	}
}

// TestSecondQuery: the index is begun after the second wide query of a root, and after no other.
func TestSecondQuery(t *testing.T) {
	files := map[string]string{"a.txt": "needle\n", "d/b.txt": "needle\n"}
	for i := range wideFiles {
		files[fmt.Sprintf("many/%d", i)] = "hay\n"
	}
	root := writeTree(t, files)
	in := func(name string) GrepQuery {
		return GrepQuery{Scope: Scope{Base: root, Path: filepath.Join(root, name)}, Pattern: "needle"}
	}
	named := in("")
	named.Name = "/elsewhere"
	for _, tt := range []struct {
		name    string
		queries []GrepQuery
		kept    bool
	}{
		{"one", []GrepQuery{in("")}, false}, {"two", []GrepQuery{in(""), in("")}, true},
		{"a wide part", []GrepQuery{in("many"), in("")}, true}, {"small parts", []GrepQuery{in(""), in("d"), in("d"), in("d")}, false},
		{"a file", []GrepQuery{in(""), in("a.txt"), in("a.txt")}, false}, {"by another name", []GrepQuery{named, named, named}, false},
	} {
		e := New(Config{GlobalIgnore: os.DevNull})
		for _, q := range tt.queries {
			if _, err := e.Grep(context.Background(), q); err != nil {
				t.Fatal(err)
			}
		}
		e.cache.mu.Lock()
		kept := len(e.cache.trees) > 0
		e.cache.mu.Unlock()
		if kept != tt.kept {
			t.Errorf("%s: kept %t", tt.name, kept)
		}
		if settleKept(t, e, root); kept && e.Stats(root).Index == 0 {
			t.Errorf("%s: ready without an index", tt.name)
		}
		closeEngine(t, e)
	}
}

// TestWalkedRoots: how many roots are remembered for their first query is bounded.
func TestWalkedRoots(t *testing.T) {
	e := New(Config{GlobalIgnore: os.DevNull})
	defer closeEngine(t, e)
	for i := range 3 * maxWalked {
		e.cache.note(&listing{path: fmt.Sprint(i)})
	}
	if n := len(e.cache.walked); n > maxWalked {
		t.Errorf("%d roots are remembered", n)
	}
}

// TestAbove: ignore files above a root count from the moment on that they are
// there, or are no longer empty.
func TestAbove(t *testing.T) {
	top := writeTree(t, map[string]string{"in/root/a.txt": "needle\n", "in/root/b.txt": "needle\n"})
	root := filepath.Join(top, "in", "root")
	e := keeping(t, Config{}, Scope{Base: root, Path: root})
	settled(t, root) // so that the times of the directories above tell something
	rules := filepath.Join(top, "in", ".ignore")
	for _, tt := range []struct {
		change func() error
		want   string
	}{
		{func() error { return nil }, "a.txt:1\nb.txt:1\n"},
		{func() error { return os.WriteFile(rules, nil, 0o644) }, "a.txt:1\nb.txt:1\n"},
		{func() error { return os.WriteFile(rules, []byte("a.txt\n"), 0o644) }, "b.txt:1\n"},
		{func() error { return os.WriteFile(rules, []byte("b.txt\n"), 0o644) }, "a.txt:1\n"},
		{func() error { return os.Remove(rules) }, "a.txt:1\nb.txt:1\n"},
		{func() error { return os.Mkdir(filepath.Join(top, "in", ".git"), 0o755) }, "a.txt:1\nb.txt:1\n"},
		{func() error { return os.Mkdir(filepath.Join(top, "in", ".git", "info"), 0o755) }, "a.txt:1\nb.txt:1\n"},
		{func() error {
			return os.WriteFile(filepath.Join(top, "in", ".git", "info", "exclude"), []byte("a.txt\n"), 0o644)
		}, "b.txt:1\n"},
	} {
		if err := tt.change(); err != nil {
			t.Fatal(err)
		}
		for range 2 {
			r, err := e.Grep(context.Background(),
				GrepQuery{Scope: Scope{Base: root, Path: root}, Pattern: "needle", Mode: Count})
			if err != nil || r.Text != tt.want {
				t.Errorf("got %q, %v; want %q", r.Text, err, tt.want)
			}
			settled(t, root)
		}
	}
}
