package builtin

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/toolhost/toolhost/builtin/internal/history"
	"github.com/toolhost/toolhost/guard"
)

// restoreNode restores a path where a link or a directory stands or stood. It works in the directory of the path, which is opened
// without following links, and never removes a directory that is not empty.
func restoreNode(ctx context.Context, env *Env, f history.FileUndo) error {
	dir, err := openDirOf(env, f.Path)
	if err != nil {
		return err
	}
	defer dir.Close()
	unlock, err := lockDir(ctx, env, dir, filepath.Dir(f.Path))
	if err != nil {
		return err
	}
	defer unlock()
	now, err := history.NodeAt(f.Path)
	if err != nil {
		return err
	}
	if now.Blob != f.Expect.Blob || now.Mode.Type() != f.Expect.Mode.Type() || now.IsAbsent() != f.Expect.IsAbsent() {
		return errors.New("it has changed while it was to be restored: try again")
	}
	var target []byte
	if f.Restore.Mode&fs.ModeSymlink != 0 {
		if target, err = env.Runtime.history.Restored(f); err != nil {
			return err
		}
	}
	env.ReadState.Forget(f.Path)
	return setNode(dir, filepath.Base(f.Path), now, f.Restore, string(target))
}

// openDirOf opens the directory of a path. The journal holds real paths, so where a directory of it has become a link an agent has led it
// elsewhere: what is restored is not for there.
func openDirOf(env *Env, path string) (*os.Root, error) {
	entry, err := env.Policy.ResolveEntry(path)
	if err != nil {
		return nil, err
	}
	if entry.Real() != path {
		return nil, errLedAway(entry)
	}
	dir, _, err := entry.OpenParent()
	return dir, err
}

func errLedAway(path guard.Path) error {
	return fmt.Errorf("a directory of its path has become a link, so that it is %s now: take the link away, and undo again", path.Real())
}

// chmodDir gives a directory a mode.
func chmodDir(env *Env, f history.FileUndo, mode fs.FileMode) error {
	dir, err := openDirOf(env, f.Path)
	if err != nil {
		return err
	}
	defer dir.Close()
	name := filepath.Base(f.Path)
	if info, err := dir.Lstat(name); err != nil || !info.IsDir() {
		return errors.Join(err, errors.New("it has changed while it was restored"))
	}
	return dir.Chmod(name, mode)
}

// setNode puts a directory, a link or nothing in the place of what stands at a name. Each step leaves a name that is whole: where the
// host is killed between two of them, nothing stands there.
func setNode(dir *os.Root, name string, now, next history.Node, target string) error {
	if now.Mode.IsDir() && next.Mode.IsDir() {
		return nil // chmodDir gives it its mode
	}
	if !now.IsAbsent() {
		if err := dir.Remove(name); err != nil {
			return err
		}
	}
	switch {
	case next.Mode.IsDir():
		return dir.Mkdir(name, 0o700) // chmodDir gives it its mode
	case next.Mode&fs.ModeSymlink != 0:
		return dir.Symlink(target, name)
	}
	return nil
}
