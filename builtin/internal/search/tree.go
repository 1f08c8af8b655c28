package search

import (
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"toolhost/builtin/internal/search/ignore"
	"toolhost/builtin/internal/search/walk"
	"toolhost/builtin/internal/search/watch"
)

// keptTree is what is kept of the files below one root between queries. It grows
// as queries need it: a directory is listed when one first leads there, and
// kept up to date from then on.
//
// Events are only marked when they come (event); what they mean is found out
// when a query asks (renew). So a build that writes much costs little, and an
// answer rests on what the file system says, not on what events are thought
// to mean.
type keptTree struct {
	path   string // the real path of the root
	base   string // the same, ending in a separator
	engine *Engine
	queue  *watch.Queue
	room   *ignore.Room // for ignore files
	mounts *watch.Mounts
	// sees says that events tell of every change; else all is looked at each time.
	sees bool

	// ready says that queries can use the tree: the first listing is done, until which mu is
	// held by what makes it, or what an earlier process has saved is loaded.
	ready atomic.Bool
	dead  atomic.Bool // of no use any more
	// tooLarge says that it was given up because of its size.
	tooLarge atomic.Bool

	mu     sync.Mutex
	id     walk.ID
	global []byte
	outer  []ancestor
	top    *node
	// gen changes when names or what is ignored do, changes when anything does or
	// may have.
	gen       uint64
	changes   uint64
	recent    recent
	snapshots []*snapshot // most recently used first

	// shared guards what workers that list directories at the same time touch.
	// They run only while mu is held.
	shared  sync.Mutex
	watched map[int32]*node
	adding  map[*node]bool // a watch of them is about to be added
	waiting map[*node]bool // listed, and something is known to have changed
	blind   map[*node]bool // listed, and no event tells of changes
	silent  map[*node]bool // see readRules
	dropped []*node
	ruled   []*node // whose ignore files have changed
	files   int
	linked  bool     // files have been found that others may be names of
	earlier *earlier // until the first listing is done
	stock
}

// node is a directory.
type node struct {
	rel     string // from the root, ending in a slash unless it is the root
	up      *node
	chain   *ignore.Chain // of its entries
	rules   ruleFiles
	level   *ignore.Level // rules, parsed; nil: there are none
	looks   []ruleLook    // at rules of a silent directory when they were read, nil: not settled
	entries []*dirent     // by name
	listed  bool
	local   bool
	id      walk.ID
	look    walk.Look // when it was last listed as a whole
	err     error
	watch   atomic.Int32    // 0: none
	again   map[string]bool // entries to look at again
	doubted bool            // all entries are to be looked at again
	gone    bool            // no longer part of the tree
	gen     uint64          // the tree's when something in it or below last changed; see keptTree.gen
}

// dirent is a name in a directory.
type dirent struct {
	real    string // the real path
	path    string // from the root
	name    string
	node    *node
	kind    walk.Kind
	sub     *node // of a directory
	ignored bool
	// version counts the changes that are known of.
	version atomic.Uint32
	known   atomic.Pointer[known]
	inode   uint64        // when it was last seen to have more than one name
	id      uint32        // in the index, 0: none; needs mu
	uses    atomic.Uint32 // see contents
	entered bool          // in contents; needs its mu
}

func (e *dirent) dir() *node {
	if e == nil {
		return nil
	}
	return e.sub
}

const separator = string(filepath.Separator)

func newTree(e *Engine, path string) (*keptTree, error) {
	t := &keptTree{
		path: path, base: strings.TrimSuffix(path, separator) + separator, engine: e, room: ignore.NewRoom(maxRules), top: &node{}, stock: newStock(),
		watched: map[int32]*node{}, adding: map[*node]bool{}, waiting: map[*node]bool{}, blind: map[*node]bool{}, silent: map[*node]bool{},
	}
	var err error
	if t.queue, err = watch.Open(); err != nil {
		return nil, err
	}
	if t.mounts, err = watch.OpenMounts(path); err != nil {
		t.queue.Close()
		return nil, err
	}
	return t, nil
}

// close releases watches and descriptors. It must not be called twice.
func (t *keptTree) close() {
	t.dead.Store(true)
	t.queue.Close() // waits for attend, which may be waiting for mu
	t.mu.Lock()
	defer t.mu.Unlock()
	t.mounts.Close()
	t.forget(t.top)
	t.snapshots = nil
	t.empty()
	t.engine.kept.sweep()
}

func (n *node) find(name string) (int, bool) {
	return slices.BinarySearchFunc(n.entries, name, func(e *dirent, name string) int { return strings.Compare(e.name, name) })
}

// drain marks what has changed. It needs mu.
func (t *keptTree) drain() error { return t.queue.Drain(t.event) }

// event marks what an event tells of.
func (t *keptTree) event(ev watch.Event) {
	var only *dirent
	n := t.watched[ev.Watch]
	switch {
	case ev.Kind == watch.Overflow:
		t.doubt(t.top)
	case n == nil: // not watched any more
	case ev.Kind == watch.Self:
		t.unlist(n)
	case ev.Entry == "": // the directory's own metadata: who may read it
		t.doubt(n)
	default:
		only = t.touch(n, ev)
	}
	t.change(only)
}

// recent are the files of which the content or the metadata has changed, and nothing else
// in the tree, since its changes were so many: one for each change.
type recent struct {
	since uint64
	files []*dirent
}

// maxRecent is how many changes are remembered as what they are.
const maxRecent = 1000

// change counts a change: of one file, or of anything if that is nil.
func (t *keptTree) change(only *dirent) {
	t.changes++
	r := &t.recent
	if only != nil && len(r.files) < maxRecent {
		r.files = append(r.files, only)
		return
	}
	clear(r.files)
	r.since, r.files = t.changes, r.files[:0]
}

// after returns the files that have changed since the changes were so many; false: that
// is not all that has.
func (r *recent) after(changes uint64) ([]*dirent, bool) {
	if changes < r.since {
		return nil, false
	}
	return r.files[changes-r.since:], true
}

// touch marks an entry, and returns it if that is a file which is no other than before.
func (t *keptTree) touch(n *node, ev watch.Event) *dirent {
	i, ok := n.find(ev.Entry)
	if ok {
		e := n.entries[i]
		e.version.Add(1)
		switch {
		case e.sub == nil:
		case ev.Kind == watch.Name:
			t.forget(e.sub)
			e.sub = &node{rel: e.sub.rel, up: n}
			t.changed(n)
		default:
			t.doubt(e.sub)
		}
	}
	if ok && ev.Kind == watch.Content && !isRules(ev.Entry) {
		if n.entries[i].sub != nil {
			return nil
		}
		return n.entries[i]
	}
	if n.again == nil {
		n.again = map[string]bool{}
	}
	n.again[ev.Entry] = true
	t.waiting[n] = true
	return nil
}

// isRules reports whether an entry takes part in what is ignored.
func isRules(name string) bool {
	switch name {
	case ignore.RgIgnore, ignore.DotIgnore, ignore.GitIgnore, ".git", ".jj":
		return true
	}
	return false
}

// doubt marks everything below a directory.
func (t *keptTree) doubt(n *node) {
	if !n.listed {
		return
	}
	n.doubted = true
	t.waiting[n] = true
	for _, e := range n.entries {
		e.version.Add(1)
		if e.sub != nil {
			t.doubt(e.sub)
		}
	}
}

// unlist forgets what is below a directory that is not where it was, but keeps
// the directory: its parent tells what has become of it.
func (t *keptTree) unlist(n *node) {
	if n == t.top {
		t.dead.Store(true)
		return
	}
	up := n.up
	t.forget(n)
	if i, ok := up.find(path.Base(n.rel)); ok && up.entries[i].sub == n {
		up.entries[i].sub = &node{rel: n.rel, up: up}
		up.doubted = true
		t.waiting[up] = true
	}
	t.changed(up)
}

// changed notes that names in a directory, or what of them is ignored, are others now.
// It needs shared, or no workers.
func (t *keptTree) changed(n *node) {
	t.gen++
	for ; n != nil; n = n.up {
		n.gen = t.gen
	}
}

// forget takes a directory and all below it out of the tree.
func (t *keptTree) forget(n *node) {
	n.gone = true
	t.unwatch(n)
	t.leaveRules(n)
	delete(t.waiting, n)
	delete(t.blind, n)
	delete(t.silent, n)
	for _, e := range n.entries {
		if e.sub != nil {
			t.forget(e.sub)
		} else {
			t.drop(e)
		}
	}
	n.entries, n.listed = nil, false
}

// drop forgets a file.
func (t *keptTree) drop(e *dirent) {
	e.version.Add(1)
	t.learn(e, nil)
	t.files--
}

func (t *keptTree) unwatch(n *node) {
	if n.watch.Load() == 0 {
		return
	}
	if w := n.watch.Load(); t.watched[w] == n {
		delete(t.watched, w)
		t.queue.Remove(w)
	}
	n.watch.Store(0)
}
