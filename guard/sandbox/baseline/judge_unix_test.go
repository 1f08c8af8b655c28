//go:build unix

package baseline

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
)

// TestTakeOut: settings are taken out of a configuration without a lock that stays, and nothing that git writes meanwhile is lost.
func TestTakeOut(t *testing.T) {
	open := func(t *testing.T) (it item, root *os.Root, lock string) {
		dir := t.TempDir()
		path := filepath.Join(dir, "config")
		write(t, path, planted)
		st, err := statOf(path)
		if err != nil {
			t.Fatal(err)
		}
		if root, err = os.OpenRoot(dir); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { root.Close() })
		return item{tree: &tree{dir: dir}, path: path, kind: settings, stamp: st}, root, path + ".lock"
	}
	left := func(t *testing.T, dir string, want int) {
		t.Helper()
		if files, err := os.ReadDir(dir); err != nil || len(files) != want {
			t.Errorf("the directory has %v, %v; want %d files", files, err, want)
		}
	}
	t.Run("free", func(t *testing.T) {
		it, root, _ := open(t)
		if gone, err := it.takeOut(root, "config", file{}); err != nil || len(gone) != 1 {
			t.Fatal(gone, err)
		}
		holds(t, it.path, plain+"[core]\n")
		left(t, it.tree.dir, 1)
	})
	t.Run("locked forever", func(t *testing.T) {
		it, root, lock := open(t)
		write(t, lock, "of git")
		if gone, err := it.takeOut(root, "config", file{}); err != nil || len(gone) != 1 {
			t.Fatal(gone, err)
		}
		holds(t, it.path, plain+"[core]\n")
		holds(t, lock, "of git")
		left(t, it.tree.dir, 2)
	})
	t.Run("written meanwhile", func(t *testing.T) {
		it, root, _ := open(t)
		write(t, filepath.Join(it.tree.dir, "next"), plain)
		write(t, it.path, planted+"[user]\n\tname = x\n")
		if err := it.renameLocked(root, "next", "config", it.stamp); !errors.Is(err, errLocked) {
			t.Fatal(err)
		}
		holds(t, it.path, planted+"[user]\n\tname = x\n")
		left(t, it.tree.dir, 2)
	})
}
