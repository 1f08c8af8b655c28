// Package changes tells what changes in directories. A process has one inotify instance for all who ask, and a
// directory one watch, whatever its paths are and however many ask for it: a user may have a limited number of both.
//
// A [Feed] reports exactly what has changed: a change whose system call has returned is among the events that the next
// Read yields. That holds on Linux, where the kernel queues an event before the call that caused it returns. Other
// systems give no such guarantee, and Open fails.
//
// No event announces stores through a shared mapping until the file is closed, nor writes through another name of the
// file (a hard link) in a directory that is not watched.
//
// Its Go API is not stable.
package changes

import (
	"errors"
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
)

// ErrUnsupported is returned by Open where changes cannot be known exactly.
var ErrUnsupported = errors.New("this system does not report changes before they are made")

// Kind is the kind of an event. Of two events of one name, the greater kind remains.
type Kind uint8

const (
	// Content: the content or the metadata of the entry has changed, or with no entry, the metadata of the directory.
	Content Kind = iota
	// Name: the entry has come, gone, or become another file.
	Name
	// Self: the directory has moved, is deleted or unmounted, or its watch has ended. The event has no entry.
	Self
)

// Event tells of one or more changes.
type Event struct {
	Kind  Kind
	Entry string // the name in the directory
	Dir   bool   // the entry is, or was, a directory
}

// Dir is a directory that a Feed watches, or a file. It is part of what its owner knows of it.
type Dir struct {
	owner any
	feed  *Feed
	next  *Dir         // with the same watch
	id    atomic.Int32 // of the watch; 0: none
}

// Watch returns a number that changes when the watch of the directory does. It is 0 if there is none.
func (d *Dir) Watch() int32 { return d.id.Load() }

// maxNames is how many changed names a Feed keeps. If there are more, it has lost events.
const maxNames = 100_000

// Feed holds the changes of some directories since its last Read. Its methods may be called concurrently. A nil Feed
// watches nothing.
type Feed struct {
	hub  *hub
	most int
	wake chan struct{}

	// The lock of the hub guards the fields below.
	count   int // of watched directories
	changed map[*Dir]map[string]Event
	names   int // in changed
	lost    bool
	closed  bool
}

// A hub is the inotify instance of the process.
type hub struct {
	queue *queue
	most  int // watches

	mu      sync.Mutex
	watches map[int32]*Dir // the first of each watch
	feeds   map[*Feed]bool
	ended   chan struct{}
}

// shared is the hub while there are feeds.
var shared struct {
	sync.Mutex
	*hub
}

// Limits of the watches of a process: other programs of the user need some of those that the kernel allows.
const (
	leastWatches = 1024
	watchShare   = 2 // of what a user may have, one part in so many
)

// Open returns a Feed of at most so many directories.
func Open(most int) (*Feed, error) {
	shared.Lock()
	defer shared.Unlock()
	if shared.hub == nil {
		q, err := openQueue()
		if err != nil {
			return nil, err
		}
		h := &hub{queue: q, most: leastWatches, watches: map[int32]*Dir{}, feeds: map[*Feed]bool{},
			ended: make(chan struct{})}
		if text, err := os.ReadFile("/proc/sys/fs/inotify/max_user_watches"); err == nil {
			n, _ := strconv.Atoi(strings.TrimSpace(string(text)))
			h.most = max(n/watchShare, leastWatches)
		}
		go h.follow()
		shared.hub = h
	}
	f := &Feed{hub: shared.hub, most: most, wake: make(chan struct{}, 1), changed: map[*Dir]map[string]Event{}}
	f.hub.mu.Lock()
	defer f.hub.mu.Unlock()
	f.hub.feeds[f] = true
	return f, nil
}

// Close ends the watches of the feed.
func (f *Feed) Close() error {
	if f == nil {
		return nil
	}
	shared.Lock()
	defer shared.Unlock()
	h := f.hub
	if last := h.leave(f); !last {
		return nil
	}
	shared.hub = nil
	err := h.queue.close()
	<-h.ended
	return err
}

// leave removes a feed, and reports whether it was the last.
func (h *hub) leave(f *Feed) (last bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if f.closed {
		return false
	}
	f.closed = true
	f.forget()
	delete(h.feeds, f)
	last = len(h.feeds) == 0
	for _, d := range h.watches {
		for d != nil {
			next := d.next
			if d.feed == f {
				h.unlink(d, !last)
			}
			d = next
		}
	}
	return last
}

// Watch watches the open directory fd for d, and reports whether it is watched. Its entries are to be read after
// that. Read yields owner.
func (f *Feed) Watch(d *Dir, owner any, fd int) bool {
	// By the descriptor, so that no link on the way can be swapped in.
	return f.watch(d, owner, "/proc/self/fd/"+strconv.Itoa(fd), openDirectory)
}

// WatchPath is Watch for a path, whose last element is no link.
func (f *Feed) WatchPath(d *Dir, owner any, path string) bool {
	return f.watch(d, owner, path, directory)
}

// WatchFile is WatchPath for a file. Its events have no entry, and tell of changes of its metadata, such as the number
// of its names, and of its end.
func (f *Feed) WatchFile(d *Dir, owner any, path string) bool { return f.watch(d, owner, path, file) }

// A subject is what a path to watch leads to.
type subject int

const (
	directory     subject = iota
	openDirectory         // by a link of /proc, which is followed
	file
)

func (f *Feed) watch(d *Dir, owner any, path string, is subject) bool {
	if f == nil {
		return false
	}
	h := f.hub
	h.mu.Lock()
	defer h.mu.Unlock()
	if f.closed || d.id.Load() == 0 && f.count >= f.most {
		return false
	}
	id, err := h.queue.add(path, is)
	if err == nil && id == d.id.Load() {
		return true
	}
	h.unlink(d, true)
	if err != nil {
		return false
	}
	if h.watches[id] == nil && len(h.watches) >= h.most {
		h.queue.remove(id)
		return false
	}
	d.owner, d.feed, d.next = owner, f, h.watches[id]
	h.watches[id] = d
	d.id.Store(id)
	f.count++
	return true
}

// Unwatch ends the watch of a directory, and forgets its changes.
func (f *Feed) Unwatch(d *Dir) {
	if f == nil {
		return
	}
	f.hub.mu.Lock()
	defer f.hub.mu.Unlock()
	f.hub.unlink(d, true)
	f.names -= len(f.changed[d])
	delete(f.changed, d)
}

// unlink takes a directory out of its watch, and ends the watch if it has no other and end is set. It needs mu.
func (h *hub) unlink(d *Dir, end bool) {
	id := d.id.Load()
	if id == 0 {
		return
	}
	first := h.watches[id]
	if first == d {
		first = d.next
	} else {
		for at := first; at != nil; at = at.next {
			if at.next == d {
				at.next = d.next
			}
		}
	}
	if h.watches[id] = first; first == nil {
		delete(h.watches, id)
		if end {
			h.queue.remove(id)
		}
	}
	d.next = nil
	d.id.Store(0)
	d.feed.count--
}

// Watching returns how many directories are watched.
func (f *Feed) Watching() int {
	if f == nil {
		return 0
	}
	f.hub.mu.Lock()
	defer f.hub.mu.Unlock()
	return f.count
}

// Changed receives when there is something to Read.
func (f *Feed) Changed() <-chan struct{} { return f.wake }

// Read yields the changes since the last Read, one event a name, and the owners of their directories. yield may call
// methods of the feed. Read reports whether events were lost: then anything may have changed.
func (f *Feed) Read(yield func(owner any, e Event)) (lost bool) {
	if f == nil {
		return false
	}
	f.hub.mu.Lock()
	if !f.closed {
		f.hub.drain()
	}
	var changed map[*Dir]map[string]Event
	if len(f.changed) > 0 {
		changed = f.changed
		f.forget()
	}
	lost, f.lost = f.lost, false
	f.hub.mu.Unlock()
	for d, names := range changed {
		f.hub.mu.Lock() // it may be watched anew meanwhile
		owner := d.owner
		f.hub.mu.Unlock()
		for name, e := range names {
			e.Entry = name
			yield(owner, e)
		}
	}
	return lost
}

// Lose makes the next Read report that events were lost.
func (f *Feed) Lose() {
	f.hub.mu.Lock()
	defer f.hub.mu.Unlock()
	if !f.closed {
		f.hub.drain()
		f.lose()
	}
}

func (f *Feed) lose() {
	f.forget()
	f.lost = true
	f.notify()
}

func (f *Feed) forget() { f.changed, f.names = map[*Dir]map[string]Event{}, 0 }

func (f *Feed) notify() {
	select {
	case f.wake <- struct{}{}:
	default:
	}
}

// follow empties the queue, so that it does not overflow.
func (h *hub) follow() {
	defer close(h.ended)
	h.queue.wait(func() {
		h.mu.Lock()
		defer h.mu.Unlock()
		h.drain()
	})
}

// drain takes in all events that the kernel has. It needs mu.
func (h *hub) drain() {
	if h.queue.drain(h.take) == nil {
		return
	}
	for f := range h.feeds {
		f.lose()
	}
}

// take takes in an event of a watch, which has ended if ended is set.
func (h *hub) take(id int32, e Event, ended bool) {
	for d := h.watches[id]; d != nil; {
		next := d.next
		d.feed.note(d, e)
		if ended {
			d.next = nil
			d.id.Store(0)
			d.feed.count--
		}
		d = next
	}
	if ended {
		delete(h.watches, id)
	}
}

func (f *Feed) note(d *Dir, e Event) {
	names := f.changed[d]
	if names == nil {
		names = map[string]Event{}
		f.changed[d] = names
	}
	was, known := names[e.Entry]
	if !known {
		f.names++
	}
	names[e.Entry] = Event{Kind: max(was.Kind, e.Kind), Dir: was.Dir || e.Dir}
	f.notify()
	if f.names > maxNames {
		f.lose()
	}
}
