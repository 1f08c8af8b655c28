//go:build slow && unix

package search

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/toolhost/toolhost/builtin/internal/search/ignore"
)

// TestIgnoreBombs searches trees whose ignore files are small on disk, or one file under many names, and large in memory. What
// follows of them is bounded, and said; and when they are gone their room is there again.
func TestIgnoreBombs(t *testing.T) {
	const dirs = 48
	long := strings.Repeat("{a,b}", 10) + strings.Repeat("?x", 50) + "\n"
	for _, tt := range []struct{ name, text string }{
		{"short rules", strings.Repeat("x y: z\n", ignore.MaxFile/7)},
		{"alternatives", strings.Repeat(long, 3000)},
		{"text without rules", strings.Repeat("#"+strings.Repeat("x", 1022)+"\n", ignore.MaxFile/1024)},
	} {
		t.Run(strings.ReplaceAll(tt.name, " ", "-"), func(t *testing.T) {
			root := writeTree(t, map[string]string{"rules": tt.text, "f.txt": "needle\n"})
			var bombs []string
			for i := range dirs {
				dir := filepath.Join(root, fmt.Sprintf("d%02d", i))
				if err := os.MkdirAll(filepath.Join(dir, ".git"), 0o755); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(filepath.Join(dir, "f.txt"), []byte("needle\n"), 0o644); err != nil {
					t.Fatal(err)
				}
				bombs = append(bombs, filepath.Join(dir, ".gitignore"))
				if err := os.Symlink("../rules", bombs[i]); err != nil {
					t.Fatal(err)
				}
			}
			for name, e := range newEngines(t, Config{}) {
				checkIgnoreBombs(t, name, e, root, dirs+1)
			}
			for _, bomb := range bombs {
				if err := os.Remove(bomb); err != nil {
					t.Fatal(err)
				}
			}
			e := newEngines(t, Config{})["keeping"]
			settle(t, e, root)
			if r := mustGrep(t, e, root, GrepQuery{Pattern: "needle"}); strings.Contains(strings.Join(r.Notes, "\n"),
				"ignore files") {
				t.Errorf("after they were removed: %q", r.Notes)
			}
		})
	}
}

// checkIgnoreBombs searches a root several times.
func checkIgnoreBombs(t *testing.T, name string, e *Engine, root string, files int) {
	t.Helper()
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	for range 3 {
		r, err := e.Grep(context.Background(), GrepQuery{Scope: Scope{Base: root, Path: root}, Pattern: "^needle"})
		if err != nil || r.Files != files || !strings.Contains(strings.Join(r.Notes, "\n"), "Some ignore files") {
			t.Errorf("%s: %+v, %v; want %d files and a note", name, r, err, files)
		}
	}
	settle(t, e, root)
	runtime.GC()
	runtime.ReadMemStats(&after)
	if took := int64(after.HeapAlloc) - int64(before.HeapAlloc); took > 2*ignore.MaxTree {
		t.Errorf("%s: %d MiB are kept", name, took>>20)
	}
}
