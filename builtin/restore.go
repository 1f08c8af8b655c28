package builtin

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/toolhost/toolhost/builtin/internal/atomicfile"
	"github.com/toolhost/toolhost/builtin/internal/journal"
	"github.com/toolhost/toolhost/guard"
)

// restoreNode restores a path where something else than a file stands or stood. It works in the directory of the
// path, which is opened without following links, and never removes a directory that is not empty.
func restoreNode(ctx context.Context, env *Env, f journal.Step) error {
	dir, err := openDirOf(env, f.Path)
	if err != nil {
		return err
	}
	defer dir.Close()
	unlock, err := lockDir(ctx, &env.Runtime.locks, dir, filepath.Dir(f.Path))
	if err != nil {
		return err
	}
	defer unlock()
	now, err := journal.NodeAt(f.Path)
	if err != nil {
		return err
	}
	if now.Blob != f.Expect.Blob || now.Mode.Type() != f.Expect.Mode.Type() || now.IsAbsent() != f.Expect.IsAbsent() ||
		now.Mode&fs.ModeIrregular != 0 && now != f.Expect {
		return errChanged
	}
	env.ReadState.Forget(f.Path)
	content := func(w io.Writer) error { return writeRestored(env.Runtime.history, f, w) }
	return setNode(env.Runtime.journal, dir, filepath.Base(f.Path), now, f.Restore, content)
}

var errChanged = errors.New("it has changed while it was to be restored: try again")

// writeRestored writes the content that a file is to have, or the target of a link.
func writeRestored(history *journal.Journal, f journal.Step, w io.Writer) error {
	if f.Staged == "" {
		content, err := history.Restored(f)
		if err == nil {
			_, err = w.Write(content)
		}
		return err
	}
	if f.Restore.Mode.Type() == fs.ModeSymlink {
		target, err := os.Readlink(f.Staged)
		if err == nil {
			_, err = io.WriteString(w, target)
		}
		return err
	}
	staged, err := os.Open(f.Staged)
	if err != nil {
		return err
	}
	defer staged.Close()
	_, err = io.Copy(w, staged)
	return err
}

// openDirOf opens the directory of a path that may be changed. The journal holds real paths, so where a directory of
// it has become a link an agent has led it elsewhere: what is restored is not for there.
func openDirOf(env *Env, path string) (*os.Root, error) {
	entry, err := env.Policy.ResolveEntry(path)
	if err != nil {
		return nil, err
	}
	if err := ledAway(path, entry); err != nil {
		return nil, err
	}
	if err := mayWrite(env.Policy, entry); err != nil {
		return nil, err
	}
	dir, _, err := entry.OpenParent()
	return dir, err
}

// ledAway returns an error if a path of the history, which was real, no longer is: a link replaces one of its
// directories.
func ledAway(path string, now guard.Path) error {
	if now.Real() == path {
		return nil
	}
	return fmt.Errorf("a directory of its path has become a link, so that it is %s now: take the link away, and "+
		"undo again", now.Real())
}

// emptied returns an error if a directory that is to go holds more than what goes before it.
func emptied(f journal.Step, gone map[string]bool) error {
	if !f.Expect.Mode.IsDir() || f.Restore.Mode.IsDir() {
		return nil
	}
	entries, _ := os.ReadDir(f.Path) // an error shows when it is removed
	if slices.ContainsFunc(entries, func(e os.DirEntry) bool { return !gone[filepath.Join(f.Path, e.Name())] }) {
		return errors.New("the directory holds .git, or other files that stay, so it stays too: look at what is in it, and " +
			"remove it yourself")
	}
	return nil
}

// chmodDir gives a directory a mode.
func chmodDir(env *Env, f journal.Step, mode fs.FileMode) error {
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

// setNode puts a directory, a link, a file or nothing in the place of what is at a name. If that fails, what was there
// remains. journalDir is [atomicfile.Options].JournalDir.
func setNode(journalDir string, dir *os.Root, name string, now, next journal.Node,
	content func(io.Writer) error) error {
	create := func(name string) error {
		switch {
		case next.Mode.IsDir():
			return dir.Mkdir(name, next.Mode.Perm()|0o700) // chmodDir gives it its mode, where that differs
		case next.Mode&fs.ModeSymlink != 0:
			var target strings.Builder
			if err := content(&target); err != nil {
				return err
			}
			return dir.Symlink(target.String(), name)
		}
		if err := writeNew(dir, name, content, newMode(next.Mode)); err != nil || next.Mode == 0 {
			return err
		}
		return dir.Chmod(name, next.Mode)
	}
	switch {
	case now.Mode.IsDir() && next.Mode.IsDir():
		return nil // chmodDir gives it its mode
	case next.IsAbsent():
		return dir.Remove(name)
	case now.IsAbsent() && next.Mode.IsDir():
		return create(name)
	}
	return atomicfile.Place(dir, name, atomicfile.Options{JournalDir: journalDir}, create)
}

// newMode is the mode with which a file is made that will get a mode.
func newMode(mode fs.FileMode) fs.FileMode {
	switch {
	case mode == 0:
		return 0o666
	case mode.Perm() == 0:
		return 0o600
	}
	return mode.Perm()
}

// writeNew writes a file that did not exist.
func writeNew(dir *os.Root, name string, content func(io.Writer) error, mode fs.FileMode) error {
	f, err := dir.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
	if err != nil {
		return err
	}
	return errors.Join(content(f), f.Close())
}
