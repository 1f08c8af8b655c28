package baseline

import (
	"strings"
	"sync/atomic"
	"time"

	"github.com/toolhost/toolhost/guard/changes"
	"github.com/toolhost/toolhost/guard/internal/pathname"
)

// lookAgain is how often directories are examined while commands run, watched or not.
const lookAgain = 2 * time.Second

// Limits on repeated checks: the least time between two, as a time and as a multiple of the duration of a check.
const (
	lookPause  = 2 * time.Millisecond
	lookFactor = 10
)

// A watcher records which directories have changed, and has them examined while commands run. The caller of its
// methods holds the lock of the keeper. A nil watcher watches nothing. Directories that are not watched are examined
// before and after each command.
type watcher struct {
	feed   *changes.Feed
	count  uint64 // counts changes
	lost   uint64 // how often events were lost
	heard  bool   // something was reported that may make git run programs
	look   func(always bool) (took time.Duration)
	active atomic.Bool // commands run
	again  *time.Timer
	done   chan struct{}
	ended  chan struct{}
}

func newWatcher(look func(always bool) time.Duration) *watcher {
	feed, err := changes.Open(maxDirs)
	if err != nil {
		return nil
	}
	w := &watcher{feed: feed, look: look, done: make(chan struct{}), ended: make(chan struct{})}
	w.again = time.AfterFunc(time.Hour, w.lookAgain)
	w.again.Stop()
	go w.follow()
	return w
}

// add watches the directory of a node.
func (w *watcher) add(n *node) {
	if w != nil {
		w.feed.WatchPath(&n.watched, n, n.path)
	}
}

// drop ends the watches of nodes, which may be nil, and of what is below them.
func (w *watcher) drop(nodes ...*node) {
	for _, n := range nodes {
		if w != nil && n != nil {
			w.feed.Unwatch(&n.watched)
			w.drop(n.kids...)
		}
	}
}

// lostEvents counts how often events were lost.
func (w *watcher) lostEvents() uint64 {
	if w == nil {
		return 0
	}
	return w.lost
}

// now counts what has changed.
func (w *watcher) now() uint64 {
	if w == nil {
		return 0
	}
	return w.count
}

// drain takes in what has changed. The events of a process are queued before it ends.
func (w *watcher) drain() {
	if w != nil && w.feed.Read(w.take) {
		w.count++
		w.lost++
		w.heard = true
	}
}

// take records one event.
func (w *watcher) take(owner any, e changes.Event) {
	n := owner.(*node)
	if e.Kind == changes.Content && !n.repo {
		return
	}
	w.count++
	n.dirty = n.dirty || e.Kind != changes.Content || n.place == hooksDir
	w.heard = w.heard || e.Kind != changes.Content && e.Dir || interesting(pathname.Folded.Of(e.Entry), n.repo)
}

// interesting reports whether a file of this name may make git run programs, or the host obey it.
func interesting(name string, inRepo bool) bool {
	if strings.HasPrefix(name, "settings") || strings.HasPrefix(name, configName) && !strings.HasSuffix(name, ".lock") {
		return true
	}
	switch name {
	case gitName, commonName, "head", "objects", "refs", hooksName, ".claude", ".toolhost":
		return true
	}
	return inRepo && !strings.HasSuffix(name, ".lock") && name != "index"
}

// attend sets whether commands run.
func (w *watcher) attend(active bool) {
	if w == nil || w.active.Swap(active) == active {
		return
	}
	if active {
		w.again.Reset(lookAgain)
	} else {
		w.again.Stop()
	}
}

// lookAgain examines all directories repeatedly while commands run.
func (w *watcher) lookAgain() {
	if w.active.Load() {
		took := w.look(true)
		w.again.Reset(max(lookAgain, lookFactor*took))
	}
}

// follow examines directories when they change while commands run.
func (w *watcher) follow() {
	defer close(w.ended)
	pause := time.NewTimer(0)
	defer pause.Stop()
	for {
		select {
		case <-w.feed.Changed():
		case <-w.done:
			return
		}
		if !w.active.Load() {
			continue // it is taken in when a command begins
		}
		pause.Reset(max(lookPause, lookFactor*w.look(false)))
		select {
		case <-pause.C:
		case <-w.done:
			return
		}
	}
}

// close ends the watch. It is called without the lock of the keeper.
func (w *watcher) close() error {
	if w == nil {
		return nil
	}
	w.active.Store(false)
	w.again.Stop()
	close(w.done)
	<-w.ended
	return w.feed.Close()
}
