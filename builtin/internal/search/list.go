package search

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/toolhost/toolhost/builtin/internal/search/glob"
	"github.com/toolhost/toolhost/builtin/internal/search/ignore"
	"github.com/toolhost/toolhost/builtin/internal/search/walk"
)

// selection says which files of a scope are wanted.
type selection struct {
	overrides *ignore.Overrides
	types     *glob.Set
	noIgnore  bool
	// globs and typeNames are what overrides and types were made from.
	globs, typeNames []string
}

// wants reports whether a file that no glob matches is wanted by its name.
func (s *selection) wants(name string) bool { return s.types == nil || s.types.Match(name) }

// listing is the files of a scope in path order: by the names of their path
// elements, byte by byte, as `rg --sort path` has it.
type listing struct {
	root  *walk.Root
	path  string // the real path of root
	scope Scope
	top   string // path with slashes, ending in one
	shown string // prefix that makes a path below root the printed one
	start string // path from root to the searched directory, "" or ending in a slash
	files []file
	// direct says that Path is a file: it is searched whatever it is.
	direct bool

	overrides *ignore.Overrides // the globs of the query, if they are asked for notes

	room *ignore.Budget // for ignore files, nil where none are examined

	// tree is the source of the listing, nil if the file system was listed; gen is the tree's gen at that time.
	tree *tree
	gen  uint64
	// snapshot is the source of files, and dates are the dates of its candidates; nil if there are none.
	snapshot *snapshot
	dates    []int64
	// age is the age of the tree's contents if the query may use them, otherwise 0; stores says that it may add to them.
	age    uint64
	stores bool
	// chosen says that the files that are searched were selected by the index, and are few.
	chosen bool
	// fits says that the texts of all these files can be kept if others are evicted.
	fits bool

	failed  []failure // directories that could not be listed; see tell
	told    bool
	errors  errorList
	skipped // what ignore files leave out
}

// skipped is what ignore files leave out of a directory, or of all in a listing.
type skipped struct {
	pruned  []*dir // ignored directories that were not entered
	omitted []file // ignored files
	links   []file // what is neither a file nor a directory, such as symbolic links, and is not ignored
}

// dir is a directory of a listing.
type dir struct {
	rel      string // from the root, ending in a slash unless it is the root
	chain    *ignore.Chain
	children []child
	node     *node
	skipped  skipped
	was      *dir // the same directory in an older listing; nil once this one is complete
}

// child is an entry of a directory that is part of the listing.
type child struct {
	name  string
	dir   *dir // nil for a file
	entry *dirent
}

type file struct {
	dir   *dir
	name  string
	entry *dirent // nil when the file system was listed
	// number is the position of the file in the listing, in path order.
	number int32
	// excluded is the state in which, according to the index, no line of the file matches.
	excluded *fileState
}

func (f file) rel() string {
	if f.entry != nil {
		return f.entry.path
	}
	return f.dir.rel + f.name
}

func (l *listing) printed(f file) string  { return l.shown + f.rel() }
func (l *listing) real(rel string) string { return filepath.FromSlash(l.top + rel) }

func (l *listing) close() {
	if l.root != nil {
		l.root.Close()
	}
}

// hides reports whether an entry of a directory does not exist for this query.
func (l *listing) hides(d *dir, e walk.Entry, kept *dirent) bool {
	if l.scope.Hidden == nil {
		return false
	}
	if kept != nil {
		return l.scope.Hidden(kept.real, e.Kind == walk.Dir)
	}
	return l.scope.Hidden(l.real(d.rel+e.Name), e.Kind == walk.Dir)
}

// errorList gathers what could not be read.
type errorList struct {
	mu    sync.Mutex
	count int
	first string
	large string // the first path of those that are too large
}

func (t *errorList) add(path string, err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.count++
	if path == "" { // the root itself
		path = "."
	}
	if text := path + ": " + reason(err); t.first == "" || text < t.first {
		t.first = text
	}
}

// fail notes that a directory could not be listed.
func (l *listing) fail(d *dir, err error) {
	if l.told {
		l.errors.add(l.shown+d.rel, err)
		return
	}
	l.errors.mu.Lock()
	defer l.errors.mu.Unlock()
	l.failed = append(l.failed, failure{d.rel, err})
}

// tell counts the directories that could not be listed as unreadable, if of accepts them. From then on, fail counts
// each at once.
func (l *listing) tell(of func(rel string) bool) {
	l.told = true
	for _, f := range l.failed {
		if of(f.rel) {
			l.errors.add(l.shown+f.rel, f.err)
		}
	}
}

// reason returns the error without the path that it repeats.
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
	if scope.Name == "" && e.cache.list(ctx, l, sel) {
		return l, nil
	}
	chain := ignore.NewChain(&ignore.DirRules{Git: ignore.Parse(e.global(), nil)})
	l.room = ignore.NewBudget(ignore.MaxTree)
	if !sel.noIgnore {
		chain = l.above(chain)
	}
	top := &dir{rel: l.start, chain: chain}
	buffers := make([]walk.Buffer, e.config.Workers)
	walk.Parallel(ctx, e.config.Workers, top, func(worker int, d *dir) []*dir {
		return l.visit(d, sel, &buffers[worker])
	})
	l.files = l.flatten(make([]file, 0, top.files()), top)
	if scope.Name == "" {
		e.cache.note(l)
	}
	return l, nil
}

// visit lists one directory and returns the directories in it to visit.
func (l *listing) visit(d *dir, sel *selection, buf *walk.Buffer) []*dir {
	entries, err := l.root.List(strings.TrimSuffix(d.rel, "/"), buf)
	if err != nil && !walk.IsGone(err) {
		l.fail(d, err)
	}
	if !sel.noIgnore {
		rules, _ := ignore.ReadFiles(l.root, l.path, d.rel, entries, l.room)
		d.chain = d.chain.Push(rules.Parse(len(d.rel), "", l.room))
	}
	ignored := func(e walk.Entry) bool {
		return d.chain.Rules() && d.chain.Match(d.rel+e.Name, e.Kind == walk.Dir) == ignore.Ignored
	}
	d.children = make([]child, 0, len(entries))
	var dirs []*dir
	for _, e := range entries {
		if l.isLink(d, e, nil, sel, ignored) || e.Name == ".git" || !l.chooses(d, e, nil, sel, ignored) {
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
	d.chain = nil // the subdirectories have taken the rules they need, and a listing may outlive its rules
	return dirs
}

// isLink reports whether an entry is neither a file nor a directory. It adds such an entry to links unless ignore
// files leave it out.
func (l *listing) isLink(d *dir, e walk.Entry, kept *dirent, sel *selection, ignored func(walk.Entry) bool) bool {
	if e.Kind != walk.Other {
		return false
	}
	if e.Name != ".git" && (sel.noIgnore || !ignored(e)) && !l.hides(d, e, kept) {
		d.skipped.links = append(d.skipped.links, file{dir: d, name: e.Name, entry: kept})
	}
	return true
}

// chooses reports whether an entry is part of the listing. It records the entries that ignore files leave out. Hidden
// entries are in no listing, so that later steps need not check for them.
func (l *listing) chooses(d *dir, e walk.Entry, kept *dirent, sel *selection, ignored func(walk.Entry) bool) bool {
	chosen, omitted := l.judge(d, e, sel, ignored)
	if !chosen && !omitted || l.hides(d, e, kept) {
		return false
	}
	if omitted {
		d.omit(e, kept)
	}
	return chosen
}

// judge decides by globs, then ignore files, then types, as ripgrep does.
func (l *listing) judge(d *dir, e walk.Entry, sel *selection, ignored func(walk.Entry) bool) (chosen, omitted bool) {
	isDir := e.Kind == walk.Dir
	if sel.overrides != nil {
		if v := sel.overrides.Match(isDir, l.names(d.rel+e.Name)...); v != ignore.None {
			return v == ignore.Kept, false
		}
	}
	if !isDir && !sel.wants(e.Name) {
		return false, false
	}
	if sel.noIgnore || !ignored(e) {
		return true, false
	}
	if isDir && sel.overrides != nil && sel.overrides.MayContain(l.names(d.rel+e.Name)...) {
		return true, false
	}
	return false, true
}

// omit records an entry that ignore files leave out.
func (d *dir) omit(e walk.Entry, kept *dirent) {
	if e.Kind == walk.Dir {
		d.skipped.pruned = append(d.skipped.pruned, &dir{rel: d.rel + e.Name + "/", node: kept.dir()})
	} else {
		d.skipped.omitted = append(d.skipped.omitted, file{dir: d, name: e.Name, entry: kept})
	}
}

// names returns the paths of an entry that are matched with globs: relative to Path, and relative to Base if that is
// another path.
func (l *listing) names(rel string) []string {
	if l.shown == "" && l.start == "" {
		return []string{rel}
	}
	return []string{rel[len(l.start):], l.shown + rel}
}

// within returns a function that makes a path below root relative to dir, in which all listed files lie. The path of
// a single file is not changed.
func (l *listing) within(dir string) func(rel string) string {
	if l.direct {
		return func(rel string) string { return rel }
	}
	top := strings.TrimSuffix(l.top, "/")
	prefix, ok := relativeTo(dir, filepath.FromSlash(withSlash(top)))
	switch {
	case ok && prefix == "":
		return func(rel string) string { return rel }
	case ok:
		return func(rel string) string { return prefix + rel }
	}
	cut, _ := relativeTo(withSlash(top), dir)
	return func(rel string) string { return rel[len(cut):] }
}

// files returns the number of files and directories below d, which is an upper bound for the length of its listing.
func (d *dir) files() int {
	n := len(d.children)
	for _, c := range d.children {
		if c.dir != nil {
			n += c.dir.files()
		}
	}
	return n
}

// flatten appends the files below d in path order, and collects what ignore files left out.
func (l *skipped) flatten(files []file, d *dir) []file {
	l.pruned, l.omitted = append(l.pruned, d.skipped.pruned...), append(l.omitted, d.skipped.omitted...)
	l.links = append(l.links, d.skipped.links...)
	for _, c := range d.children {
		if c.dir != nil {
			files = l.flatten(files, c.dir)
		} else {
			files = append(files, file{dir: d, name: c.name, entry: c.entry, number: int32(len(files))})
		}
	}
	return files
}
