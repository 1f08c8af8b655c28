package search

import (
	"context"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/toolhost/toolhost/builtin/internal/search/walk"
)

// treeCache holds the trees of an engine. A tree is made in the background after
// the first query of its root, so that no call waits for it. It is released when
// it has not been used for some time, or when others take its place.
type treeCache struct {
	engine *Engine
	gate   backgroundGate
	ctx    context.Context
	cancel context.CancelFunc
	work   sync.WaitGroup

	mu     sync.Mutex
	closed bool
	trees  []*cacheEntry // most recently used first
}

// cacheEntry is a tree, and the goroutines that work on it.
type cacheEntry struct {
	path string
	tree *tree // nil: this root cannot be kept
	stop context.CancelFunc
	idle *time.Timer
	done chan struct{} // closed when the tree is no longer filled or saved
	// saved says that an index of the root is on disk: until it is loaded, which takes less
	// time than to search without it, queries wait for loaded.
	saved  bool
	loaded chan struct{}
	// asked is the scope of a query that came before there was a list.
	asked atomic.Pointer[Scope]
}

func (h *cacheEntry) state() State {
	if h.tree == nil {
		return Walking
	}
	return h.tree.contents.progress.get()
}

func newTreeCache(e *Engine) *treeCache {
	k := &treeCache{engine: e}
	k.ctx, k.cancel = context.WithCancel(context.Background())
	return k
}

// close releases everything and waits for the background work.
func (k *treeCache) close() {
	k.mu.Lock()
	k.closed = true
	trees := k.trees
	k.trees = nil
	k.mu.Unlock()
	k.cancel()
	for _, h := range trees {
		k.work.Go(h.release)
	}
	k.work.Wait()
}

// release stops the work on the tree and closes it. It may take as long as saving
// the index.
func (h *cacheEntry) release() {
	h.idle.Stop()
	h.stop()
	if h.tree != nil {
		<-h.done
		h.tree.close()
	}
}

// list fills the listing from a tree. It reports false when none can be used yet.
func (k *treeCache) list(ctx context.Context, l *listing, sel *selection) bool {
	if k.engine.config.MaxKept < 0 {
		return false
	}
	h := k.get(l.path)
	if h == nil || h.tree == nil {
		return false
	}
	if h.saved {
		h.await(ctx)
	}
	if !h.tree.ready.Load() {
		h.asked.Store(&l.scope) // before ready is examined again: asked is read after ready is set
	}
	return lister{h.tree, l, sel, k.engine.config.Workers}.list(ctx)
}

// await lets a query wait until the saved index is loaded.
func (h *cacheEntry) await(ctx context.Context) {
	select {
	case <-h.loaded:
	case <-ctx.Done():
	}
}

// get finds the tree of a root, or starts to make it.
func (k *treeCache) get(path string) *cacheEntry {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.closed {
		return nil
	}
	i := slices.IndexFunc(k.trees, func(h *cacheEntry) bool { return h.path == path })
	if i >= 0 {
		h := k.trees[i]
		if h.tree == nil || !h.tree.dead.Load() {
			h.idle.Reset(k.engine.config.Idle)
			k.trees = slices.Insert(slices.Delete(k.trees, i, i+1), 0, h)
			return h
		}
		k.trees = slices.Delete(k.trees, i, i+1)
		k.work.Go(h.release)
		if h.tree.tooLarge.Load() {
			return k.add(path, nil)
		}
	}
	t, err := newTree(k.engine, path)
	if err != nil {
		return k.add(path, nil)
	}
	return k.add(path, t)
}

// add adds a tree, and starts to fill it. It needs mu.
func (k *treeCache) add(path string, t *tree) *cacheEntry {
	h := &cacheEntry{path: path, tree: t, done: make(chan struct{}), loaded: make(chan struct{})}
	h.saved = k.engine.saves(path)
	var ctx context.Context
	ctx, h.stop = context.WithCancel(k.ctx)
	h.idle = time.AfterFunc(k.engine.config.Idle, func() { k.remove(h) })
	k.trees = slices.Insert(k.trees, 0, h)
	if n := k.engine.config.MaxRoots; len(k.trees) > n {
		for _, old := range k.trees[n:] {
			k.work.Go(old.release)
		}
		k.trees = k.trees[:n]
	}
	if t == nil {
		return h
	}
	k.work.Go(func() { h.load(ctx, &k.gate) })
	k.work.Go(func() { t.watches.queue.Wait(h.drainIdle) })
	return h
}

// remove releases a tree that has been idle.
func (k *treeCache) remove(h *cacheEntry) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if i := slices.Index(k.trees, h); i >= 0 {
		k.trees = slices.Delete(k.trees, i, i+1)
		k.work.Go(h.release)
	}
}

// load makes the first listing, and then the index.
func (h *cacheEntry) load(ctx context.Context, g *backgroundGate) {
	defer close(h.done)
	t := h.tree
	loaded := sync.OnceFunc(func() { close(h.loaded) })
	defer loaded()
	if !h.build(ctx, g, loaded) {
		t.contents.progress.set(Walking)
		return
	}
	t.contents.progress.set(Indexing)
	loadPostings(ctx, t, g)
	if s := h.asked.Load(); s != nil {
		t.mu.Lock()
		t.contents.admit(s) // so that the index is made for it
		t.mu.Unlock()
	}
	t.contents.wakeUp() // progress is Ready when nothing is due
	runIndexer(ctx, t, g)
}

// build lists the files that a query without globs asks for, while no query runs. With a
// saved index queries list what they need: loaded is called when they can.
func (h *cacheEntry) build(ctx context.Context, g *backgroundGate, loaded func()) bool {
	t := h.tree
	root, err := walk.OpenRoot(t.path)
	if err != nil {
		t.dead.Store(true)
		return false
	}
	defer root.Close()
	h.open(root)
	loaded()
	buf := new(walk.Buffer)
	for done := false; !done && !t.dead.Load() && g.pause(ctx) == nil; {
		done = h.listRest(ctx, g, root, buf)
	}
	if ctx.Err() != nil || t.dead.Load() {
		t.dead.Store(true)
		return false
	}
	t.ready.Store(true)
	return true
}

// open looks at the root, and loads the saved index: queries can use the tree from then on.
func (h *cacheEntry) open(root *walk.Root) {
	t := h.tree
	t.mu.Lock()
	defer t.mu.Unlock()
	t.id, t.local = root.ID(), root.Local()
	if t.checkParents() {
		t.rechain(t.top)
	}
	if h.saved && loadSaved(t) {
		t.contents.progress.set(Indexing)
		t.ready.Store(true)
	}
}

// listRest lists what no query has listed, until one runs; a query that cannot use the tree
// yet does not stop it. It reports whether everything is listed.
func (h *cacheEntry) listRest(ctx context.Context, g *backgroundGate, root *walk.Root, buf *walk.Buffer) (done bool) {
	t := h.tree
	t.mu.Lock()
	defer t.mu.Unlock()
	done = true
	walk.Parallel(ctx, 1, t.top, func(_ int, n *node) []*node {
		switch {
		case !done || t.files > t.engine.config.MaxKept:
			return nil
		case t.ready.Load() && g.busy() != nil || !t.ready.Load() && g.pause(ctx) != nil:
			done = false
			return nil
		case !n.listed:
			t.read(root, n, buf)
		}
		var subs []*node
		for _, e := range n.entries {
			if e.sub != nil && !e.ignored && e.name != ".git" {
				subs = append(subs, e.sub)
			}
		}
		return subs
	})
	t.applyPending()
	if done = done && ctx.Err() == nil; done {
		t.saved = nil
	}
	return done
}

// drainIdle empties the event queue between queries, so that it does not overflow.
func (h *cacheEntry) drainIdle() {
	t := h.tree
	if !t.ready.Load() || t.dead.Load() {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.watches.queue.Drain(t.event) != nil {
		t.dead.Store(true)
	}
}

// State is how much an engine has prepared of a root.
type State string

const (
	// Walking: nothing is kept; each query walks the tree.
	Walking State = "walking"
	// Listing: the first listing is under way; until it is done queries walk.
	Listing State = "listing"
	// Indexing: the list is kept; an index of contents is being made or brought
	// up to date.
	Indexing State = "indexing"
	// Ready: the list is kept, and an index if contents may be kept.
	Ready State = "ready"
)

// progress is a state that can be waited for.
type progress struct {
	mu      sync.Mutex
	now     State
	changed chan struct{} // closed at the next change; nil: no goroutine waits
}

func (p *progress) set(s State) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.now = s
	if p.changed != nil {
		close(p.changed)
		p.changed = nil
	}
}

func (p *progress) get() State {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.now
}

// Stats describes an engine's index of one root.
type Stats struct {
	State State
	// Files and Directories are kept. Watches is of how many directories the
	// system announces changes, the others are examined in each query.
	Files, Directories, Watches int
	// Index is the size of the index of contents in bytes, Indexed that of the
	// contents; Memory, what the engine keeps of contents and indexes of all
	// roots together.
	Index, Indexed, Memory int64
	// Persisted is the size in bytes of the root's index on disk, 0 if there is
	// none; Unsaved, why it could not be saved when that was last tried.
	Persisted int64
	Unsaved   error
}

// Stats returns what is kept of a root.
func (e *Engine) Stats(root string) Stats {
	k := e.cache
	root = filepath.Clean(root)
	s := Stats{State: Walking, Memory: e.texts.memory.Load()}
	if e.disk != nil {
		s.Persisted = e.disk.Size(root)
	}
	k.mu.Lock()
	i := slices.IndexFunc(k.trees, func(h *cacheEntry) bool { return h.path == root })
	if i < 0 {
		k.mu.Unlock()
		return s
	}
	h := k.trees[i]
	k.mu.Unlock()
	if s.State = h.state(); s.State == Ready || s.State == Indexing {
		h.stats(&s)
	}
	return s
}

func (h *cacheEntry) stats(s *Stats) {
	t := h.tree
	t.mu.Lock()
	defer t.mu.Unlock()
	s.Files, s.Watches = t.files, len(t.watches.nodes)
	s.Directories = s.Watches + len(t.watches.unwatched)
	for _, of := range t.contents.segments {
		s.Index += int64(of.Size())
	}
	s.Indexed, s.Unsaved = t.contents.corpus, t.contents.lastSave.err
}

// Warm begins to keep the list of a root and its saved index before its first
// query, while none runs. It returns at once. It does nothing for a root
// without a saved index, which may never be searched.
func (e *Engine) Warm(root string) {
	if root = filepath.Clean(root); e.config.MaxKept >= 0 && e.saves(root) {
		e.cache.get(root)
	}
}

// saves reports whether an index of the root has been saved.
func (e *Engine) saves(root string) bool { return e.disk != nil && e.disk.Size(root) > 0 }
