package settings

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
)

// TestCheckFiles takes the files of a new command line for agreed, and afterwards only those that a person agrees to.
func TestCheckFiles(t *testing.T) {
	dir := t.TempDir()
	cfg := Config{StateDir: filepath.Join(dir, "state")}
	file := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		return path
	}
	check := func(what, line string, files []string, want ...string) {
		t.Helper()
		changed, err := CheckFiles(cfg, dir+line, files)
		if err != nil || !slices.Equal(changed, want) {
			t.Errorf("%s: changed are %q, %v; want %q", what, changed, err, want)
		}
	}
	agree := func(file string) {
		t.Helper()
		review, err := InspectFile(cfg, file)
		if err == nil {
			err = review.Trust()
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	a, b := file("a", "1"), file("b", "1")
	check("the first time", "x", []string{a})
	check("again", "x", []string{a})
	file("a", "2")
	check("changed", "x", []string{a}, a)
	check("changed, another line", "y", []string{a}, a)
	agree(a)
	check("agreed to", "x", []string{a})
	check("another line names a new file", "y", []string{a, b})
	check("a line without files", "z", nil)
	late := file("late", "1")
	check("a file that appeared later", "z", []string{late}, late)
	other := file("other", "2")
	if err := os.Remove(a); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(other, a); err != nil {
		t.Skip(err)
	}
	check("a link to the same content", "x", []string{a}, a)
	agree(other)
	check("a link to a file that was agreed to", "x", []string{a}, a)
	agree(a)
	check("the link is agreed to", "x", []string{a})
	if _, err := CheckFiles(cfg, dir+"x", []string{dir}); err == nil {
		t.Error("a directory was compared")
	}
}
