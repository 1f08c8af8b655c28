//go:build unix

package realpath

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestMade: what was made goes again, but nothing that was there before or is in use.
func TestMade(t *testing.T) {
	tests := []struct {
		what string
		make string
		then func(dir string) error
		want string // what is left
	}{
		{"nothing was missing", "old", nil, "old"},
		{"nobody used them", "old/a/b/c", nil, "old"},
		{"a file in the innermost", "old/a/b", func(dir string) error { return os.WriteFile(dir+"/old/a/b/f", nil, 0o644) }, "old old/a old/a/b old/a/b/f"},
		{"a file in one above", "old/a/b", func(dir string) error { return os.WriteFile(dir+"/old/a/f", nil, 0o644) }, "old old/a old/a/f"},
		{"another in the place", "old/a/b", func(dir string) error {
			return errors.Join(os.Rename(dir+"/old/a/b", dir+"/old/kept"), os.Mkdir(dir+"/old/a/b", 0o755))
		}, "old old/a old/a/b old/kept"},
		{"a link in the place", "old/a/b", func(dir string) error {
			return errors.Join(os.Rename(dir+"/old/a", dir+"/kept"), os.Symlink("../kept", dir+"/old/a"))
		}, "kept kept/b old old/a"},
	}
	for _, tt := range tests {
		dir := realTemp(t)
		if err := os.Mkdir(dir+"/old", 0o755); err != nil {
			t.Fatal(err)
		}
		made, err := MakeDirs(filepath.Join(dir, tt.make), 0o755)
		if err == nil && tt.then != nil {
			err = tt.then(dir)
		}
		if err != nil {
			t.Fatalf("%s: %v", tt.what, err)
		}
		made.Remove()
		if got := listed(t, dir); got != tt.want {
			t.Errorf("%s: left %q, want %q", tt.what, got, tt.want)
		}
	}
}

// TestMakeDirsFails: a failure leaves nothing behind.
func TestMakeDirsFails(t *testing.T) {
	dir := realTemp(t)
	if _, err := MakeDirs(filepath.Join(dir, "a/b", strings.Repeat("x", 300), "c"), 0o755); err == nil {
		t.Error("a name of 300 characters was made")
	}
	if got := listed(t, dir); got != "" {
		t.Errorf("left %q", got)
	}
}

func realTemp(t *testing.T) string {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

func listed(t *testing.T, dir string) string {
	t.Helper()
	var all []string
	err := filepath.WalkDir(dir, func(path string, _ fs.DirEntry, err error) error {
		if path != dir {
			all = append(all, path[len(dir)+1:])
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return strings.Join(all, " ")
}
