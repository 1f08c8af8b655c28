package builtin

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/toolhost/toolhost/builtin/internal/history"
	"github.com/toolhost/toolhost/guard"
	"github.com/toolhost/toolhost/guard/privatefile"
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

// contentIn returns the content of a file, or the target of a link, that is still what n says.
func contentIn(dir *os.Root, name string, n history.Node) (content []byte, err error) {
	switch {
	case n.Mode&fs.ModeSymlink != 0:
		var target string
		target, err = dir.Readlink(name)
		content = []byte(target)
	case n.IsFile() && n.Size > history.DefaultMaxFile:
		return nil, fmt.Errorf("it has %d bytes, more than the %d that the history keeps of a file", n.Size, history.DefaultMaxFile)
	case n.IsFile():
		content, err = readIn(dir, name, n.Size)
	default:
		return nil, nil
	}
	if err == nil && history.BlobOf(content) != n.Blob {
		err = errors.New("it has changed while it was to be restored: try again")
	}
	return content, err
}

// readIn reads a file of a size without following a link or waiting for a pipe.
func readIn(dir *os.Root, name string, size int64) ([]byte, error) {
	f, err := dir.OpenFile(name, os.O_RDONLY|privatefile.NoWait|privatefile.NoFollow, 0)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if info, err := f.Stat(); err != nil || !info.Mode().IsRegular() {
		return nil, errors.Join(err, errors.New("it is not a regular file any more"))
	}
	return io.ReadAll(io.LimitReader(f, size+1))
}

// setNode puts one node in the place of another. What comes is made under another name first, so that a failure leaves what is there.
func setNode(dir *os.Root, name string, now, next history.Node, content []byte) error {
	if now.Mode.IsDir() && next.Mode.IsDir() {
		return nil // chmodDir gives it its mode
	}
	if next.IsAbsent() {
		return dir.Remove(name)
	}
	temp := ".toolhost-" + rand.Text()
	err := makeNode(dir, temp, next, content)
	if err == nil && (now.Mode.IsDir() || next.Mode.IsDir()) && !now.IsAbsent() {
		err = dir.Remove(name) // a rename replaces no other kind
	}
	if err == nil {
		err = dir.Rename(temp, name)
	}
	if err != nil {
		_ = dir.Remove(temp) // it may not be there
	}
	return err
}

// makeNode makes a directory that its owner can use, a link or a file.
func makeNode(dir *os.Root, name string, n history.Node, content []byte) error {
	switch {
	case n.Mode.IsDir():
		if err := dir.Mkdir(name, 0o700); err != nil {
			return err
		}
		return dir.Chmod(name, n.Mode|0o700) // chmodDir gives it its mode
	case n.Mode&fs.ModeSymlink != 0:
		return dir.Symlink(string(content), name)
	}
	f, err := dir.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(content)
	if n.Mode != 0 {
		err = errors.Join(err, f.Chmod(n.Mode))
	}
	return errors.Join(err, f.Close())
}
