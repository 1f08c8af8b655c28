package worktree

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"unicode/utf8"

	"github.com/toolhost/toolhost/builtin/internal/roottree"
	"github.com/toolhost/toolhost/builtin/internal/text"
	"github.com/toolhost/toolhost/guard/statedir"
)

// A worktree of a directory that is in no repository, or where git is not installed, is a plain copy. What was copied
// is described in the file "begun", and what was changed is found by comparison with it.

const (
	// begunName is the file of the [manifest] of what was copied, and maxBegun its maximum size in bytes.
	begunName = "begun"
	maxBegun  = 256 << 20

	// maxPatched is the maximum size of a file whose changes are shown, in bytes. contextLines is the number of lines
	// shown around a change, and patchLines that of the lines shown of one file.
	maxPatched   = 4 << 20
	contextLines = 3
	patchLines   = 10_000
)

// plain reports whether the worktree is a plain copy.
func (w *Worktree) plain() bool { return w.Common == "" }

// A node describes a file or link as git does: times do not count, and of the permissions only the right to execute.
// The zero node stands for what does not exist, and for directories.
type node struct {
	Link bool   `json:",omitempty"`
	Exec bool   `json:",omitempty"`
	Sum  string // SHA-256 of its content, or of the target of a link, in hexadecimal
}

// A manifest describes the files and links of a directory by their slashed paths. Those of a .git are left out.
type manifest map[string]node

// MarshalJSON also keeps names that are not UTF-8, which a JSON string cannot hold.
func (l manifest) MarshalJSON() ([]byte, error) {
	texts := make(map[string]node, len(l))
	for name, n := range l {
		texts[statedir.NameText(name)] = n
	}
	return json.Marshal(texts)
}

// UnmarshalJSON reads what [manifest.MarshalJSON] writes.
func (l *manifest) UnmarshalJSON(raw []byte) error {
	var texts map[string]node
	if err := json.Unmarshal(raw, &texts); err != nil {
		return err
	}
	*l = make(manifest, len(texts))
	for text, n := range texts {
		name, err := statedir.TextName(text)
		if err != nil {
			return err
		}
		(*l)[name] = n
	}
	return nil
}

// manifestOf returns the manifest of a directory.
func manifestOf(ctx context.Context, dir string) (manifest, error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, err
	}
	defer root.Close()
	l := manifest{}
	err = roottree.Walk(root, ".", func(name string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case strings.EqualFold(d.Name(), ".git") && d.IsDir():
			return fs.SkipDir
		case d.IsDir() || strings.EqualFold(d.Name(), ".git"):
			return ctx.Err()
		}
		n, err := describe(root, name)
		if n != (node{}) {
			l[name] = n
		}
		return errors.Join(err, ctx.Err())
	})
	return l, err
}

// describe returns the node at a path. A pipe, a socket or a device has none.
func describe(root *os.Root, name string) (n node, err error) {
	info, err := root.Lstat(name)
	switch {
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, syscall.ENOTDIR):
		return n, nil
	case err != nil:
		return n, err
	case info.Mode().Type() == fs.ModeSymlink:
		target, err := root.Readlink(name)
		sum := sha256.Sum256([]byte(target))
		return node{Link: true, Sum: hex.EncodeToString(sum[:])}, err
	case !info.Mode().IsRegular():
		return n, nil
	}
	f, err := openRegular(root, name)
	if err != nil {
		return n, err
	}
	defer f.Close()
	h := sha256.New()
	if _, err := io.Copy(h, f); err != nil {
		return n, err
	}
	return node{Exec: info.Mode()&0o100 != 0, Sum: hex.EncodeToString(h.Sum(nil))}, nil
}

// digest identifies a manifest.
func (l manifest) digest() string {
	raw, _ := json.Marshal(l) // of strings and truth values; its keys are sorted
	sum := sha256.Sum256(raw)
	return hex.EncodeToString(sum[:])
}

// recordCopy describes the copy before anything works in it.
func (w *Worktree) recordCopy(ctx context.Context) error {
	l, err := manifestOf(ctx, w.Tree())
	if err != nil {
		return err
	}
	w.Begun = l.digest()
	return statedir.Save(filepath.Join(w.dir, begunName), l)
}

// changes returns what was copied and what is in the copy now, of all paths where these differ.
func (w *Worktree) changes(ctx context.Context) (was, is manifest, names []string, err error) {
	if err = statedir.Load(filepath.Join(w.dir, begunName), maxBegun, &was); err != nil {
		return nil, nil, nil, err
	}
	if is, err = manifestOf(ctx, w.Tree()); err != nil {
		return nil, nil, nil, err
	}
	all := map[string]bool{}
	for name := range was {
		all[name] = was[name] != is[name]
	}
	for name := range is {
		all[name] = was[name] != is[name]
	}
	maps.DeleteFunc(all, func(_ string, differs bool) bool { return !differs })
	return was, is, slices.Sorted(maps.Keys(all)), nil
}

// plainTree identifies the present files of a plain copy.
func (w *Worktree) plainTree(ctx context.Context) (string, error) {
	l, err := manifestOf(ctx, w.Tree())
	return l.digest(), err
}

// mergePlain stages the changes in a plain copy. A file that the user has changed too is a conflict.
func (m *Merge) mergePlain(ctx context.Context) error {
	was, is, names, err := m.w.changes(ctx)
	if err != nil {
		return err
	}
	tree, err := os.OpenRoot(m.w.Tree())
	if err != nil {
		return err
	}
	defer tree.Close()
	stage, err := os.OpenRoot(m.stage)
	if err != nil {
		return err
	}
	defer stage.Close()
	m.present = manifest{}
	removed := map[string]bool{}
	for _, name := range names {
		removed[name] = is[name] == node{}
	}
	for _, name := range names {
		now, err := describe(m.root, name)
		if err != nil {
			return err
		}
		m.present[name] = now
		c := Merged{Path: name}
		switch {
		case now == is[name]: // the user has changed it in the same way
			continue
		case now != was[name], now == node{} && !m.free(name, removed):
			m.Conflicts = append(m.Conflicts, name)
			continue
		case !removed[name]:
			c.Staged = filepath.Join(m.stage, filepath.FromSlash(name))
			if err := stageNode(tree, stage, name, is[name]); err != nil {
				return err
			}
		}
		m.Changes = append(m.Changes, c)
	}
	slices.SortStableFunc(m.Changes, func(a, b Merged) int { return len(b.removedFirst()) - len(a.removedFirst()) })
	return nil
}

// stageNode copies a file or link of the copy to the stage.
func stageNode(tree, stage *os.Root, name string, n node) error {
	if err := stage.MkdirAll(path.Dir(name), 0o777); err != nil {
		return err
	}
	if !n.Link {
		return copyFile(tree, name, stage, name)
	}
	target, err := tree.Readlink(name)
	if err != nil {
		return err
	}
	return stage.Symlink(target, name)
}

// currentPlain returns an error unless the user's files are those that were merged.
func (m *Merge) currentPlain() error {
	for _, c := range m.Changes {
		now, err := describe(m.root, c.Path)
		if err != nil {
			return err
		}
		if now != m.present[c.Path] {
			return fmt.Errorf("%s: %w: nothing was applied, try again", c.Path, errStale)
		}
	}
	return nil
}

// plainPatch writes how the changed files of a plain copy differ from the user's present files.
func (w *Worktree) plainPatch(ctx context.Context, to io.Writer) error {
	_, _, names, err := w.changes(ctx)
	if err != nil {
		return err
	}
	source, err := os.OpenRoot(w.Source)
	if err != nil {
		return err
	}
	defer source.Close()
	tree, err := os.OpenRoot(w.Tree())
	if err != nil {
		return err
	}
	defer tree.Close()
	for _, name := range names {
		old, oldShown := shownContent(source, name)
		now, nowShown := shownContent(tree, name)
		if diff, _ := text.Diff(name, old, now, contextLines, patchLines); oldShown && nowShown && diff != "" {
			_, err = io.WriteString(to, diff)
		} else {
			_, err = fmt.Fprintf(to, "--- %[1]s\n+++ %[1]s\n(%s)\n", text.Name(name), otherwise(tree, name))
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// otherwise describes a change that is none of lines.
func otherwise(tree *os.Root, name string) string {
	info, err := tree.Lstat(name)
	switch {
	case err != nil:
		return "removed"
	case info.Mode().IsRegular():
		return fmt.Sprintf("%d bytes, mode %04o", info.Size(), info.Mode().Perm())
	}
	target, err := tree.Readlink(name)
	if err != nil { // a directory
		return "removed"
	}
	return "a link to " + text.Name(target)
}

// shownContent returns the text of a file, "" if it does not exist. It reports false for what is not shown as a text.
func shownContent(root *os.Root, name string) (string, bool) {
	info, err := root.Lstat(name)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR) {
		return "", true
	}
	if err != nil || !info.Mode().IsRegular() || info.Size() > maxPatched {
		return "", false
	}
	f, err := openRegular(root, name)
	if err != nil {
		return "", false
	}
	defer f.Close()
	raw, err := io.ReadAll(io.LimitReader(f, maxPatched))
	return string(raw), err == nil && utf8.Valid(raw) && !bytes.ContainsRune(raw, 0)
}
