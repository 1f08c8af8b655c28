package search

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"

	"toolhost/builtin/internal/search/filetype"
	"toolhost/builtin/internal/search/ignore"
	"toolhost/builtin/internal/search/walk"
)

// selection is which files of a scope are wanted.
type selection struct {
	overrides *ignore.Overrides
	types     *filetype.Set
	noIgnore  bool
}

// wants reports whether a file that no glob speaks of is wanted by its name.
func (s *selection) wants(name string) bool { return s.types == nil || s.types.Match(name) }

// listing is the files of a scope in path order: by the names of their path
// elements, byte by byte, as `rg --sort path` has it.
type listing struct {
	root  *walk.Root
	scope Scope
	top   string // the real path of root, ending in a slash
	shown string // what leads from a path below root to the printed one
	files []file
	// direct says that Path is a file: it is searched whatever it is.
	direct bool

	troubles troubles
	mu       sync.Mutex
	pruned   []*dir // ignored directories that were not entered
	omitted  []file // ignored files
}

// dir is a directory of a listing.
type dir struct {
	rel      string // from the root, ending in a slash unless it is the root
	chain    *ignore.Chain
	children []child
	local    bool // see walk.Buffer.Local
}

// child is an entry of a directory that is part of the listing.
type child struct {
	name string
	dir  *dir // nil for a file
}

type file struct {
	dir  *dir
	name string
}

func (f file) rel() string                { return f.dir.rel + f.name }
func (l *listing) path(f file) string     { return l.shown + f.dir.rel + f.name }
func (l *listing) real(rel string) string { return filepath.FromSlash(l.top + rel) }

func (l *listing) close() {
	if l.root != nil {
		l.root.Close()
	}
}

// troubles gathers what could not be read.
type troubles struct {
	mu    sync.Mutex
	count int
	first string
	large string // the first path of those that are too large
}

func (t *troubles) add(path string, err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.count++
	if text := path + ": " + reason(err); t.first == "" || text < t.first {
		t.first = text
	}
}

// reason drops the path that an error repeats.
func reason(err error) string {
	var pe *os.PathError
	if errors.As(err, &pe) {
		err = pe.Err
	}
	return err.Error()
}

// list finds the files of a scope. The listing must be closed.
func (e *Engine) list(ctx context.Context, scope Scope, sel *selection) (*listing, error) {
	l, err := openScope(scope)
	if err != nil || l.direct {
		return l, err
	}
	chain := ignore.NewChain(e.globalLevel(scope))
	if !sel.noIgnore {
		chain = above(chain, filepath.Clean(scope.Path))
	}
	top := &dir{chain: chain}
	buffers := make([]walk.Buffer, e.config.Workers)
	walk.Parallel(ctx, e.config.Workers, top, func(worker int, d *dir) []*dir {
		return l.visit(d, sel, &buffers[worker])
	})
	l.files = flatten(l.files, top)
	return l, nil
}

// openScope opens the directory to search, or the directory of the one file.
func openScope(scope Scope) (*listing, error) {
	path := filepath.Clean(scope.Path)
	if !filepath.IsAbs(path) {
		return nil, fmt.Errorf("%w %s: the path is not absolute", ErrScope, scope.Path)
	}
	l := &listing{scope: scope}
	info, err := os.Lstat(path)
	if err != nil {
		return nil, fmt.Errorf("%w %s: %s", ErrScope, path, reason(err))
	}
	name := ""
	switch {
	case scope.hides(path, info.IsDir()):
		return nil, fmt.Errorf("%w %s: %s", ErrScope, path, reason(syscall.ENOENT))
	case info.Mode().IsRegular():
		path, name = filepath.Split(path)
		path = filepath.Clean(path)
	case !info.IsDir():
		return nil, fmt.Errorf("%w %s: it is neither a file nor a directory (%s)", ErrScope, path, info.Mode().Type())
	}
	if l.root, err = walk.OpenRoot(path); err != nil {
		return nil, fmt.Errorf("%w %s: %s", ErrScope, path, reason(err))
	}
	l.top = withSlash(filepath.ToSlash(path))
	l.shown = l.top
	if rel, ok := below(scope.Base, path); ok {
		l.shown = rel
	}
	if name != "" {
		l.direct = true
		l.files = []file{{&dir{}, name}}
	}
	return l, nil
}

// below returns what leads from base to path: "" or ending in a slash.
func below(base, path string) (string, bool) {
	if base == "" {
		return "", false
	}
	rel, err := filepath.Rel(base, path)
	switch {
	case err != nil || rel == ".." || strings.HasPrefix(rel, ".."+string(filepath.Separator)):
		return "", false
	case rel == ".":
		return "", true
	}
	return filepath.ToSlash(rel) + "/", true
}

func withSlash(path string) string {
	if strings.HasSuffix(path, "/") {
		return path
	}
	return path + "/"
}

// visit lists one directory and returns those below it that are to be visited.
func (l *listing) visit(d *dir, sel *selection, buf *walk.Buffer) []*dir {
	entries, err := l.root.List(strings.TrimSuffix(d.rel, "/"), buf)
	if err != nil && !walk.IsGone(err) {
		l.troubles.add(l.shown+d.rel, err)
	}
	d.local = buf.Local
	if !sel.noIgnore {
		d.chain = d.chain.Push(l.level(d, entries))
	}
	var dirs []*dir
	for _, e := range entries {
		if e.Kind == walk.Other || e.Name == ".git" || !l.chooses(d, e, sel) {
			continue
		}
		c := child{name: e.Name}
		if e.Kind == walk.Dir {
			c.dir = &dir{rel: d.rel + e.Name + "/", chain: d.chain}
			dirs = append(dirs, c.dir)
		}
		d.children = append(d.children, c)
	}
	slices.SortFunc(d.children, func(a, b child) int { return strings.Compare(a.name, b.name) })
	return dirs
}

// chooses decides about one entry: globs before ignore files before types, as
// in ripgrep.
func (l *listing) chooses(d *dir, e walk.Entry, sel *selection) bool {
	rel := d.rel + e.Name
	isDir := e.Kind == walk.Dir
	if isDir && l.scope.hides(l.real(rel), true) {
		return false
	}
	if sel.overrides != nil {
		if v := sel.overrides.Match(isDir, l.names(rel)...); v != ignore.None {
			return v == ignore.Kept
		}
	}
	if !isDir && !sel.wants(e.Name) {
		return false
	}
	if sel.noIgnore || d.chain.Match(rel, isDir) != ignore.Ignored {
		return true
	}
	switch {
	case isDir && sel.overrides != nil && sel.overrides.Leads(l.names(rel)...):
		return true
	case isDir:
		l.mu.Lock()
		l.pruned = append(l.pruned, &dir{rel: rel + "/"})
		l.mu.Unlock()
	default:
		l.mu.Lock()
		l.omitted = append(l.omitted, file{d, e.Name})
		l.mu.Unlock()
	}
	return false
}

// names are the paths by which globs know an entry: relative to Base, and
// relative to Path where that is not the same.
func (l *listing) names(rel string) []string {
	if l.shown == "" {
		return []string{rel}
	}
	return []string{rel, l.shown + rel}
}

// flatten appends the files below d in path order.
func flatten(files []file, d *dir) []file {
	for _, c := range d.children {
		if c.dir != nil {
			files = flatten(files, c.dir)
		} else {
			files = append(files, file{d, c.name})
		}
	}
	return files
}

// level reads the ignore files that a directory holds.
func (l *listing) level(d *dir, entries []walk.Entry) *ignore.Level {
	lv := &ignore.Level{Depth: len(d.rel)}
	for _, e := range entries {
		switch e.Name {
		case ignore.RgIgnore:
			lv.Rg = readRules(l.root, d.rel+e.Name)
		case ignore.DotIgnore:
			lv.Dot = readRules(l.root, d.rel+e.Name)
		case ignore.GitIgnore:
			lv.Git = readRules(l.root, d.rel+e.Name)
		case ".git":
			lv.Repo = true
			lv.Excl = readRules(l.root, d.rel+ignore.Exclude)
		case ".jj":
			lv.Repo = true
		}
	}
	return lv
}

// readRules reads an ignore file; one that cannot be read has no rules.
func readRules(root *walk.Root, rel string) *ignore.Rules {
	h, err := root.OpenWithin(rel)
	if err != nil {
		return nil
	}
	defer h.Close()
	content, err := io.ReadAll(io.LimitReader(h, ignore.MaxFile+1))
	if err != nil {
		return nil
	}
	return ignore.Parse(content)
}

// above adds the ignore files of the directories that the path lies in.
func above(chain *ignore.Chain, path string) *ignore.Chain {
	var dirs []string
	for p := path; filepath.Dir(p) != p; p = filepath.Dir(p) {
		dirs = append(dirs, filepath.Dir(p))
	}
	slices.Reverse(dirs) // the nearest is pushed last
	for _, d := range dirs {
		root, err := walk.OpenRoot(d)
		if err != nil {
			continue
		}
		rel, _ := below(d, path)
		lv := &ignore.Level{
			Above: rel,
			Rg:    readRules(root, ignore.RgIgnore),
			Dot:   readRules(root, ignore.DotIgnore),
			Git:   readRules(root, ignore.GitIgnore),
			Excl:  readRules(root, ignore.Exclude),
		}
		for _, mark := range []string{".git", ".jj"} {
			if _, err := root.Stat(mark); err == nil {
				lv.Repo = true
			}
		}
		root.Close()
		chain = chain.Push(lv)
	}
	return chain
}

// globalLevel holds the user's global excludes.
func (e *Engine) globalLevel(scope Scope) *ignore.Level {
	lv := &ignore.Level{}
	if rel, ok := below(scope.Base, scope.Path); ok {
		lv.Above = rel
	}
	name := e.config.GlobalIgnore
	if name == "" {
		name = globalExcludes()
	}
	if name == "" {
		return lv
	}
	f, err := os.Open(name)
	if err != nil {
		return lv
	}
	defer f.Close()
	if info, err := f.Stat(); err != nil || !info.Mode().IsRegular() {
		return lv
	}
	if content, err := io.ReadAll(io.LimitReader(f, ignore.MaxFile+1)); err == nil {
		lv.Git = ignore.Parse(content)
	}
	return lv
}
