package search

import (
	"errors"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/toolhost/toolhost/builtin/internal/search/ignore"
	"github.com/toolhost/toolhost/builtin/internal/search/walk"
	"github.com/toolhost/toolhost/guard/changes"
)

// tree is what is kept between queries of the files below one root. A directory is
// listed when a query first needs it, and kept up to date from then on.
//
// An event only marks what may have changed. The next query looks at the file
// system (see sync). So a build that writes much costs little, and an answer rests on
// what the file system says and not on how events are interpreted.
type tree struct {
	path   string // the real path of the root
	base   string // the same, ending in a separator
	engine *Engine
	room   *ignore.Budget // for ignore files
	mounts *walk.Mounts

	// ready says that queries can use the tree: the first listing is done. Until then the goroutine that lists holds mu.
	ready    atomic.Bool
	dead     atomic.Bool // unusable from now on
	tooLarge atomic.Bool // dead because of its size

	mu        sync.Mutex
	id        walk.ID
	local     bool // events announce every change; else everything is examined in each query
	parents   parentRules
	top       *node
	gen       uint64 // changes when names, or what is ignored, do
	log       changeLog
	snapshots []*snapshot // most recently used first
	feed      *changes.Feed
	contents  contents

	// shared guards the fields below while workers list directories, for which mu is held.
	shared     sync.Mutex
	dirtyNodes map[*node]bool // listed, and changed since
	polled     map[*node]bool // their ignore files can change without an event
	unwatched  map[*node]bool // listed directories for which no event announces changes
	dropped    []*node
	ruled      []*node // whose ignore files have changed
	files      int
	linked     bool // files with several names have been found
}

// node is a directory.
type node struct {
	rel     string // from the root, ending in a slash unless it is the root
	up      *node
	chain   *ignore.Chain // the rules for its entries
	rules   ignore.Files
	level   *ignore.DirRules // rules, parsed; nil: none
	entries []*dirent        // by name
	listed  bool
	local   bool
	id      walk.ID
	err     error
	watched changes.Dir
	changed map[string]bool // entries to look at again
	dirty   bool            // all entries must be read again
	gone    bool            // no longer part of the tree
	gen     uint64          // the tree's gen when something in it or below last changed
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
	version atomic.Uint32 // counts the known changes
	state   atomic.Pointer[fileState]
	inode   uint64        // when it was last seen to have several names
	id      uint32        // in the index, 0: none; needs the tree's mu
	uses    atomic.Uint32 // see textCache
	cached  bool          // in the textCache; needs its mu
}

func (e *dirent) dir() *node {
	if e == nil {
		return nil
	}
	return e.sub
}

const separator = string(filepath.Separator)

func newTree(e *Engine, path string) (*tree, error) {
	t := &tree{
		path: path, base: strings.TrimSuffix(path, separator) + separator, engine: e,
		room: ignore.NewBudget(ignore.MaxTree), top: &node{},
		contents: newContents(e.config.MaxMemory < 0), dirtyNodes: map[*node]bool{}, polled: map[*node]bool{},
		unwatched: map[*node]bool{},
	}
	var err error
	if t.feed, err = changes.Open(e.config.MaxWatches); err != nil {
		return nil, err
	}
	if t.mounts, err = walk.OpenMounts(path); err != nil {
		return nil, errors.Join(err, t.feed.Close())
	}
	return t, nil
}

// close releases watches and descriptors. It must not be called twice.
func (t *tree) close() {
	t.dead.Store(true)
	t.mu.Lock()
	defer t.mu.Unlock()
	_ = t.feed.Close()
	t.mounts.Close()
	t.forget(t.top)
	t.snapshots = nil
	t.empty()
	t.engine.texts.sweep()
}

func (n *node) find(name string) (int, bool) { return findEntry(n.entries, name) }

func findEntry(entries []*dirent, name string) (int, bool) {
	return slices.BinarySearchFunc(entries, name,
		func(e *dirent, name string) int { return strings.Compare(e.name, name) })
}

// event marks what an event announces.
func (t *tree) event(owner any, ev changes.Event) {
	var only *dirent
	n := owner.(*node)
	switch {
	case n.gone:
	case ev.Kind == changes.Self:
		t.unlist(n)
	case ev.Entry == "": // the directory's own metadata, such as its permissions
		t.invalidate(n)
	default:
		only = t.touch(n, ev)
	}
	t.log.add(only)
}

// changeLog counts the changes of a tree, and remembers the latest ones as long as
// they changed nothing but the content or the metadata of a file.
type changeLog struct {
	count uint64
	since uint64    // count when files was empty
	files []*dirent // one for each change after that
}

// maxRecent is how many changes are remembered.
const maxRecent = 1000

// add counts a change of one file, or with nil of anything.
func (c *changeLog) add(only *dirent) {
	c.count++
	if only != nil && len(c.files) < maxRecent {
		c.files = append(c.files, only)
		return
	}
	clear(c.files)
	c.since, c.files = c.count, c.files[:0]
}

// after returns the files that have changed since the count was count. It reports
// false when other things have changed too, or too many files.
func (c *changeLog) after(count uint64) ([]*dirent, bool) {
	if count < c.since {
		return nil, false
	}
	return c.files[count-c.since:], true
}

// touch marks an entry, and returns it if it is a file of which only the content or
// the metadata has changed.
func (t *tree) touch(n *node, ev changes.Event) *dirent {
	i, ok := n.find(ev.Entry)
	if ok {
		e := n.entries[i]
		e.version.Add(1)
		switch {
		case e.sub == nil:
		case ev.Kind == changes.Name:
			t.forget(e.sub)
			e.sub = &node{rel: e.sub.rel, up: n}
			t.namesChanged(n)
		default:
			t.invalidate(e.sub)
		}
	}
	if ok && ev.Kind == changes.Content && !ignore.IsFile(ev.Entry) {
		if n.entries[i].sub != nil {
			return nil
		}
		return n.entries[i]
	}
	if n.changed == nil {
		n.changed = map[string]bool{}
	}
	n.changed[ev.Entry] = true
	t.dirtyNodes[n] = true
	return nil
}

// invalidate marks everything below a directory.
func (t *tree) invalidate(n *node) {
	if !n.listed {
		return
	}
	n.dirty = true
	t.dirtyNodes[n] = true
	for _, e := range n.entries {
		e.version.Add(1)
		if e.sub != nil {
			t.invalidate(e.sub)
		}
	}
}

// unlist forgets what is below a directory that has moved or is deleted, but keeps
// the directory until its parent is examined.
func (t *tree) unlist(n *node) {
	if n == t.top {
		t.dead.Store(true)
		return
	}
	up := n.up
	t.forget(n)
	if i, ok := up.find(path.Base(n.rel)); ok && up.entries[i].sub == n {
		up.entries[i].sub = &node{rel: n.rel, up: up}
		up.dirty = true
		t.dirtyNodes[up] = true
	}
	t.namesChanged(up)
}

// namesChanged notes that the names in a directory, or which of them are ignored, have
// changed. It needs shared, or no workers.
func (t *tree) namesChanged(n *node) {
	t.gen++
	for ; n != nil; n = n.up {
		n.gen = t.gen
	}
}

// forget removes a directory and everything below it from the tree.
func (t *tree) forget(n *node) {
	n.gone = true
	t.feed.Unwatch(&n.watched)
	delete(t.unwatched, n)
	n.dropRules(t.room)
	delete(t.dirtyNodes, n)
	delete(t.polled, n)
	for _, e := range n.entries {
		if e.sub != nil {
			t.forget(e.sub)
		} else {
			t.forgetFile(e)
		}
	}
	n.entries, n.listed = nil, false
}

// forgetFile removes what is kept of a file.
func (t *tree) forgetFile(e *dirent) {
	e.version.Add(1)
	t.engine.texts.store(e, nil)
	t.files--
}

// empty drops the index and all texts.
func (t *tree) empty() {
	t.engine.texts.grow(-t.contents.size)
	t.contents.reset()
	var clear func(*node)
	clear = func(n *node) {
		for _, e := range n.entries {
			if e.sub != nil {
				clear(e.sub)
			}
			e.id = 0
			t.engine.texts.store(e, nil)
		}
	}
	clear(t.top)
}

// keep stores the state of a file that was found without the lock, for the contents of that age.
func (t *tree) keep(e *dirent, k *fileState) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.contents.age == k.age && !t.dead.Load() && !e.node.gone {
		t.engine.texts.store(e, k)
	}
}
