package builtin

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"github.com/toolhost/toolhost/builtin/internal/atomicfile"
	"github.com/toolhost/toolhost/builtin/internal/history"
)

// relink makes names of the same file of those that were before the changes, and of the others files of their own. It is the last step of
// an undo: all contents are as they were.
func relink(ctx context.Context, env *Env, files []history.FileUndo, failed map[string]error) {
	restored := map[string]bool{}
	for _, f := range files {
		restored[f.Path] = failed[f.Path] == nil
	}
	for _, f := range files {
		if failed[f.Path] != nil || !f.Restore.IsFile() || len(f.Links) == 0 && !f.Alone {
			continue
		}
		if err := relinkFile(ctx, env, f, restored); err != nil {
			failed[f.Path] = fmt.Errorf("its content is restored, its hard links are not: %w", err)
		}
	}
}

// relinkFile makes one path a name of the file whose name it was.
func relinkFile(ctx context.Context, env *Env, f history.FileUndo, restored map[string]bool) error {
	now, err := os.Lstat(f.Path)
	if err != nil {
		return err
	}
	node, err := history.NodeAt(f.Path)
	if err != nil {
		return err
	}
	target := ""
	for _, name := range append(slices.Sorted(slices.Values(append([]string{f.Path}, f.Links...))), "") {
		other, err := history.NodeAt(name)
		if name == "" || err != nil || other.Blob != node.Blob || other.Mode != node.Mode {
			continue
		}
		if target == "" || !restored[name] && restored[target] { // a name that the undo leaves alone is the old file
			target = name
		}
	}
	if target == "" && !f.Alone || target == f.Path && !f.Alone {
		return nil
	}
	if info, err := os.Lstat(target); err == nil && os.SameFile(info, now) && !f.Alone {
		return nil
	}
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
	env.ReadState.Forget(f.Path)
	create := func(name string) error {
		content, err := history.ContentAt(f.Path, node)
		if err != nil {
			return err
		}
		return errors.Join(writeNew(dir, name, content, node.Mode.Perm()), dir.Chmod(name, node.Mode))
	}
	if !f.Alone {
		create = func(name string) error { return linkTo(env, target, dir, filepath.Join(filepath.Dir(f.Path), name)) }
	}
	return atomicfile.Place(dir, filepath.Base(f.Path), atomicfile.Options{JournalDir: env.Runtime.journal}, create)
}

// linkTo makes path, which is in dir, another name of a file.
func linkTo(env *Env, file string, dir *os.Root, path string) error {
	other, err := openDirOf(env, file)
	if err != nil {
		return err
	}
	defer other.Close()
	above := filepath.Dir(file)
	for !isBelow(path, above) {
		above = filepath.Dir(above)
	}
	root, err := os.OpenRoot(above)
	if err != nil {
		return err
	}
	defer root.Close()
	from, err := filepath.Rel(above, file)
	if err != nil {
		return err
	}
	to, err := filepath.Rel(above, path)
	if err == nil {
		err = root.Link(from, to)
	}
	if err != nil {
		return err
	}
	want, err := other.Lstat(filepath.Base(file))
	made, madeErr := dir.Lstat(filepath.Base(path))
	if err = errors.Join(err, madeErr); err == nil && !os.SameFile(want, made) { // a directory was swapped for a link
		err = errors.Join(errors.New("a directory of it changed just now"), root.Remove(to))
	}
	return err
}
