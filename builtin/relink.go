package builtin

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"

	"github.com/toolhost/toolhost/builtin/internal/atomicfile"
	"github.com/toolhost/toolhost/builtin/internal/journal"
	"github.com/toolhost/toolhost/builtin/internal/search/walk"
)

// relink makes names of the same file of those that were before the changes, and of the others files of their own. It
// is the last step of an undo: all contents are as they were.
func relink(ctx context.Context, env *Env, files []journal.Step, failed map[string]error) {
	restored := map[string]journal.Step{}
	for _, f := range files {
		if failed[f.Path] == nil && f.Restore.IsFile() {
			restored[f.Path] = f
		}
	}
	groups, own := linkGroups(restored), map[string]bool{}
	for path, f := range restored {
		group := groups[path]
		if group == nil {
			group = []string{path}
		}
		target := linkTarget(group, restored)
		var err error
		if first := restored[target]; first.Exact && !own[target] && isShared(target, group) {
			own[target] = true
			err = relinkFile(ctx, env, first, "")
		}
		if err == nil && target != path {
			err = relinkFile(ctx, env, f, target)
		}
		if err != nil {
			failed[path] = fmt.Errorf("its content is restored, its hard links are not: %w", err)
		}
	}
}

// isShared reports whether a file has names that are not in a group.
func isShared(path string, group []string) bool {
	id, file, ok := walk.FileID(path)
	names := file.Links
	for _, name := range group {
		if other, _, is := walk.FileID(name); is && other == id {
			names--
		}
	}
	return ok && names > 0
}

// linkGroups returns, for each path that had other names, all of them. The links of a file are those from before its
// own first change: of two files the one that changed first tells whether they were one.
func linkGroups(restored map[string]journal.Step) map[string][]string {
	groups := map[string][]string{}
	of := func(path string) []string {
		if g := groups[path]; g != nil {
			return g
		}
		return []string{path}
	}
	for path, f := range restored {
		for _, name := range f.Links {
			if other, ok := restored[name]; ok && !other.Begun.After(f.Begun) && !slices.Contains(other.Links, path) {
				continue
			}
			all := slices.Concat(of(path), of(name))
			slices.Sort(all)
			all = slices.Compact(all)
			for _, n := range all {
				groups[n] = all
			}
		}
	}
	return groups
}

// linkTarget returns the name of a group that the others are linked to: one that the undo leaves alone is the old file.
func linkTarget(names []string, restored map[string]journal.Step) (target string) {
	var want journal.Node
	for _, name := range names {
		if f, ok := restored[name]; ok {
			if want = f.Restore; target == "" {
				target = name
			}
		}
	}
	for _, name := range names {
		if _, ok := restored[name]; ok {
			continue
		}
		if node, err := journal.NodeAt(name); err == nil && node.Blob == want.Blob &&
			(node.Mode == want.Mode || want.Mode == 0) && node.IsFile() {
			return name
		}
	}
	return target
}

// relinkFile makes one path a name of a file, or a file of its own if target is "".
func relinkFile(ctx context.Context, env *Env, f journal.Step, target string) error {
	node, err := journal.NodeAt(f.Path)
	if err != nil {
		return err
	}
	if target != "" {
		now, err := os.Lstat(f.Path)
		if err != nil {
			return err
		}
		if other, err := os.Lstat(target); err != nil || os.SameFile(now, other) {
			return err
		}
	}
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
	env.ReadState.Forget(f.Path)
	return atomicfile.Place(dir, filepath.Base(f.Path), atomicfile.Options{JournalDir: env.Runtime.journal},
		func(name string) error {
			if target != "" {
				return linkTo(env, target, dir, filepath.Join(filepath.Dir(f.Path), name))
			}
			content, err := journal.ContentAt(f.Path, node)
			if err == nil {
				err = writeNew(dir, name, func(w io.Writer) error { _, err := w.Write(content); return err }, newMode(node.Mode))
				err = errors.Join(err, dir.Chmod(name, node.Mode))
			}
			return err
		})
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
