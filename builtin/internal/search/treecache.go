package search

import (
	"context"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/toolhost/toolhost/builtin/internal/search/walk"
)

// treeCache holds the trees of an engine. A tree is made in the background after the second wide query of its root:
// no call waits for it, and the first query does not compete with it. It is released when it has not been used for
// some time, or when newer trees need its place.
type treeCache struct {
	engine *Engine
	gate   backgroundGate
	ctx    context.Context
	cancel context.CancelFunc
	work   sync.WaitGroup

	mu     sync.Mutex
	closed bool
	trees  []*cacheEntry   // most recently used first
	walked map[string]bool // roots that one wide query has walked
}

const (
	// wideFiles is how many files a query of a part of a root must list to count as wide. A query of the whole root is
	// always wide.
	wideFiles = 1000
	// maxWalked bounds the roots that are remembered for their first query.
	maxWalked = 64
)

// cacheEntry is a tree, and the goroutines that work on it.
type cacheEntry struct {
	path  string
	tree  *tree // nil: this root cannot be kept
	stop  context.CancelFunc
	idle  *time.Timer
	done  chan struct{} // closed when the tree is no longer filled
	asked *Scope        // the scope that the tree is made for; nil: none
}

func (h *cacheEntry) state() State {
	if h.tree == nil {
		return Walking
	}
	return h.tree.contents.progress.get()
}

func newTreeCache(e *Engine) *treeCache {
	k := &treeCache{engine: e, walked: map[string]bool{}}
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

// release stops the work on the tree and closes it.
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
	k.mu.Lock()
	h := k.find(l.path)
	k.mu.Unlock()
	return h != nil && h.tree != nil && lister{h.tree, l, sel, k.engine.config.Workers}.list(ctx)
}

// find returns the tree of a root, or nil if there is none. It replaces a dead tree. It needs mu.
func (k *treeCache) find(path string) *cacheEntry {
	i := slices.IndexFunc(k.trees, func(h *cacheEntry) bool { return h.path == path })
	if i < 0 {
		return nil
	}
	h := k.trees[i]
	k.trees = slices.Delete(k.trees, i, i+1)
	if h.tree == nil || !h.tree.dead.Load() {
		h.idle.Reset(k.engine.config.Idle)
		k.trees = slices.Insert(k.trees, 0, h)
		return h
	}
	k.work.Go(h.release)
	if h.tree.tooLarge.Load() {
		return k.add(path, nil, nil)
	}
	return k.open(path, h.asked)
}

// note counts a query that has walked a root, and starts to keep the root after the second wide one.
func (k *treeCache) note(l *listing) {
	if k.engine.config.MaxKept < 0 || l.start != "" && len(l.files) < wideFiles {
		return
	}
	k.mu.Lock()
	again := k.walked[l.path]
	if len(k.walked) == maxWalked {
		clear(k.walked)
	}
	k.walked[l.path] = true
	k.mu.Unlock()
	if again {
		k.start(l.path, &l.scope)
	}
}

// start returns the tree of a root, or begins to make it for a scope.
func (k *treeCache) start(path string, s *Scope) *cacheEntry {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.closed {
		return nil
	}
	delete(k.walked, path)
	if h := k.find(path); h != nil {
		return h
	}
	return k.open(path, s)
}

// open begins to make a tree. It needs mu.
func (k *treeCache) open(path string, s *Scope) *cacheEntry {
	t, err := newTree(k.engine, path)
	if err != nil { // the system announces no changes
		t = nil
	}
	return k.add(path, t, s)
}

// add adds a tree, and starts to fill it. It needs mu.
func (k *treeCache) add(path string, t *tree, s *Scope) *cacheEntry {
	h := &cacheEntry{path: path, tree: t, done: make(chan struct{}), asked: s}
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
	if !h.list(ctx, g) {
		t.dead.Store(true)
		t.contents.progress.set(Walking)
		return
	}
	t.contents.progress.set(Indexing)
	t.ready.Store(true)
	if h.asked != nil {
		t.mu.Lock()
		t.contents.admit(h.asked) // so that the index is made for this scope
		t.mu.Unlock()
	}
	t.contents.wakeUp() // if nothing is due, the indexer sets progress to Ready
	runIndexer(ctx, t, g)
}

// list lists the files that a query without globs asks for, while no query runs.
func (h *cacheEntry) list(ctx context.Context, g *backgroundGate) bool {
	t := h.tree
	root, err := walk.OpenRoot(t.path)
	if err != nil {
		return false
	}
	defer root.Close()
	t.mu.Lock()
	defer t.mu.Unlock()
	t.id, t.local = root.ID(), root.Local()
	if t.checkParents() {
		t.rechain(t.top)
	}
	buf := new(walk.Buffer)
	walk.Parallel(ctx, 1, t.top, func(_ int, n *node) (subs []*node) {
		if t.files > t.engine.config.MaxKept || g.pause(ctx) != nil {
			return nil
		}
		t.read(root, n, buf)
		for _, e := range n.entries {
			if e.sub != nil && !e.ignored && e.name != ".git" {
				subs = append(subs, e.sub)
			}
		}
		return subs
	})
	t.applyPending()
	return ctx.Err() == nil && !t.dead.Load()
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
	// Files is how many are in the kept list. Watches counts the directories for which the system announces changes; each
	// query examines the others.
	Files, Watches int
	// Index is the size of the index of contents in bytes. Memory is what the engine keeps of contents and indexes of all
	// roots together.
	Index, Memory int64
}

// Stats returns what is kept of a root.
func (e *Engine) Stats(root string) Stats {
	k := e.cache
	root = filepath.Clean(root)
	s := Stats{State: Walking, Memory: e.texts.kept()}
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
	s.Files, s.Watches = t.files, t.feed.Watching()
	for _, of := range t.contents.segments {
		s.Index += int64(of.Size())
	}
}
