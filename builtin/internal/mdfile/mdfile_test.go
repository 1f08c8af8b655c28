package mdfile

import (
	"os"
	"path/filepath"
	"testing"
)

const text = "---\nname: one\n---\nText.\n"

// TestSwapped replaces the directory and a file after they were looked at, as a background command can.
func TestSwapped(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "agents")
	write(t, dir, text)
	denied := filepath.Join(dir, "../denied")
	write(t, denied, text)
	root, err := OpenDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	opened, err := root.Stat(".")
	if err != nil {
		t.Fatal(err)
	}
	replace(t, filepath.Join(dir, "reviewer.md"), filepath.Join(denied, "reviewer.md"))
	if got, err := Read(root, "reviewer.md", 1000); err == nil {
		t.Errorf("a link was read: %q", got)
	}
	replace(t, dir, denied)
	if isAt(dir, opened) {
		t.Error("a link to another directory was taken for the directory opened")
	}
}

// replace puts a symbolic link in the place of what has a name.
func replace(t *testing.T, name, target string) {
	t.Helper()
	if err := os.RemoveAll(name); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(target, name); err != nil {
		t.Skip(err)
	}
}

func write(t *testing.T, dir, text string) {
	t.Helper()
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "reviewer.md"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}
