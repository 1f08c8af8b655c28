package search

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"
)

// TestHiddenLink hides a file by its identity, whether or not its content is kept.
func TestHiddenLink(t *testing.T) {
	root := writeTree(t, map[string]string{"a.txt": "secret\n", "b.txt": "secret\n"})
	if err := os.Link(filepath.Join(root, "a.txt"), filepath.Join(root, "c.txt")); err != nil {
		t.Skip("no links here: ", err)
	}
	info, err := os.Stat(filepath.Join(root, "a.txt"))
	if err != nil {
		t.Fatal(err)
	}
	scope := Scope{HiddenLink: func(_, inode uint64, _ int64) bool {
		return inode == info.Sys().(*syscall.Stat_t).Ino
	}}
	for name, e := range map[string]*Engine{"read": quiet(Config{MaxMemory: -1}), "kept": quiet(Config{})} {
		for range 3 {
			if r := mustGrep(t, e, root, GrepQuery{Scope: scope, Pattern: "secret", Mode: Content}); r.Text != "b.txt:secret\n" {
				t.Errorf("%s: %q", name, r.Text)
			}
			mustGrep(t, e, root, GrepQuery{Pattern: "secret"})
		}
	}
}
