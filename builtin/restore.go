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
func (b *Runtime) restoreNode(ctx context.Context, env *Env, f history.FileUndo) error {
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
	now, err := history.NodeIn(dir, filepath.Base(f.Path))
	if err != nil {
		return err
	}
	if now != f.Expect {
		return errors.New("it has changed while it was to be restored: try again")
	}
	change := history.Change{
		Principal: env.Principal, Scope: env.Scope, Tool: env.Tool, Path: f.Path, UndoOf: env.undoOf,
		BeforeMode: now.Mode, AfterMode: f.Restore.Mode, Deleted: f.Restore.IsAbsent(),
	}
	before, err := contentIn(dir, filepath.Base(f.Path), now)
	if err != nil {
		return err
	}
	after := before
	if now != f.Restore && !f.Restore.IsZero() {
		if after, err = b.history.Restored(f); err != nil {
			return err
		}
	}
	entry, err := b.history.Begin(change, before, after)
	if err != nil {
		return fmt.Errorf("the undo could not be journalled: %w", err)
	}
	if now == f.Restore {
		return entry.Done()
	}
	if err := setNode(dir, filepath.Base(f.Path), now, f.Restore, after); err != nil {
		return errors.Join(err, entry.Failed())
	}
	env.ReadState.Forget(f.Path)
	return entry.Done()
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

// chmodDir gives a directory that was restored its mode.
func (b *Runtime) chmodDir(env *Env, f history.FileUndo) error {
	dir, err := openDirOf(env, f.Path)
	if err != nil {
		return err
	}
	defer dir.Close()
	name := filepath.Base(f.Path)
	if info, err := dir.Lstat(name); err != nil || !info.IsDir() {
		return errors.Join(err, errors.New("it has changed while it was restored"))
	}
	return dir.Chmod(name, f.Restore.Mode)
}

// contentIn returns the content of a file, or the target of a link.
func contentIn(dir *os.Root, name string, n history.Node) ([]byte, error) {
	switch {
	case n.Mode&fs.ModeSymlink != 0:
		target, err := dir.Readlink(name)
		return []byte(target), err
	case n.IsFile():
		return dir.ReadFile(name)
	}
	return nil, nil
}

// setNode puts one node in the place of another.
func setNode(dir *os.Root, name string, now, next history.Node, content []byte) error {
	if now.Mode.IsDir() && next.Mode.IsDir() {
		return nil // chmodDir gives it its mode
	}
	if !now.IsAbsent() {
		if err := dir.Remove(name); err != nil {
			return err
		}
	}
	switch {
	case next.IsAbsent():
		return nil
	case next.Mode.IsDir():
		if err := dir.Mkdir(name, 0o700); err != nil {
			return err
		}
		return nil // chmodDir gives it its mode
	case next.Mode&fs.ModeSymlink != 0:
		return dir.Symlink(string(content), name)
	}
	f, err := dir.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(content)
	if next.Mode != 0 {
		err = errors.Join(err, f.Chmod(next.Mode))
	}
	return errors.Join(err, f.Close())
}
