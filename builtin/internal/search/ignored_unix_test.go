//go:build unix

package search

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/toolhost/toolhost/builtin/internal/search/ignore"
	"github.com/toolhost/toolhost/integration/testenv"
)

// TestRoomOfRules changes and removes ignore files: what they took of the room is given back.
func TestRoomOfRules(t *testing.T) {
	testenv.NeedsNotifications(t)
	root := writeTree(t, map[string]string{"a/.gitignore": "x\n", "a/b/.ignore": "y\n*.o\n", "a/b/f.txt": "needle\n",
		".rgignore": "z\n", ".git/info/exclude": "q\n"})
	e := newEngines(t, Config{})["keeping"]
	settle(t, e, root)
	look := func() *tree {
		mustGrep(t, e, root, GrepQuery{Pattern: "needle"})
		settle(t, e, root)
		return e.cache.start(root, nil).tree
	}
	for i, step := range []func() error{
		func() error {
			return os.WriteFile(filepath.Join(root, "a/.gitignore"), []byte(strings.Repeat("w*v?\n", 500)), 0o644)
		},
		func() error { return os.Rename(filepath.Join(root, "a/b"), filepath.Join(root, "a/c")) },
		func() error { return os.Remove(filepath.Join(root, ".rgignore")) },
		func() error { return os.RemoveAll(filepath.Join(root, "a")) },
		func() error { return os.RemoveAll(filepath.Join(root, ".git")) },
	} {
		if err := step(); err != nil {
			t.Fatal(err)
		}
		if left := look().room.Left(); left > ignore.MaxTree {
			t.Errorf("after step %d there is more room than there was: %d", i, left)
		}
	}
	if left := look().room.Left(); left != ignore.MaxTree {
		t.Errorf("without ignore files %d bytes are left, want %d", left, ignore.MaxTree)
	}
}
