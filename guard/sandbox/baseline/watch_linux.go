package baseline

import (
	"bytes"
	"encoding/binary"
	"errors"
	"os"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"
)

// Limits of how many directories are watched, those nearest to the writable ones first: other programs of the user
// need some of the watches that the kernel allows. Directories that are not watched are examined before and after
// each command.
const (
	leastWatches = 1024
	mostWatches  = maxDirs
	watchShare   = 4 // of what a user may have, one part in so many
)

// lookAgain is how often directories are examined while commands run, watched or not.
const lookAgain = 2 * time.Second

// Limits on repeated checks: the least time between two, as a time and as a multiple of the duration of a check.
const (
	lookPause  = 2 * time.Millisecond
	lookFactor = 10
)

// The events that are watched in a directory, and in one of a repository.
const (
	heardOfAll   = unix.IN_CREATE | unix.IN_MOVED_TO | unix.IN_ONLYDIR | unix.IN_DONT_FOLLOW
	heardOfRepos = heardOfAll | unix.IN_CLOSE_WRITE | unix.IN_MODIFY | unix.IN_ATTRIB
)

// A watcher records which directories have changed, and has them examined while commands run. The caller of its
// methods holds the lock of the keeper. A nil watcher watches nothing.
type watcher struct {
	events *os.File
	fd     int
	most   int
	nodes  map[int32]*node // by the number of their watch
	lost   uint64          // how often the kernel has lost events
	buf    []byte
	heard  bool // something that makes git run programs may have appeared
	look   func(always bool) (took time.Duration)
	active atomic.Bool // commands run
	again  *time.Timer
	done   chan struct{}
	ended  chan struct{}
}

func newWatcher(look func(always bool) time.Duration) *watcher {
	fd, err := unix.InotifyInit1(unix.IN_CLOEXEC | unix.IN_NONBLOCK)
	if err != nil {
		return nil
	}
	w := &watcher{
		events: os.NewFile(uintptr(fd), "inotify"), fd: fd, most: leastWatches, nodes: map[int32]*node{},
		buf: make([]byte, 16<<10), look: look, done: make(chan struct{}), ended: make(chan struct{}),
	}
	if text, err := os.ReadFile("/proc/sys/fs/inotify/max_user_watches"); err == nil {
		if n, err := strconv.Atoi(strings.TrimSpace(string(text))); err == nil {
			w.most = min(max(n/watchShare, leastWatches), mostWatches)
		}
	}
	w.again = time.AfterFunc(time.Hour, w.lookAgain)
	w.again.Stop()
	go w.follow()
	return w
}

// add watches the directory of a node, and reports whether it is watched.
func (w *watcher) add(n *node) bool {
	if w == nil || len(w.nodes) >= w.most {
		return false
	}
	mask := uint32(heardOfAll)
	if n.repo {
		mask = heardOfRepos
	}
	wd, err := unix.InotifyAddWatch(w.fd, n.path, mask)
	if err != nil {
		return false
	}
	if other := w.nodes[int32(wd)]; other != nil && other != n {
		other.watched = false // of another tree: a directory has one watch
	}
	w.nodes[int32(wd)] = n
	return true
}

// lostEvents counts how often events were lost.
func (w *watcher) lostEvents() uint64 {
	if w == nil {
		return 0
	}
	return w.lost
}

// drain reads the pending events. The events of a process are queued before it ends.
func (w *watcher) drain() {
	if w == nil {
		return
	}
	for {
		n, err := unix.Read(w.fd, w.buf)
		switch {
		case err == unix.EINTR:
			continue
		case err != nil || n <= 0:
			return
		}
		for events := w.buf[:n]; len(events) >= unix.SizeofInotifyEvent; {
			size := unix.SizeofInotifyEvent + int(binary.NativeEndian.Uint32(events[12:]))
			w.take(int32(binary.NativeEndian.Uint32(events)), binary.NativeEndian.Uint32(events[4:]),
				string(bytes.TrimRight(events[unix.SizeofInotifyEvent:size], "\x00")))
			events = events[size:]
		}
	}
}

// take records one event.
func (w *watcher) take(wd int32, mask uint32, name string) {
	n := w.nodes[wd]
	switch {
	case mask&unix.IN_Q_OVERFLOW != 0:
		w.lost++
		w.heard = true
		return
	case mask&unix.IN_IGNORED != 0:
		delete(w.nodes, wd)
		if n != nil {
			n.watched = false
		}
		return
	case n != nil && n.place == hooksDir:
		n.dirty = true
	case n != nil && mask&(unix.IN_CREATE|unix.IN_MOVED_TO) != 0:
		n.dirty = true
		if mask&unix.IN_ISDIR != 0 {
			n.forget(name)
		}
	}
	w.heard = w.heard || mask&unix.IN_ISDIR != 0 || interesting(strings.ToLower(name), n != nil && n.repo)
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

// follow examines directories when events arrive while commands run.
func (w *watcher) follow() {
	defer close(w.ended)
	raw, err := w.events.SyscallConn()
	if err != nil {
		return
	}
	pause := time.NewTimer(0)
	defer pause.Stop()
	for {
		waited := false
		err := raw.Read(func(uintptr) bool { // which only waits: drain reads
			was := waited
			waited = true
			return was
		})
		if err != nil {
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
	err := w.events.Close()
	<-w.ended
	if errors.Is(err, os.ErrClosed) {
		return nil
	}
	return err
}
