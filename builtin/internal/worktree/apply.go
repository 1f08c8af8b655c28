package worktree

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"

	"github.com/toolhost/toolhost/builtin/internal/roottree"
)

// A Merge is the merge of the changes in a worktree with the present state of the user's work tree. Close removes its
// files. For a plain copy it joins no lines: a file that both have changed is a conflict.
type Merge struct {
	Changes []Merged
	// Conflicts are files that both have changed. In a text they have the usual marks; of other files the user's version
	// is kept.
	Conflicts []string

	w     *Worktree
	root  *os.Root // of the user's work tree
	stage string

	present manifest // for a plain copy: the user's files that are changed
}

// A Merged is the result of the merge for one file or link.
type Merged struct {
	Path   string // below the work tree, slashed
	Staged string // the file that is to stand there; "": it is removed
}

var errStale = errors.New("it has changed while it was merged")

// Merge merges the changes in the worktree into the present state of the user's work tree, and changes nothing there.
// Hidden files are neither read nor changed.
func (w *Worktree) Merge(ctx context.Context, hidden Hidden) (m *Merge, err error) {
	m = &Merge{w: w}
	defer func() {
		if err != nil {
			err = errors.Join(err, m.Close())
		}
	}()
	if m.root, err = os.OpenRoot(w.Source); err != nil {
		return m, err
	}
	if m.stage, err = os.MkdirTemp(w.dir, "stage-"); err != nil {
		return m, err
	}
	if w.plain() {
		err = m.mergePlain(ctx)
	} else {
		err = m.mergeTrees(ctx, hidden)
	}
	m.Changes = slices.DeleteFunc(m.Changes,
		func(c Merged) bool { return hidden.of(filepath.Join(w.Source, filepath.FromSlash(c.Path)), false) })
	return m, err
}

// mergeTrees merges with git.
func (m *Merge) mergeTrees(ctx context.Context, hidden Hidden) error {
	w := m.w
	if err := os.Remove(filepath.Join(w.store.dir, present)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	now, err := w.store.look(ctx, w.Source, present, w.Base, w.Index, false, hidden)
	if err != nil {
		return err
	}
	merged, err := m.trees(ctx, now, w.Left.Tree)
	if err != nil {
		return err
	}
	return m.compare(ctx, now, merged)
}

// present is the index of the present state of the user's work tree.
const present = "present"

// trees merges two trees whose common base is the tree that the worktree was made of.
func (m *Merge) trees(ctx context.Context, now, tree string) (merged string, err error) {
	s := m.w.store
	begun, err := s.commit(ctx, m.w.Begun, "begun")
	if err != nil {
		return "", err
	}
	var sides [2]string
	for i, t := range []string{now, tree} {
		if sides[i], err = s.commit(ctx, t, "side", begun); err != nil {
			return "", err
		}
	}
	out, err := s.on(m.w.Tree(), index).git(ctx, "merge-tree", "--write-tree", "-z", "--name-only", "--no-messages",
		sides[0], sides[1])
	list := fields(out)
	if len(list) == 0 || !isObject(list[0]) {
		return "", fmt.Errorf("the changes cannot be merged (git 2.38 or later is needed): %w", err)
	}
	m.Conflicts = list[1:]
	return list[0], m.checkOut(ctx, list[0], now, sides)
}

// checkOut writes the files that the merge changes to the stage.
func (m *Merge) checkOut(ctx context.Context, merged, now string, sides [2]string) error {
	r := m.w.store.on(m.w.Tree(), "merged")
	if _, err := r.git(ctx, "read-tree", merged); err != nil {
		return err
	}
	names, err := r.git(ctx, "diff-tree", "-r", "-z", "--no-renames", "--diff-filter=d", "--name-only", now, merged)
	if err != nil {
		return err
	}
	r.in = bytes.NewReader(names)
	if _, err := r.git(ctx, "checkout-index", "-z", "--stdin", "--prefix="+m.stage+"/"); err != nil {
		return err
	}
	for _, name := range m.Conflicts { // call the sides by names that a person knows
		file := filepath.Join(m.stage, filepath.FromSlash(name))
		if info, err := os.Lstat(file); err != nil || !info.Mode().IsRegular() {
			continue
		}
		text, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		text = bytes.ReplaceAll(bytes.ReplaceAll(text, []byte(sides[0]), []byte("yours")), []byte(sides[1]),
			[]byte(m.w.Name))
		if err := os.WriteFile(file, text, 0o600); err != nil { // its mode stays
			return err
		}
	}
	return nil
}

// compare lists the changes to write, removals first, so that a file can replace a directory.
func (m *Merge) compare(ctx context.Context, now, merged string) error {
	out, err := m.w.store.run(index).git(ctx, "diff-tree", "-r", "-z", "--no-renames", "--name-status", now, merged)
	if err != nil {
		return err
	}
	removed := map[string]bool{}
	for f := fields(out); len(f) >= 2; f = f[2:] {
		removed[f[1]] = f[0] == "D"
	}
	for f := fields(out); len(f) >= 2; f = f[2:] {
		c := Merged{Path: f[1]}
		if f[0] != "D" {
			c.Staged = filepath.Join(m.stage, filepath.FromSlash(c.Path))
		}
		if f[0] == "A" && !m.free(c.Path, removed) { // a file that git ignores
			m.Conflicts = append(m.Conflicts, c.Path)
			continue
		}
		m.Changes = append(m.Changes, c)
	}
	slices.SortStableFunc(m.Changes, func(a, b Merged) int {
		return len(b.removedFirst()) - len(a.removedFirst())
	})
	slices.Sort(m.Conflicts)
	m.Conflicts = slices.Compact(m.Conflicts)
	return nil
}

// free reports whether a path does not exist, or is a directory whose content is removed.
func (m *Merge) free(name string, removed map[string]bool) bool {
	for dir := path.Dir(name); dir != "."; dir = path.Dir(dir) {
		if info, err := m.root.Lstat(dir); err == nil && !info.IsDir() {
			return removed[dir]
		}
	}
	return roottree.Walk(m.root, name, func(path string, d fs.DirEntry, err error) error {
		switch {
		case path == name && errors.Is(err, fs.ErrNotExist):
			return nil
		case err == nil && !d.IsDir() && !removed[path]:
			return fs.ErrExist
		}
		return err
	}) == nil
}

func (c Merged) removedFirst() string {
	if c.Staged == "" {
		return "x"
	}
	return ""
}

// Current returns an error unless the user's files are those that were merged.
func (m *Merge) Current(ctx context.Context) error {
	if m.w.plain() {
		return m.currentPlain()
	}
	out, err := m.w.store.on(m.w.Source, present).git(ctx, "diff-files", "-z", "--name-only", "--ignore-submodules=all")
	if err != nil {
		return err
	}
	changed := fields(out)
	for _, c := range m.Changes {
		if slices.Contains(changed, c.Path) {
			return fmt.Errorf("%s: %w: nothing was applied, try again", c.Path, errStale)
		}
	}
	return nil
}

// Mode returns the mode of the file after a change, 0 for a link or a removal. It is that of the present file unless
// the change sets or clears the executable bit.
func (m *Merge) Mode(c Merged) fs.FileMode {
	info, err := os.Lstat(c.Staged)
	if c.Staged == "" || err != nil || !info.Mode().IsRegular() {
		return 0
	}
	mode := info.Mode().Perm()
	if now, err := m.root.Lstat(c.Path); err == nil && now.Mode().IsRegular() &&
		(now.Mode().Perm()&0o100 != 0) == (mode&0o100 != 0) {
		return now.Mode().Perm()
	}
	return mode
}

// Dirs returns the directories that the changes need and that do not exist, and those that they leave empty, which git
// does not keep.
func (m *Merge) Dirs() (dirs []Merged) {
	gone, needed := map[string]bool{}, map[string]bool{}
	for _, c := range m.Changes {
		gone[c.Path] = c.Staged == ""
		for dir := path.Dir(c.Path); c.Staged != "" && dir != "." && !needed[dir]; dir = path.Dir(dir) {
			needed[dir] = true
			if info, err := m.root.Lstat(dir); err != nil || !info.IsDir() {
				dirs = append(dirs, Merged{dir, filepath.Join(m.stage, filepath.FromSlash(dir))})
			}
		}
	}
	for _, c := range m.Changes {
		for dir := path.Dir(c.Path); c.Staged == "" && dir != "." && !needed[dir]; dir = path.Dir(dir) {
			entries, err := roottree.ReadDir(m.root, dir)
			stays := func(e fs.DirEntry) bool { return !gone[path.Join(dir, e.Name())] }
			if _, known := gone[dir]; known || err != nil || slices.ContainsFunc(entries, stays) {
				break
			}
			gone[dir] = true
			dirs = append(dirs, Merged{Path: dir})
		}
	}
	return dirs
}

// Close removes the stage.
func (m *Merge) Close() error {
	var err error
	if m.root != nil {
		err = m.root.Close()
	}
	if m.stage != "" {
		err = errors.Join(err, os.RemoveAll(m.stage))
	}
	return err
}

// Applied is the result of applying the changes of a worktree.
type Applied struct {
	Changed   int      // files
	Conflicts []string // files that both have changed, as in [Merge]
	Refused   []string // files that a rule keeps from being written, and why
	Notes     []string // what git would have run of them, and that it was taken out
}
