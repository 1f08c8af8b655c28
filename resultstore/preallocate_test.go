package resultstore

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestSpare: a file that was made beforehand is the next result of its shelf, and whatever became of it meanwhile, the result is kept.
func TestSpare(t *testing.T) {
	for _, tt := range []struct {
		name  string
		spoil func(dir string, spare *File) error
		used  bool
	}{
		{"untouched", func(string, *File) error { return nil }, true},
		{"removed", func(dir string, f *File) error { return os.Remove(filepath.Join(dir, f.mark)) }, false},
		{"the shelf removed", func(dir string, f *File) error { return os.RemoveAll(filepath.Join(dir, f.shelf)) }, false},
		{"all removed", func(dir string, _ *File) error { return os.RemoveAll(dir) }, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "results")
			s := open(t, Config{Dir: dir})
			fit := func(principal string, last int) string {
				t.Helper()
				text := numbered(1, last)
				got, err := s.For(principal).Fit(text, 1000)
				if err != nil {
					t.Fatal(err)
				}
				if kept, err := os.ReadFile(got.Path); err != nil || string(kept) != text {
					t.Errorf("%s keeps %d bytes, %v, want %d", got.Path, len(kept), err, len(text))
				}
				s.work.Wait()
				return got.Path
			}
			fit("p", 1000)
			spare := s.preallocated
			if spare == nil {
				t.Fatal("no file is made beforehand")
			}
			if err := tt.spoil(s.rootDir.dir, spare); err != nil {
				t.Fatal(err)
			}
			if got := fit("p", 2000); (got == spare.Kept().Path) != tt.used {
				t.Errorf("kept in %s; made beforehand was %s", got, spare.Kept().Path)
			}
			fit("q", 3000)
			fit("p", 4000)
		})
	}
}

// TestSpareEnds: what was made beforehand goes with its store, and before one for another shelf is made.
func TestSpareEnds(t *testing.T) {
	dir := t.TempDir()
	s := open(t, Config{Dir: dir})
	for _, principal := range []string{"p", "q", "q", "p"} {
		if _, err := s.For(principal).Fit(numbered(1, 1000), 1000); err != nil {
			t.Fatal(err)
		}
		s.work.Wait()
		marks := 0
		for _, path := range everything(t, dir) {
			if strings.HasPrefix(path, openName+"/") && strings.HasSuffix(path, ".txt") {
				marks++
			}
		}
		if marks != 1 {
			t.Errorf("after a result of %s %d files are open", principal, marks)
		}
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	for _, path := range everything(t, dir) {
		if strings.HasPrefix(path, openName+"/") {
			t.Errorf("%s is left", path)
		}
	}
}
