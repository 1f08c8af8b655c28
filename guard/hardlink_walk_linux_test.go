package guard

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/toolhost/toolhost/guard/internal/realpath"

	"github.com/google/go-cmp/cmp"
)

// TestWalk compares the walk by descriptors with one by paths.
func TestWalk(t *testing.T) {
	dir := t.TempDir()
	for i := range 300 {
		name := filepath.Join(dir, fmt.Sprintf("d%d/e%d/.f%d", i%3, i%7, i))
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, nil, 0o644); err != nil {
			t.Fatal(err)
		}
		if i%4 == 0 {
			if err := os.Link(name, filepath.Join(dir, fmt.Sprintf("d%d/other%d", (i+1)%3, i))); err != nil {
				t.Skip("no links here: ", err)
			}
		}
		if i%9 == 0 {
			if err := os.Symlink(name, name+"link"); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := os.Symlink(dir, filepath.Join(dir, "d1", "around")); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		name string
		top  string
		left int
	}{{"all", dir, 1000}, {"a file", filepath.Join(dir, "d1/other0"), 10}, {"a link", filepath.Join(dir, "d1/around"),
		10}, {"nothing", dir + "/gone", 10}} {
		got, want := map[string]realpath.ID{}, map[string]realpath.ID{}
		s := &linkNames{left: tt.left}
		s.walk(tt.top, func(name string, id realpath.ID) { got[name] = id })
		seen := 0
		_ = filepath.WalkDir(tt.top, func(path string, d fs.DirEntry, err error) error {
			seen++
			if err != nil || !d.Type().IsRegular() {
				return nil
			}
			info, err := d.Info()
			if err != nil {
				t.Fatal(err)
			}
			if id, n := realpath.Identify(info); n > 1 {
				want[path] = id
			}
			return nil
		})
		if diff := cmp.Diff(want, got, cmp.AllowUnexported(realpath.ID{})); diff != "" || s.left != tt.left-seen {
			t.Errorf("%s: looked at %d, want %d\n%s", tt.name, tt.left-s.left, seen, diff)
		}
	}
	s := &linkNames{left: 50}
	s.walk(dir, func(string, realpath.ID) {})
	if s.left >= 0 {
		t.Error("the bound was not noted")
	}
}

// BenchmarkWalk walks Go's source tree.
func BenchmarkWalk(b *testing.B) {
	root := filepath.Join(os.Getenv("GOROOT"), "src")
	for b.Loop() {
		s := &linkNames{left: maxScan}
		s.walk(root, func(string, realpath.ID) {})
		if s.left == maxScan-1 {
			b.Skip("there is no Go source tree; set GOROOT")
		}
	}
}
