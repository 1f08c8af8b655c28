package search

import (
	"context"
	"slices"
	"strconv"
	"strings"
	"sync"

	"toolhost/builtin/internal/search/walk"
)

// snapshot is a listing of a tree as it was at one moment, for the next query
// that asks for the same files while nothing has changed.
type snapshot struct {
	key    string
	gen    uint64
	top    *dir
	files  []file
	left   left
	failed []failure

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

// list fills the listing with what is known. False: it cannot, and the listing
// is as it was.
func (t *keptTree) list(ctx context.Context, l *listing, sel *selection) bool {
	if !t.ready.Load() || t.dead.Load() {
		return false
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	var s *snapshot
	for s == nil || t.linked {
		if !t.syncLinked(ctx, l.root) {
			return false
		}
		if s = t.snapshot(ctx, l, sel, t.engine.config.Workers); s == nil {
			return false
		}
	}
	l.kept, l.gen, l.room = t, s.gen, t.room
	l.stocked, l.learns = t.admit(&l.scope)
	l.files, l.left = s.files, s.left
	if l.stocked != 0 {
		l.snapshot, l.dates = s, t.candidatesOf(s).dates
	}
	l.failed = s.failed
	return true
}

// syncLinked is sync, of everything if files have been found that others may be names of.
func (t *keptTree) syncLinked(ctx context.Context, root *walk.Root) bool {
	if t.linked {
		t.linked = false
		t.doubt(t.top)
	}
	return t.sync(ctx, root, t.engine.config.Workers)
}

// snapshot returns the files that a selection asks for. It needs mu, and a
// tree that is in sync.
func (t *keptTree) snapshot(ctx context.Context, l *listing, sel *selection, workers int) *snapshot {
	key, keyed := l.key(sel)
	was := &snapshot{}
	if i := slices.IndexFunc(t.snapshots, func(s *snapshot) bool { return s.key == key }); keyed && i >= 0 {
		was = t.snapshots[i]
		t.snapshots = slices.Delete(t.snapshots, i, i+1)
	}
	s := was
	if was.top == nil || was.gen != t.gen {
		s = t.renewed(ctx, l, sel, workers, was)
	}
	if s != nil && keyed {
		s.key = key
		t.snapshots = slices.Insert(t.snapshots, 0, s)
		t.snapshots = t.snapshots[:min(len(t.snapshots), maxSnapshots)]
	}
	return s
}

// renewed makes a snapshot, of directories in which nothing has changed from what they were.
func (t *keptTree) renewed(ctx context.Context, l *listing, sel *selection, workers int, was *snapshot) *snapshot {
	w := &listing{root: l.root, path: l.path, scope: l.scope, top: l.top, shown: l.shown, start: l.start}
	n := t.node(l.root, l.start)
	if n == nil {
		return nil
	}
	top := &dir{rel: n.rel, kept: n, was: was.top}
	t.visitAll(ctx, w, top, sel, workers, was.gen)
	gen := t.gen
	t.settle()
	if ctx.Err() != nil || t.dead.Load() {
		return nil
	}
	s := &snapshot{gen: gen, top: top}
	s.files = s.left.flatten(make([]file, 0, top.files()), top)
	s.failed = failures(nil, top)
	return s
}

// visitAll visits a directory and all below it, but for what is as it was when the tree was of that gen.
func (t *keptTree) visitAll(ctx context.Context, l *listing, top *dir, sel *selection, workers int, gen uint64) {
	buffers := make([]*walk.Buffer, workers)
	walk.Parallel(ctx, workers, top, func(worker int, d *dir) []*dir {
		if buffers[worker] == nil {
			buffers[worker] = new(walk.Buffer)
		}
		dirs := t.visit(l, d, sel, buffers[worker])
		if d.was != nil {
			dirs = d.reuse(gen)
		}
		return dirs
	})
}

// reuse puts the directories in one that are as they were when the tree was of that gen, and
// all below them, in the place of new ones, and returns the others.
func (d *dir) reuse(gen uint64) (others []*dir) {
	was := d.was
	d.was = nil
	for i := range d.children {
		c := &d.children[i]
		if c.dir == nil {
			continue
		}
		at, ok := slices.BinarySearchFunc(was.children, c.name, func(c child, name string) int { return strings.Compare(c.name, name) })
		if ok && was.children[at].dir != nil && was.children[at].dir.kept == c.dir.kept {
			if c.dir.kept.gen <= gen {
				c.dir = was.children[at].dir
				continue
			}
			c.dir.was = was.children[at].dir
		}
		others = append(others, c.dir)
	}
	return others
}

// key tells snapshots apart. Rules about what is hidden that have no tag may
// be others each time: nothing is kept for them.
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

// node finds a directory of the tree, and lists what leads there.
func (t *keptTree) node(root *walk.Root, rel string) *node {
	n, buf := t.top, new(walk.Buffer)
	for name := range strings.SplitSeq(strings.TrimSuffix(rel, "/"), "/") {
		if rel == "" {
			break
		}
		if !n.listed {
			t.read(root, n, buf)
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
func (t *keptTree) visit(l *listing, d *dir, sel *selection, buf *walk.Buffer) []*dir {
	n := d.kept
	if !n.listed {
		t.read(l.root, n, buf)
	}
	var dirs []*dir
	d.children = make([]child, 0, len(n.entries))
	for _, e := range n.entries {
		ignored := func(walk.Entry) bool { return e.ignored }
		if e.kind == walk.Other || e.name == ".git" || !l.chooses(d, walk.Entry{Name: e.name, Kind: e.kind}, e, sel, ignored) {
			continue
		}
		c := child{name: e.name, kept: e}
		if e.sub != nil {
			c.dir = &dir{rel: e.sub.rel, kept: e.sub}
			dirs = append(dirs, c.dir)
		}
		d.children = append(d.children, c)
	}
	return dirs
}

// failures lists the directories that could not be listed.
func failures(out []failure, d *dir) []failure {
	if d.kept.err != nil {
		out = append(out, failure{d.rel, d.kept.err})
	}
	for _, c := range d.children {
		if c.dir != nil {
			out = failures(out, c.dir)
		}
	}
	return out
}

// deeper returns what visits directories that the listing has left out: in the
// tree, which is locked until done is called, or on disk if the tree has
// changed since.
func (l *listing) deeper() (visit func(*dir, *selection, *walk.Buffer) []*dir, done func()) {
	t := l.kept
	if t == nil {
		return l.visit, func() {}
	}
	t.mu.Lock()
	if t.dead.Load() || t.gen != l.gen {
		t.mu.Unlock()
		return l.visit, func() {}
	}
	visit = func(d *dir, sel *selection, buf *walk.Buffer) []*dir {
		dirs := t.visit(l, d, sel, buf)
		if d.kept.err != nil {
			l.troubles.add(l.shown+d.rel, d.kept.err)
		}
		return dirs
	}
	return visit, t.mu.Unlock
}
