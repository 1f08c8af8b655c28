package search

import (
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/toolhost/toolhost/integration/testenv"
)

// TestCandidatesUpdate: what is known of a listing is not gone through again for files whose
// content has changed, says the same of the others, and is made anew for all else.
func TestCandidatesUpdate(t *testing.T) {
	testenv.NeedsNotifications(t)
	files := map[string]string{"dir/odd.txt": "ſ"}
	for i := range 300 {
		files[fmt.Sprintf("dir%d/f%d.txt", i%7, i)] = fmt.Sprintf("needle %d\n", i)
	}
	root := writeTree(t, files)
	scope := Scope{Base: root, Path: root}
	e := keeping(t, Config{}, scope)
	write := func(name, text string) {
		if err := os.WriteFile(filepath.Join(root, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	// look asks for a pattern, and returns whether the candidates was kept, and how many files are in rest.
	look := func(want int) (kept bool, rest int) {
		t.Helper()
		k := e.cache.start(root, nil).tree
		before := candidates0(k)
		r, err := e.Grep(context.Background(), GrepQuery{Scope: scope, Pattern: "fresh", Mode: Count})
		if err != nil || r.Files != want {
			t.Errorf("%d files, %v, want %d", r.Files, err, want)
		}
		g, err := e.Glob(context.Background(), GlobQuery{Scope: scope, Pattern: "**/*.txt", Limit: want})
		if err != nil || want > 0 && len(g.Paths) != want {
			t.Errorf("%+v, %v", g, err)
		}
		for _, path := range g.Paths { // the newest, whose dates are known anew
			if text, err := os.ReadFile(filepath.Join(root, path)); err != nil || want > 0 &&
				string(text) != "fresh\n" {
				t.Errorf("%s is among the newest: %q, %v", path, text, err)
			}
		}
		after := candidates0(k)
		k.mu.Lock()
		defer k.mu.Unlock()
		all := newCandidates(k, k.snapshots[0])
		for i, d := range after.dates {
			if d != 0 && d != all.dates[i] {
				t.Errorf("file %d is of %d, and said to be of %d", i, all.dates[i], d)
			}
		}
		return before == after, len(after.rest)
	}
	look(0)
	_, base := look(0)
	changed := map[string]bool{}
	for i := range 20 {
		name := fmt.Sprintf("dir%d/f%d.txt", i%7, i)
		write(name, "fresh\n")
		changed[name] = true
		if i%3 == 0 {
			write(name, "fresh\n")
		}
		if kept, rest := look(len(changed)); !kept || rest != base+len(changed) {
			t.Errorf("after %d changes: kept %t, %d files are to be looked at", len(changed), kept, rest)
		}
	}
	write("dir1/new.txt", "fresh\n")
	if kept, _ := look(len(changed) + 1); kept {
		t.Error("kept after a file was added")
	}
	for _, name := range slices.Sorted(maps.Keys(changed)) {
		write(name, "old\n")
	}
	k := e.cache.start(root, nil).tree
	for range maxRecent + 1 {
		write("dir1/new.txt", "old\n")
		k.mu.Lock()
		k.feed.Read(k.event) // else all of them are one change
		k.mu.Unlock()
	}
	if kept, _ := look(0); kept {
		t.Error("kept after more changes than are remembered")
	}
}

// candidates0 is the candidates of the last listing.
func candidates0(t *tree) *candidates {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.snapshots) == 0 {
		return nil
	}
	return t.snapshots[0].candidates
}
