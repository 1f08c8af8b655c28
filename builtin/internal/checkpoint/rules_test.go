//go:build linux

package checkpoint

import (
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"

	"github.com/toolhost/toolhost/builtin/internal/search/ignore"
)

// TestIgnoreBombs: ignore files that take little of the disk, and would take much memory, take no more than their room,
// which is given back when the directories are removed.
func TestIgnoreBombs(t *testing.T) {
	root := newRoot(t)
	line := strings.Repeat("{a,b}", 10) + strings.Repeat("?x", 50) + "\n"
	put := func(name, text string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(root, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	put("rules", strings.Repeat(line, 3000))
	for i := range 30 {
		sub := strconv.Itoa(i)
		if err := os.MkdirAll(filepath.Join(root, sub), 0o755); err != nil {
			t.Fatal(err)
		}
		put(sub+"/f", "1\n")
		if err := os.Symlink("../rules", filepath.Join(root, sub, ignore.GitIgnore)); err != nil {
			t.Fatal(err)
		}
	}
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	tr := start(t, Config{Root: root})
	runtime.GC()
	runtime.ReadMemStats(&after)
	if took := int64(after.HeapAlloc) - int64(before.HeapAlloc); took > 2*ignore.MaxTree {
		t.Errorf("%d MiB are kept", took>>20)
	}
	if !tr.room.Short() || tr.room.Left() < 0 {
		t.Errorf("%d bytes of room are left", tr.room.Left())
	}
	reported(t, tr, root, "rm -r [0-9]*")
	if left := tr.room.Left(); left != ignore.MaxTree {
		t.Errorf("without ignore files %d bytes of room are left, want %d", left, ignore.MaxTree)
	}
}
