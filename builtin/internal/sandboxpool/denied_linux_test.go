package sandboxpool

import (
	"os"
	"path/filepath"
	"testing"
)

// TestCoveredFile: what is written or gets another name is the same file, what was made in its place is not, even with its
// number.
func TestCoveredFile(t *testing.T) {
	dir := t.TempDir()
	path, other := filepath.Join(dir, "a"), filepath.Join(dir, "b")
	look := func(path string) *coveredFile {
		t.Helper()
		f, err := lookAt(path)
		if err != nil {
			t.Fatal(err)
		}
		return f
	}
	put(t, path, "one")
	before := look(path)
	put(t, path, "two")
	if err := os.Chmod(path, 0o600); err != nil {
		t.Fatal(err)
	}
	if !before.same(look(path)) {
		t.Error("a file that was written is taken for another")
	}
	if err := os.Rename(path, other); err != nil {
		t.Fatal(err)
	}
	if !before.same(look(other)) {
		t.Error("a file with another name is taken for another")
	}
	// Times of birth may be as coarse as the kernel's clock ticks.
	for range 100_000 {
		if err := os.Remove(other); err != nil {
			t.Fatal(err)
		}
		put(t, other, "three")
		switch after := look(other); {
		case !os.SameFile(before.info, after.info), after.born == 0:
			t.Skip("this file system uses no number again, or tells no time of birth")
		case !before.same(after):
			return
		}
	}
	t.Error("a new file is taken for the one whose number it has")
}
