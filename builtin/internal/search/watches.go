package search

import (
	"sync"

	"github.com/toolhost/toolhost/builtin/internal/search/walk"
)

// watches are the watched directories of a tree.
type watches struct {
	queue *walk.Queue
	max   int // how many there may be

	mu     sync.Mutex // workers list directories concurrently
	nodes  map[int32]*node
	adding map[*node]bool // their watch is about to be added
	// unwatched holds the listed directories for which no event announces changes.
	unwatched map[*node]bool
}

func newWatches(queue *walk.Queue, max int) watches {
	return watches{queue: queue, max: max, nodes: map[int32]*node{}, adding: map[*node]bool{},
		unwatched: map[*node]bool{}}
}

// add watches an open directory, unless fd is -1. It returns the node that had the same watch before, if any: the
// same directory under another path, because it has moved or is also mounted there. If the watch is removed meanwhile
// on behalf of the other path, an event announces that.
func (w *watches) add(n *node, fd int) (other *node) {
	id := int32(0)
	if fd >= 0 && w.reserve(n) {
		if added, err := w.queue.Add(fd); err == nil {
			id = added
		}
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.adding, n)
	if id == n.watch.Load() {
		return nil
	}
	w.remove(n)
	if id == 0 {
		return nil
	}
	if other = w.nodes[id]; other != nil {
		other.watch.Store(0)
		w.unwatched[other] = true
	}
	n.watch.Store(id)
	w.nodes[id] = n
	return other
}

// reserve reports whether a directory may be watched.
func (w *watches) reserve(n *node) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if n.watch.Load() == 0 && len(w.nodes)+len(w.adding) >= w.max {
		return false
	}
	w.adding[n] = true
	return true
}

// remove ends the watch of a directory. It needs mu.
func (w *watches) remove(n *node) {
	id := n.watch.Load()
	if id != 0 && w.nodes[id] == n {
		delete(w.nodes, id)
		w.queue.Remove(id)
	}
	n.watch.Store(0)
}

// end ends the watch of a directory that cannot be listed.
func (w *watches) end(n *node) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.remove(n)
}

// listed notes whether a directory that was just listed is watched.
func (w *watches) listed(n *node) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if n.watch.Load() == 0 {
		w.unwatched[n] = true
	} else {
		delete(w.unwatched, n)
	}
}

// forget removes a directory.
func (w *watches) forget(n *node) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.remove(n)
	delete(w.unwatched, n)
}
