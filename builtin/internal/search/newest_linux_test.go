//go:build slow

package search

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// TestNewestPage: the pages of the newest files are those of the whole list, and end the
// search, also where files have changed that the index does not know, or it knows nothing
// of the pattern.
func TestNewestPage(t *testing.T) {
	if testing.Short() {
		t.Skip("slow")
	}
	const n = 5 * firstFiles
	draw := rand.New(rand.NewPCG(5, 6))
	files := map[string]string{}
	for i := range n {
		files[fmt.Sprintf("d%02d/f%04d.txt", i%40, i)] = []string{"needle\n", "needle, yes\n", "needle too\n",
			"Needle, no\n", "nothing\n"}[draw.IntN(5)]
	}
	root := writeTree(t, files)
	now := time.Now()
	for name := range files {
		at := now.Add(-time.Duration(draw.IntN(30)) * time.Hour)
		if err := os.Chtimes(filepath.Join(root, name), at, at); err != nil {
			t.Fatal(err)
		}
	}
	e := keeping(t, Config{}, Scope{Base: root, Path: root})
	pages := func(pattern string) {
		t.Helper()
		all := mustGrep(t, e, root, GrepQuery{Pattern: pattern})
		want := strings.SplitAfter(all.Text, "\n")
		if all.Files < countedFiles+300 || all.NextOffset != 0 {
			t.Fatalf("%s: %d files, %d", pattern, all.Files, all.NextOffset)
		}
		for _, at := range []int{0, 250, 1000, all.Files - 100} {
			r := mustGrep(t, e, root, GrepQuery{Pattern: pattern, Limit: 250, Offset: at})
			if got := strings.SplitAfter(r.Text, "\n"); !slices.Equal(got[:r.Shown], want[at:min(at+250, all.Files)]) {
				t.Fatalf("%s: the page from %d on is another one", pattern, at)
			}
			next := at + 250
			if next >= all.Files {
				next = 0
			}
			if files := min(max(at+250, countedFiles), all.Files); r.Files != files || r.NextOffset != next {
				t.Errorf("%s from %d: %d files, next %d; want %d, %d", pattern, at, r.Files, r.NextOffset, files, next)
			}
		}
	}
	pages("needle")
	pages("[nx]eed[lm]e")
	for i := range 3 * maxStale {
		name, text := filepath.Join(root, fmt.Sprintf("d%02d/f%04d.txt", i%40, i)), []string{"needle 2\n",
			"gone\n"}[i%2]
		if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	pages("needle")
	settle(t, e, root)
	pages("needle")
	pages(`\w+`)
}
