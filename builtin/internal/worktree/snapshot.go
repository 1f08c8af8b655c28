package worktree

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/toolhost/toolhost/builtin/internal/roottree"
	"github.com/toolhost/toolhost/guard/privatefile"
)

// index is the index of the worktree in the store, with which a snapshot reads only what has changed.
const index = "index"

// checkOut fills the worktree of a repository, and makes the child's repository in it.
func (w *Worktree) checkOut(ctx context.Context, s *source, dirty bool, hidden Hidden) error {
	tree, err := w.store.run(index).text(ctx, "rev-parse", w.Base+"^{tree}")
	if err != nil {
		return err
	}
	if err := s.check(ctx, w.store, tree); err != nil {
		return err
	}
	w.Begun = tree
	if dirty {
		if w.Begun, err = w.store.look(ctx, s.top, "brought", w.Base, w.Index, false, hidden); err != nil {
			return err
		}
	}
	step("branch")
	if _, err := w.store.run(index).git(ctx, "update-ref", "-m", "toolhost: begin", "refs/heads/"+w.BranchName(), w.Base,
		""); err != nil {
		return err
	}
	if w.Begun != tree {
		if err := hold(ctx, w); err != nil {
			return err
		}
	}
	step("checkout")
	if _, err := w.store.on(w.Tree(), index).git(ctx, "read-tree", "--reset", "-u", w.Begun); err != nil {
		return err
	}
	concealed, err := conceal(ctx, w, hidden)
	if err != nil {
		return err
	}
	if err := makeBelow(w); err != nil {
		return err
	}
	if err := s.bringSettings(w.Tree()); err != nil {
		return err
	}
	step("child")
	if err := w.makeChild(ctx, s, tree, concealed); err != nil {
		return err
	}
	return s.readable() // again: a program may have changed it since, and then this is not handed over
}

// makeBelow creates the caller's directory, since git does not store empty ones. If the commit has a link in that
// path, the caller's directory is the whole worktree.
func makeBelow(w *Worktree) error {
	root, err := os.OpenRoot(w.Tree())
	if err != nil {
		return err
	}
	defer root.Close()
	if err := root.MkdirAll(w.Below, 0o700); err != nil || !isPlain(w.Dir()) {
		w.Below = "."
	}
	return nil
}

// isPlain reports whether a path is that of a directory, and leads through no symbolic link.
func isPlain(dir string) bool {
	real, err := filepath.EvalSymlinks(dir)
	if err != nil || real != filepath.Clean(dir) {
		return false
	}
	info, err := os.Lstat(dir)
	return err == nil && info.IsDir()
}

// conceal removes the files that rules hide from the worktree. For git they are outside of a sparse checkout.
func conceal(ctx context.Context, w *Worktree, hidden Hidden) (names string, err error) {
	r := w.store.on(w.Tree(), index)
	out, err := r.git(ctx, "ls-files", "-z")
	if err != nil || hidden == nil {
		return "", err
	}
	root, err := os.OpenRoot(w.Tree())
	if err != nil {
		return "", err
	}
	defer root.Close()
	for _, name := range fields(out) {
		concealed := false
		for at := name; at != "." && !concealed; at = path.Dir(at) {
			concealed = hidden(filepath.Join(w.Source, filepath.FromSlash(at)), at != name)
		}
		if concealed {
			names += name + "\x00"
			err = errors.Join(err, root.Remove(name))
			for dir := path.Dir(name); dir != "." && root.Remove(dir) == nil; dir = path.Dir(dir) { // git keeps no empty one
			}
		}
	}
	if err != nil || names == "" {
		return "", err
	}
	r.in = strings.NewReader(names)
	_, err = r.git(ctx, skipWorktree...)
	return names, err
}

// skipWorktree makes the index keep entries whose files do not exist.
var skipWorktree = []string{"update-index", "-z", "--skip-worktree", "--stdin"}

// check refuses a commit with entries that a worktree does not support: submodules, and files with a filter program.
func (s *source) check(ctx context.Context, st store, tree string) error {
	r := st.run("check")
	if _, err := r.git(ctx, "read-tree", tree); err != nil {
		return err
	}
	staged, err := r.git(ctx, "ls-files", "-s", "-z")
	if err != nil {
		return err
	}
	var names strings.Builder
	for _, entry := range fields(staged) {
		kind, name, _ := strings.Cut(entry, "\t")
		if strings.HasPrefix(kind, "160000 ") {
			return fmt.Errorf("%s has the submodule %s: isolation is refused", s.top, name)
		}
		names.WriteString(name + "\x00")
	}
	r.in = strings.NewReader(names.String())
	out, err := r.git(ctx, "check-attr", "--cached", "--stdin", "-z", "filter")
	if err != nil {
		return err
	}
	for f := fields(out); len(f) >= 3; f = f[3:] {
		if value := f[2]; value != "unspecified" && value != "unset" {
			return fmt.Errorf("%s passes through the filter %q (LFS or another program): isolation is refused",
				filepath.Join(s.top, f[0]), value)
		}
	}
	return nil
}

// hold makes a commit of the uncommitted changes that were copied, so that git keeps the objects.
func hold(ctx context.Context, w *Worktree) error {
	commit, err := w.store.commit(ctx, w.Begun, "toolhost: changes that were not committed", w.Base)
	if err == nil {
		_, err = w.store.run(index).git(ctx, "update-ref", w.ref(), commit)
	}
	return err
}

// commit makes a commit of a tree.
func (s store) commit(ctx context.Context, tree, message string, parents ...string) (string, error) {
	args := []string{"commit-tree", "-m", message}
	for _, p := range parents {
		if p != "" {
			args = append(args, "-p", p)
		}
	}
	return s.run(index).text(ctx, append(args, tree)...)
}

// maxIndex is how large an index of git is copied, in bytes: that of a million files takes about 100 MB.
const maxIndex = 256 << 20

// look makes a tree of the present files of a directory, and changes nothing there. The index name in the store has
// what is known of its files; if it does not exist, it is copied from git's index at from, or else begins with a
// commit. If all is set, repositories in the directory are added as plain files; otherwise they are left out. Hidden
// files are not examined.
func (s store) look(ctx context.Context, top, name, commit, from string, all bool, hidden Hidden) (tree string,
	err error) {
	known := filepath.Join(s.dir, name)
	if _, err := os.Lstat(known); err != nil {
		if raw, err := privatefile.Read(from, maxIndex); err == nil {
			_ = os.WriteFile(known, raw, 0o600) // else all files are read
		}
	}
	nested, concealed, err := nestedIn(top, hidden)
	if err != nil {
		return "", err
	}
	r := s.on(top, name)
	add := func() error {
		specs := ".\x00"
		for _, dir := range r.notIgnored(ctx, append(concealed, nested...)) {
			specs += ":(exclude,literal)" + dir + "\x00"
		}
		r.in = strings.NewReader(specs)
		_, err := r.git(ctx, "-c", "advice.addEmbeddedRepo=false", "add", "-A", "--pathspec-from-file=-",
			"--pathspec-file-nul")
		return err
	}
	if err = add(); err != nil { // an index that is split, or damaged: begin again
		if err := os.Remove(known); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return "", err
		}
		r.in = nil
		if commit != "" {
			if _, err := r.git(ctx, "read-tree", commit); err != nil {
				return "", err
			}
		}
		if err = add(); err != nil {
			return "", err
		}
	}
	r.in = nil
	if all {
		for _, dir := range nested {
			if err := s.addNested(ctx, r, top, dir); err != nil {
				return "", err
			}
		}
	}
	return r.text(ctx, "write-tree")
}

// notIgnored returns the paths that git does not ignore: git add fails if it is told to leave out one that it leaves
// out anyway.
func (r gitRun) notIgnored(ctx context.Context, paths []string) []string {
	if len(paths) == 0 {
		return nil
	}
	const here = "./" // else a colon at the beginning has a meaning
	r.in = strings.NewReader(here + strings.Join(paths, "\x00"+here) + "\x00")
	out, _ := r.git(ctx, "check-ignore", "-z", "--stdin") // it fails if none is
	ignored := map[string]bool{}
	for _, path := range fields(out) {
		ignored[strings.TrimPrefix(path, here)] = true
	}
	return slices.DeleteFunc(slices.Clone(paths), func(path string) bool { return ignored[path] })
}

// nestedIn lists the directories below top that hold a repository, and what is hidden there. Git would take a
// repository as one commit, and could obey its configuration.
func nestedIn(top string, hidden Hidden) (dirs, concealed []string, err error) {
	err = filepath.WalkDir(top, func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil && path == top:
			return err
		case err != nil: // git reports what cannot be listed
			return nil
		case path != top && hidden.of(path, d.IsDir()):
			rel, err := filepath.Rel(top, path)
			concealed = append(concealed, filepath.ToSlash(rel))
			if d.IsDir() && err == nil {
				return fs.SkipDir
			}
			return err
		case strings.EqualFold(d.Name(), ".git") && filepath.Dir(path) != top:
			rel, err := filepath.Rel(top, filepath.Dir(path))
			if err != nil {
				return err
			}
			if n := len(dirs); n == 0 || rel != dirs[n-1] && !strings.HasPrefix(rel, dirs[n-1]+"/") {
				dirs = append(dirs, filepath.ToSlash(rel))
			}
			if d.IsDir() {
				return fs.SkipDir
			}
		case d.IsDir() && strings.EqualFold(d.Name(), ".git") && path != top:
			return fs.SkipDir
		}
		return nil
	})
	return dirs, concealed, err
}

// addNested adds the files of a directory that is a repository of its own.
func (s store) addNested(ctx context.Context, r gitRun, top, dir string) error {
	root, err := os.OpenRoot(top)
	if err != nil {
		return err
	}
	defer root.Close()
	var entries strings.Builder
	err = roottree.Walk(root, dir, func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case strings.EqualFold(d.Name(), ".git"):
			if d.IsDir() {
				return fs.SkipDir
			}
			return nil
		case !d.Type().IsRegular() && d.Type() != fs.ModeSymlink:
			return nil
		}
		mode, blob, err := s.store(ctx, root, path, d)
		if err == nil {
			fmt.Fprintf(&entries, "%s %s\t%s\x00", mode, blob, path)
		}
		return err
	})
	if err != nil || entries.Len() == 0 {
		return err
	}
	r.in = strings.NewReader(entries.String())
	_, err = r.git(ctx, "update-index", "-z", "--index-info")
	return err
}

// store stores a file or link of a nested repository unchanged.
func (s store) store(ctx context.Context, root *os.Root, path string, d fs.DirEntry) (mode, blob string, err error) {
	r := s.run(index)
	mode = "100644"
	if d.Type() == fs.ModeSymlink {
		target, err := root.Readlink(path)
		if err != nil {
			return "", "", err
		}
		mode, r.in = "120000", strings.NewReader(target)
	} else {
		f, err := openRegular(root, path)
		if err != nil {
			return "", "", err
		}
		defer f.Close()
		if info, err := f.Stat(); err == nil && info.Mode()&0o100 != 0 {
			mode = "100755"
		}
		r.in = f
	}
	blob, err = r.text(ctx, "hash-object", "-w", "--no-filters", "--stdin")
	return mode, blob, err
}

// openRegular opens a regular file below a root, and waits for no pipe.
func openRegular(root *os.Root, path string) (*os.File, error) {
	f, err := root.OpenFile(path, os.O_RDONLY|privatefile.NoWait, 0)
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = fmt.Errorf("%s is not a regular file", path)
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// copyFile copies a regular file below one root to another.
func copyFile(from *os.Root, name string, to *os.Root, as string) error {
	src, err := openRegular(from, name)
	if err != nil {
		return err
	}
	defer src.Close()
	info, err := src.Stat()
	if err != nil {
		return err
	}
	dst, err := to.OpenFile(as, os.O_WRONLY|os.O_CREATE|os.O_EXCL, info.Mode().Perm()|0o200)
	if err != nil {
		return err
	}
	_, err = io.Copy(dst, src)
	return errors.Join(err, dst.Close())
}
