package search

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"toolhost/builtin/internal/search/pattern"
)

// TestNarrowed: a page goes on where the first files have not filled it, a changed file
// counts whatever the index says, and what the index no longer speaks of is searched.
func TestNarrowed(t *testing.T) {
	const n = 3 * firstFiles
	files := map[string]string{}
	for i := range n {
		files[fmt.Sprintf("f%04d.txt", i)] = fmt.Sprintf("needle %04d\n", i)
	}
	root := tree(t, files)
	scope := Scope{Base: root, Path: root}
	e := keeping(t, Config{}, scope)
	ask := func(pattern, want string) {
		t.Helper()
		r, err := e.Grep(context.Background(), GrepQuery{Scope: scope, Pattern: pattern, Mode: Content, Limit: 2})
		if err != nil || r.Text != want {
			t.Errorf("%s: %+v, %v", pattern, r, err)
		}
	}
	last := fmt.Sprintf("f%04d.txt:needle %04d\n", n-1, n-1)
	ask("needle .*0$", "f0000.txt:needle 0000\nf0010.txt:needle 0010\n")
	ask(fmt.Sprintf("needle %04d$", n-1), last)
	ask("elsewhere", "")
	if err := os.WriteFile(filepath.Join(root, "f0700.txt"), []byte("elsewhere\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	ask("elsewhere", "f0700.txt:elsewhere\n")

	p, err := pattern.Compile("needle", pattern.Options{})
	if err != nil {
		t.Fatal(err)
	}
	l, err := e.list(context.Background(), scope, &selection{})
	if err != nil {
		t.Fatal(err)
	}
	defer l.close()
	some := l.kept.narrow(l, p, false)
	first := some.next(100)
	l.kept.mu.Lock()
	l.kept.adds++ // as when a segment is added meanwhile
	l.kept.mu.Unlock()
	if rest := some.next(100); len(first) < 100 || len(first)+len(rest) != n {
		t.Errorf("%d files, then %d; want all of %d", len(first), len(rest), n)
	}
	if more := some.next(0); len(more) != 0 {
		t.Errorf("%d files more", len(more))
	}
}
