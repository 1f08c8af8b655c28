package search

import (
	"cmp"
	"context"
	"errors"
	"path/filepath"
	"runtime/debug"
	"slices"
	"sync/atomic"

	"github.com/toolhost/toolhost/builtin/internal/search/index"
	"github.com/toolhost/toolhost/builtin/internal/search/walk"
)

// runIndexer makes the index of a tree, and updates it whenever contents.wake receives, until ctx ends. It pauses
// while queries run.
func runIndexer(ctx context.Context, t *tree, g *backgroundGate) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-t.contents.wake:
		}
		if g.pause(ctx) != nil {
			continue
		}
		root, err := walk.OpenRoot(t.path)
		if err != nil { // the next query makes a new tree
			t.dead.Store(true)
			t.contents.progress.set(Walking)
			return
		}
		x := &indexer{t: t, root: root, gate: g}
		for ctx.Err() == nil && x.begin() {
			x.run(ctx)
			x.end()
		}
		root.Close()
		if x.total > muchWork {
			debug.FreeOSMemory() // otherwise the process would keep the memory for minutes
		}
	}
}

// muchWork is the number of indexed files from which memory is returned to the system.
const muchWork = 1000

// begin takes the next filter that is due, if there is one.
func (x *indexer) begin() bool {
	x.t.mu.Lock()
	defer x.t.mu.Unlock()
	i := slices.IndexFunc(x.t.contents.filters, func(v *filter) bool { return v.due })
	if i < 0 || x.t.dead.Load() {
		x.t.contents.progress.set(Ready)
		return false
	}
	x.of, x.failed = x.t.contents.filters[i], 0
	return true
}

// end notes that the filter's files have been indexed, as far as possible.
func (x *indexer) end() {
	x.t.mu.Lock()
	defer x.t.mu.Unlock()
	x.of.built, x.of.failed, x.of.due = x.age, x.failed, x.age != x.t.contents.age
	x.added, x.looks, x.corpus, x.texts = nil, nil, 0, 0
}

// indexer makes segments of the files that are not in the index as they are.
type indexer struct {
	t       *tree
	root    *walk.Root
	gate    *backgroundGate
	of      *filter
	failed  int // see filter
	age     uint64
	builder index.Builder
	added   []*dirent
	looks   []*fileState
	corpus  int64
	texts   int64 // bytes of texts in looks
	total   int   // files that were added
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
		if x.builder.Full() && !x.flush(mergeable) {
			return
		}
	}
	x.flush(func(a, b *index.Segment) bool { return a.Size()+b.Size() < maxSegment })
}

// missing lists the files whose present state is not in the index, by number.
func (x *indexer) missing(ctx context.Context) []numbered {
	x.t.mu.Lock()
	defer x.t.mu.Unlock()
	if x.t.contents.adds > 2*x.t.files+manyAdds {
		x.t.empty() // much of the index describes older states of files
	}
	x.age = x.t.contents.age
	scope := Scope{Base: x.t.path, Path: x.t.path, Hidden: x.of.hidden, HiddenTag: x.of.tag}
	l := &listing{root: x.root, path: x.t.path, scope: scope, top: withSlash(filepath.ToSlash(x.t.path))}
	if !x.t.sync(ctx, x.root, 1) {
		return nil
	}
	s := lister{x.t, l, &selection{}, 1}.snapshot(ctx)
	if s == nil {
		return nil
	}
	var out []numbered
	for _, f := range s.files {
		if k := f.entry.state.Load(); k == nil || k.age != x.age || !k.indexed || k.version != f.entry.version.Load() {
			if f.entry.id == 0 {
				x.t.contents.ids++
				f.entry.id = x.t.contents.ids
			}
			out = append(out, numbered{f, f.entry.id})
		}
	}
	slices.SortFunc(out, func(a, b numbered) int { return cmp.Compare(a.id, b.id) })
	return out
}

// numbered is a file with its number in the index of this age, for use without mu.
type numbered struct {
	file
	id uint32
}

// manyAdds is how many files even a small tree may add to its index before the index is rebuilt.
const manyAdds = 10_000

// file adds one file. It reports false when the indexer has to stop.
func (x *indexer) file(f numbered) bool {
	e := f.entry
	if x.t.dead.Load() {
		return false
	}
	k := &fileState{version: e.version.Load(), age: x.age}
	if old := currentState(x.t, x.root, e, x.age); old != nil && (old.text != nil || old.indexed) {
		if old.indexed { // currentState has renewed the record
			return true
		}
		*k = *old
		x.add(f, k, k.text)
		return true
	}
	h, err := x.root.Open(e.path)
	if err != nil {
		x.failed++
		return true // a query reports the error
	}
	defer h.Close()
	if !k.refresh(h) {
		x.failed++
		return true
	}
	raw, err := reader{maxFile: x.t.engine.config.MaxFile, stop: &x.stop}.read(h, &x.buf)
	switch {
	case x.stop.Load():
		return false
	case errors.Is(err, errTooLarge):
		k.content = contentTooLarge
		x.t.keep(e, k)
	case errors.Is(err, errBinary):
		k.content = contentBinary
		x.t.keep(e, k)
	case err != nil:
		x.failed++
	default:
		if n := int64(len(raw)); x.t.engine.texts.makeRoom(x.texts+n, false) {
			k.text = append([]byte{}, raw...)
			x.texts += n
		}
		x.add(f, k, raw)
	}
	return true
}

func (x *indexer) add(f numbered, k *fileState, raw []byte) {
	text := k.describe(raw)
	x.builder.Add(f.id, text)
	x.added, x.looks = append(x.added, f.entry), append(x.looks, k)
	x.corpus += int64(len(text))
}

// mergeable reports whether two segments are to be merged into one, which has one list of trigrams. Only segments of
// similar size are merged, so that the work stays in proportion.
func mergeable(a, b *index.Segment) bool {
	return a.Size() < 2*b.Size() && a.Size()+b.Size() < maxSegment
}

// maxSegment is the size in bytes that merging stops at, so that it does not
// need much memory.
const maxSegment = 32 << 20

// flush makes a segment of what was added. It reports false if the index may not grow, or the tree or its contents
// have been dropped.
func (x *indexer) flush(merge func(a, b *index.Segment) bool) bool {
	if len(x.added) == 0 {
		return true
	}
	segment := x.builder.Flush()
	x.t.mu.Lock()
	segments := append(slices.Clip(x.t.contents.segments), segment)
	x.t.mu.Unlock()
	for n := len(segments); n > 1 && merge(segments[n-2], segments[n-1]); n-- {
		segments = append(segments[:n-2:n-2], index.Merge(segments[n-2], segments[n-1]))
	}
	size := int64(0)
	for _, s := range segments {
		size += int64(s.Size())
	}
	x.t.mu.Lock()
	defer x.t.mu.Unlock()
	if x.t.dead.Load() || x.t.contents.age != x.age {
		return false
	}
	corpus := x.t.contents.corpus + x.corpus
	if size > max(corpus*indexPercent/100, x.t.engine.config.MaxMemory/startShare) ||
		!x.t.engine.texts.grow(size-x.t.contents.size) {
		x.t.contents.full = true
		return false
	}
	x.t.contents.segments, x.t.contents.size, x.t.contents.corpus = segments, size, corpus
	x.t.contents.adds += len(x.added)
	for i, e := range x.added {
		if !e.node.gone && e.id != 0 {
			k := x.looks[i]
			k.indexed = true
			x.t.engine.texts.store(e, k)
		}
	}
	x.total += len(x.added)
	x.added, x.looks, x.corpus, x.texts = x.added[:0], x.looks[:0], 0, 0
	return true
}

const (
	// indexPercent bounds the size of the index to a part of the texts in it. A text that was indexed several times
	// counts each time.
	indexPercent = 20
	// startShare is the part of the budget that any index may have: the first
	// directories of a tree may have many more trigrams than the rest of it.
	startShare = 4
)
