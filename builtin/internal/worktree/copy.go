package worktree

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/toolhost/toolhost/builtin/internal/roottree"
)

// Bounds of a directory that is copied because it is in no repository.
const (
	maxCopied     = 2 << 30 // bytes
	maxCopiedFile = 100_000 // files
)

// copyIn fills the worktree with a copy of the files, links and directories of a directory.
func (w *Worktree) copyIn(ctx context.Context, top string, hidden Hidden) (err error) {
	step("copy")
	if home, err := os.UserHomeDir(); err == nil {
		if home, err = filepath.EvalSymlinks(home); err == nil &&
			(home == top || strings.HasPrefix(home, strings.TrimSuffix(top, "/")+"/")) {
			return fmt.Errorf("%s is, or holds, the home directory, which is not copied: work in a directory of its own", top)
		}
	}
	from, err := os.OpenRoot(top)
	if err != nil {
		return err
	}
	defer from.Close()
	to, err := os.OpenRoot(w.Tree())
	if err != nil {
		return err
	}
	defer to.Close()
	var bytes int64
	files := 0
	err = roottree.Walk(from, ".", func(path string, d fs.DirEntry, err error) error {
		if err = errors.Join(err, ctx.Err()); err != nil || path == "." {
			return err
		}
		if path == ".git" && d.IsDir() { // there is no git to use it
			return fs.SkipDir
		}
		if hidden.of(filepath.Join(top, path), d.IsDir()) {
			if d.IsDir() {
				return fs.SkipDir
			}
			return nil
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		if files, bytes = files+1, bytes+info.Size(); files > maxCopiedFile || bytes > maxCopied {
			return fmt.Errorf("%s has more than the %d files or %d MiB that are copied: run git init there and commit, or work "+
				"in a smaller directory", top, maxCopiedFile, maxCopied>>20)
		}
		switch {
		case d.IsDir():
			return to.Mkdir(path, info.Mode().Perm()|0o700)
		case d.Type() == fs.ModeSymlink:
			target, err := from.Readlink(path)
			return errors.Join(err, to.Symlink(target, path))
		case d.Type().IsRegular():
			return copyFile(from, path, to, path)
		}
		return nil
	})
	if err != nil {
		return err
	}
	return w.recordCopy(ctx)
}
