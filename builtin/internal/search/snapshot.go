package search

import (
	"context"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/toolhost/toolhost/builtin/internal/search/walk"
)

// snapshot is a listing of a tree as it was at one moment, for the next query
// that asks for the same files while nothing has changed.
type snapshot struct {
	key     string
	gen     uint64
	top     *dir
	files   []file
	skipped skipped
	failed  []failure

	packing    sync.Once
	packed     *paths
	candidates *candidates // needs the tree's mu
}

// failure is a directory that could not be listed.
type failure struct {
	rel string
	err error
}

// maxSnapshots is how many listings are kept of one tree: of the last queries
// with different globs, types and paths.
const maxSnapshots = 8

// lister fills a listing from a tree.
type lister struct {
	tree    *tree
	listing *listing
	sel     *selection
	workers int
}

// list fills the listing with what is kept. It reports false when it cannot; then the
// listing is unchanged.
func (r lister) list(ctx context.Context) bool {
	t, l := r.tree, r.listing
	if !t.ready.Load() || t.dead.Load() {
		return false
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	var s *snapshot
	for s == nil || t.linked {
		if !t.sync(ctx, l.root, r.workers) {
			return false
		}
		if s = r.snapshot(ctx); s == nil {
			return false
		}
	}
	l.tree, l.gen, l.room = t, s.gen, t.room
	l.age, l.stores = t.contents.admit(&l.scope)
	l.files, l.skipped = s.files, s.skipped
	if l.age != 0 {
		l.snapshot, l.dates = s, s.current(t).dates
	}
	l.failed = s.failed
	return true
}

// snapshot returns the files that the selection asks for. It needs the tree's mu, and
// a tree that is in sync.
func (r lister) snapshot(ctx context.Context) *snapshot {
	t := r.tree
	key, keyed := r.listing.key(r.sel)
	was := &snapshot{}
	if i := slices.IndexFunc(t.snapshots, func(s *snapshot) bool { return s.key == key }); keyed && i >= 0 {
		was = t.snapshots[i]
		t.snapshots = slices.Delete(t.snapshots, i, i+1)
	}
	s := was
	if was.top == nil || was.gen != t.gen {
		s = r.rebuild(ctx, was)
	}
	if s != nil && keyed {
		s.key = key
		t.snapshots = slices.Insert(t.snapshots, 0, s)
		t.snapshots = t.snapshots[:min(len(t.snapshots), maxSnapshots)]
	}
	return s
}

// rebuild makes a snapshot. It reuses the directories of an older one in which nothing
// has changed.
func (r lister) rebuild(ctx context.Context, was *snapshot) *snapshot {
	t := r.tree
	n := r.start()
	if n == nil {
		return nil
	}
	top := &dir{rel: n.rel, node: n, was: was.top}
	buffers := make([]walk.Buffer, r.workers)
	walk.Parallel(ctx, r.workers, top, func(worker int, d *dir) []*dir {
		dirs := r.visit(d, &buffers[worker])
		if d.was != nil {
			dirs = d.reuse(was.gen)
		}
		return dirs
	})
	gen := t.gen
	t.applyPending()
	if ctx.Err() != nil || t.dead.Load() {
		return nil
	}
	s := &snapshot{gen: gen, top: top}
	s.files = s.skipped.flatten(make([]file, 0, top.files()), top)
	s.failed = failures(nil, top)
	return s
}

// reuse replaces the subdirectories that have not changed since that gen of the tree by those of the older listing.
// It returns the other subdirectories.
func (d *dir) reuse(gen uint64) (others []*dir) {
	was := d.was
	d.was = nil
	for i := range d.children {
		c := &d.children[i]
		if c.dir == nil {
			continue
		}
		at, ok := slices.BinarySearchFunc(was.children, c.name,
			func(c child, name string) int { return strings.Compare(c.name, name) })
		if ok && was.children[at].dir != nil && was.children[at].dir.node == c.dir.node {
			if c.dir.node.gen <= gen {
				c.dir = was.children[at].dir
				continue
			}
			c.dir.was = was.children[at].dir
		}
		others = append(others, c.dir)
	}
	return others
}

// key identifies a snapshot. Rules about what is hidden that have no tag may differ
// each time: no snapshot is kept for them.
func (l *listing) key(sel *selection) (string, bool) {
	if l.scope.Hidden != nil && l.scope.HiddenTag == "" {
		return "", false
	}
	key := []byte{'i', 'v'}
	if sel.noIgnore {
		key[0] = 'a'
	}
	if l.scope.Hidden != nil {
		key[1] = 'h'
	}
	for _, texts := range [...][]string{{l.start, l.scope.HiddenTag}, sel.globs, sel.typeNames} {
		key = append(strconv.AppendInt(key, int64(len(texts)), 10), ' ')
		for _, text := range texts {
			key = append(strconv.AppendInt(key, int64(len(text)), 10), ':')
			key = append(key, text...)
		}
	}
	return string(key), true
}

// start returns the directory that is searched, or nil if it does not exist. It lists the directories on the way
// there.
func (r lister) start() *node {
	n, buf := r.tree.top, new(walk.Buffer)
	for name := range strings.SplitSeq(strings.TrimSuffix(r.listing.start, "/"), "/") {
		if r.listing.start == "" {
			break
		}
		if !n.listed {
			r.tree.read(r.listing.root, n, buf)
		}
		i, ok := n.find(name)
		if !ok || n.entries[i].sub == nil {
			return nil
		}
		n = n.entries[i].sub
	}
	return n
}

// visit is listing.visit for a directory of the tree.
func (r lister) visit(d *dir, buf *walk.Buffer) []*dir {
	n := d.node
	if !n.listed {
		r.tree.read(r.listing.root, n, buf)
	}
	var dirs []*dir
	d.children = make([]child, 0, len(n.entries))
	for _, e := range n.entries {
		ignored := func(walk.Entry) bool { return e.ignored }
		l, listed := r.listing, walk.Entry{Name: e.name, Kind: e.kind}
		if l.isLink(d, listed, e, r.sel, ignored) || e.name == ".git" || !l.chooses(d, listed, e, r.sel, ignored) {
			continue
		}
		c := child{name: e.name, entry: e}
		if e.sub != nil {
			c.dir = &dir{rel: e.sub.rel, node: e.sub}
			dirs = append(dirs, c.dir)
		}
		d.children = append(d.children, c)
	}
	return dirs
}

// failures lists the directories that could not be listed.
func failures(out []failure, d *dir) []failure {
	if d.node.err != nil {
		out = append(out, failure{d.rel, d.node.err})
	}
	for _, c := range d.children {
		if c.dir != nil {
			out = failures(out, c.dir)
		}
	}
	return out
}

// visitSkipped returns a function that visits directories that the listing has left out: in
// the tree, which is locked until done is called, or on disk if the tree has changed.
func (l *listing) visitSkipped() (visit func(*dir, *selection, *walk.Buffer) []*dir, done func()) {
	t := l.tree
	if t == nil {
		return l.visit, func() {}
	}
	t.mu.Lock()
	if t.dead.Load() || t.gen != l.gen {
		t.mu.Unlock()
		return l.visit, func() {}
	}
	visit = func(d *dir, sel *selection, buf *walk.Buffer) []*dir {
		dirs := lister{tree: t, listing: l, sel: sel}.visit(d, buf)
		if d.node.err != nil {
			l.errors.add(l.shown+d.rel, d.node.err)
		}
		return dirs
	}
	return visit, t.mu.Unlock
}
