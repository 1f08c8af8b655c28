package agent

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const testDefinition = "---\nname: reviewer\ndescription: reviews\n---\nReview it.\n"

func TestLoad(t *testing.T) {
	for _, tc := range []struct {
		name string
		make func(t *testing.T, dir string) // dir is .claude/agents, and does not exist yet
		want string                         // part of the error; "" for a definition that is read
	}{
		{"a file", func(t *testing.T, dir string) { write(t, dir, testDefinition) }, ""},
		{"a link to a file", func(t *testing.T, dir string) {
			write(t, filepath.Join(dir, "../denied"), testDefinition)
			write(t, dir, "")
			replace(t, filepath.Join(dir, "reviewer.md"), filepath.Join(dir, "../denied/reviewer.md"))
		}, "not a regular file"},
		{"a link to a directory", func(t *testing.T, dir string) {
			write(t, filepath.Join(dir, "../denied"), testDefinition)
			replace(t, dir, filepath.Join(dir, "../denied"))
		}, "a symbolic link leads to it"},
		{"too long", func(t *testing.T, dir string) {
			write(t, dir, testDefinition+strings.Repeat("x", maxDefinition))
		}, "more than 65536 bytes"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "agents")
			tc.make(t, dir)
			all, wrong := Load([]string{dir}, func(name string) string { return name })
			read := len(all) > len(builtIn())
			if tc.want == "" && (!read || wrong != nil) {
				t.Errorf("got %v, error %v, expected the definition", all, wrong)
			}
			if tc.want != "" && (read || wrong == nil || !strings.Contains(wrong.Error(), tc.want)) {
				t.Errorf("got %v, error %v, expected none and %q", all, wrong, tc.want)
			}
		})
	}
}

// TestSwapped replaces the directory and a file after they were looked at, as a background command can.
func TestSwapped(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "agents")
	write(t, dir, testDefinition)
	denied := filepath.Join(dir, "../denied")
	write(t, denied, testDefinition)
	root, err := openDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	opened, err := root.Stat(".")
	if err != nil {
		t.Fatal(err)
	}
	replace(t, filepath.Join(dir, "reviewer.md"), filepath.Join(denied, "reviewer.md"))
	if text, err := read(root, "reviewer.md"); err == nil {
		t.Errorf("a link was read: %q", text)
	}
	replace(t, dir, denied)
	if isAt(dir, opened) {
		t.Error("a link to another directory was taken for the directory opened")
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
