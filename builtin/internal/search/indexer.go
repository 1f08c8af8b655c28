package search

import (
	"context"
	"errors"
	"path/filepath"
	"slices"
	"sync/atomic"

	"toolhost/builtin/internal/search/index"
	"toolhost/builtin/internal/search/walk"
)

// index makes the index of a tree and brings it up to date when asked, until
// ctx ends. It works while no query runs.
func (t *keptTree) index(ctx context.Context, g *gate) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-t.wake:
		}
		if g.pause(ctx) != nil {
			return
		}
		if root, err := walk.OpenRoot(t.path); err == nil {
			x := &indexer{keptTree: t, root: root, gate: g}
			x.run(ctx)
			root.Close()
			t.done(x.age)
		}
	}
}

// done notes that an index has been made for a stock of that age.
func (t *keptTree) done(age uint64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.wanted, t.built = false, age
	t.progress.set(Ready)
	if t.built != t.age {
		t.want()
	}
}

// indexer makes segments of the files that are not in the index as they are.
type indexer struct {
	*keptTree
	root    *walk.Root
	gate    *gate
	age     uint64
	scope   Scope
	builder index.Builder
	added   []*dirent
	looks   []*known
	corpus  int64
	buf     []byte
	stop    atomic.Bool
}

func (x *indexer) run(ctx context.Context) {
	stop := context.AfterFunc(ctx, func() { x.stop.Store(true) })
	defer stop()
	for _, f := range x.missing(ctx) {
		if x.gate.pause(ctx) != nil || !x.file(f) {
			return
		}
		if x.builder.Full() && !x.flush() {
			return
		}
	}
	x.flush()
}

// missing lists the files that are not in the index as they are, by number.
func (x *indexer) missing(ctx context.Context) []file {
	x.mu.Lock()
	defer x.mu.Unlock()
	if len(x.segments) >= maxSegments {
		x.empty()
	}
	x.age, x.scope = x.stock.age, Scope{Base: x.path, Path: x.path, Hidden: x.hidden, HiddenTag: x.rules.tag}
	l := &listing{root: x.root, path: x.path, scope: x.scope, top: withSlash(filepath.ToSlash(x.path))}
	if !x.sync(ctx, x.root, 1) {
		return nil
	}
	s := x.snapshot(ctx, l, &selection{}, 1)
	if s == nil {
		return nil
	}
	var out []file
	for _, f := range s.files {
		if k := f.kept.known.Load(); k == nil || k.age != x.age || !k.indexed || k.version != f.kept.version.Load() {
			if f.kept.id == 0 {
				x.ids++
				f.kept.id = x.ids
			}
			out = append(out, f)
		}
	}
	slices.SortFunc(out, func(a, b file) int { return int(a.kept.id) - int(b.kept.id) })
	return out
}

// maxSegments is from how many segments on the index is made anew, without what
// has been deleted since.
const maxSegments = 256

// file adds one file. False: there is no sense in going on.
func (x *indexer) file(f file) bool {
	e := f.kept
	if x.scope.hides(filepath.FromSlash(withSlash(x.path)+e.path), false) || x.dead.Load() {
		return !x.dead.Load()
	}
	k := &known{version: e.version.Load(), age: x.age}
	if old := x.current(x.root, e, x.age); old != nil && (old.text != nil || old.indexed) {
		if old.indexed { // current has renewed it
			return true
		}
		*k = *old
		x.add(e, k, k.text)
		return true
	}
	h, err := x.root.Open(e.path)
	if err != nil {
		return true // queries find that out too
	}
	defer h.Close()
	if !k.look(h) {
		return true
	}
	raw, err := reader{x.engine.config.MaxFile, false, &x.stop}.read(h, &x.buf, f.dir.local)
	switch {
	case x.stop.Load():
		return false
	case errors.Is(err, errTooLarge):
		k.content = contentTooLarge
		x.keep(e, k)
	case errors.Is(err, errBinary):
		k.content = contentBinary
		x.keep(e, k)
	case err == nil:
		if x.room(len(raw)) {
			k.text = append([]byte{}, raw...)
		}
		x.add(e, k, raw)
	}
	return true
}

func (x *indexer) add(e *dirent, k *known, raw []byte) {
	text := k.describe(raw)
	x.builder.Add(e.id, text)
	x.added, x.looks = append(x.added, e), append(x.looks, k)
	x.corpus += int64(len(text))
}

// flush makes a segment of what was added. False: the index may not grow, or
// what it is made for is gone.
func (x *indexer) flush() bool {
	if len(x.added) == 0 {
		return true
	}
	s := x.builder.Flush()
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.dead.Load() || x.stock.age != x.age {
		return false
	}
	size, corpus := x.size+int64(s.Size()), x.stock.corpus+x.corpus
	if size > max(corpus*indexPercent/100, smallIndex) || x.engine.memory.Load()+int64(s.Size()) > x.engine.config.MaxMemory {
		x.full = true
		return false
	}
	x.segments = append(x.segments, s)
	x.size, x.stock.corpus = size, corpus
	x.engine.memory.Add(int64(s.Size()))
	for i, e := range x.added {
		if !e.node.gone && e.id != 0 {
			k := x.looks[i]
			k.indexed = true
			x.learn(e, k)
		}
	}
	x.added, x.looks, x.corpus = x.added[:0], x.looks[:0], 0
	return true
}

const (
	// indexPercent bounds the index to a part of the texts that are in it; what
	// has been indexed many times over counts each time.
	indexPercent = 25
	// smallIndex is the size in bytes that any index may have: trigrams weigh
	// more in few texts.
	smallIndex = 8 << 20
)
