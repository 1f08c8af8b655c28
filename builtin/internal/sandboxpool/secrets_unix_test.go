//go:build unix

package sandboxpool

import (
	"os"
	"path/filepath"
	"testing"
)

// TestReadSame: a file is read, and not what has taken its place since it was examined.
func TestReadSame(t *testing.T) {
	dir := t.TempDir()
	path, other := filepath.Join(dir, "a"), filepath.Join(dir, "b")
	for _, name := range []string{path, other} {
		if err := os.WriteFile(name, []byte(name), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	was, err := os.Lstat(path)
	if err != nil {
		t.Fatal(err)
	}
	if text, err := readSame(path, was); text != path || err != nil {
		t.Errorf("got %q, %v", text, err)
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(other, path); err != nil {
		t.Fatal(err)
	}
	if text, err := readSame(path, was); err == nil {
		t.Errorf("the link was followed to %q", text)
	}
}
