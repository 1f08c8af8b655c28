package settings

import (
	"fmt"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/fsnotify/fsnotify"
)

// settle is how long the watcher waits after the first sign of a change: an
// editor's save is several events. It bounds nothing else, Reload does not wait.
const settle = 20 * time.Millisecond

// Watcher follows the sources while the server runs. Its methods may be called
// from several goroutines.
type Watcher struct {
	onChange func(*Settings)
	current  atomic.Pointer[Settings]

	asked    atomic.Uint64 // how often Reload was called
	mu       sync.RWMutex  // guards reloader and looked
	reloader *reloader
	looked   uint64 // how many calls of Reload preceded the last check

	events  *fsnotify.Watcher // nil where the platform has none to give
	names   []string          // the files whose changes matter, without drop-ins
	changed chan struct{}     // holds one signal: current or reloader.due may have changed
	done    chan struct{}

	life     sync.Mutex    // guards follower and closed
	follower chan struct{} // closed when the following has ended; nil while nothing is followed
	closed   bool
}

// Watch reads all sources and follows them. onChange gets every later change,
// in order, from one goroutine; it must not call Close. If it is nil, nothing is
// followed: then only Reload detects changes, and writes next to the
// sources wake no goroutine.
//
// Watch fails only if a path of cfg is not absolute. If the platform cannot
// report changes, the settings have a warning, and
// only Reload detects changes.
func Watch(cfg Config, onChange func(*Settings)) (*Watcher, error) {
	if err := cfg.check(); err != nil {
		return nil, err
	}
	w := &Watcher{onChange: onChange, reloader: newReloader(cfg),
		changed: make(chan struct{}, 1), done: make(chan struct{})}
	if onChange == nil {
		w.current.Store(w.reloader.read())
		return w, nil
	}
	if err := w.open(); err != nil {
		w.reloader.remarks = []warning{{File: "settings",
			Text: fmt.Sprintf("changes are seen at the next call only: this system gives no notification (%v)", err)}}
	}
	first := w.reloader.read()
	w.current.Store(first)
	w.begin(first)
	return w, nil
}

// Follow starts to follow the sources, if they are not followed yet. onChange gets every later change, as in Watch.
func (w *Watcher) Follow(onChange func(*Settings)) {
	w.life.Lock()
	defer w.life.Unlock()
	if w.closed || w.follower != nil {
		return
	}
	w.onChange = onChange
	told := w.Current()
	if err := w.open(); err != nil {
		w.reloader.cfg.log().Warn("changes of the settings are seen at the next call only: this system gives no notification",
			"error", err)
	}
	w.begin(told)
	w.Reload() // for changes before the watch began
}

// open asks for notifications. It must precede a reading, so that changes in between cause an event.
func (w *Watcher) open() error {
	w.names = w.reloader.names()
	events, err := fsnotify.NewWatcher()
	if err != nil {
		return err
	}
	w.events = events
	w.arm()
	return nil
}

// begin follows the sources from here on.
func (w *Watcher) begin(told *Settings) {
	w.follower = make(chan struct{})
	go w.follow(told)
}

// Current returns the settings as last read.
func (w *Watcher) Current() *Settings { return w.current.Load() }

// Reload checks every source, reads what may have changed, and returns the
// settings now in force. It costs a stat for each source, so that it can be called
// before every tool call, which then sees earlier edits. Calls
// check concurrently as long as nothing has changed. When something has,
// the calls that arrive during a reading share the next one.
func (w *Watcher) Reload() *Settings {
	turn := w.asked.Add(1)
	if w.unchanged() {
		return w.current.Load()
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.looked >= turn {
		return w.current.Load()
	}
	w.looked = w.asked.Load()
	if next := w.reloader.read(); next != nil {
		w.current.Store(next)
		select {
		case w.changed <- struct{}{}:
		default: // a signal is waiting already
		}
	}
	return w.current.Load()
}

// unchanged looks at every source and reports whether none can have changed.
func (w *Watcher) unchanged() bool {
	w.mu.RLock()
	defer w.mu.RUnlock()
	return w.reloader.unchanged()
}

// Close ends the following. Current and Reload can still be called.
func (w *Watcher) Close() error {
	w.life.Lock()
	defer w.life.Unlock()
	if !w.closed {
		w.closed = true
		close(w.done)
	}
	if w.follower != nil {
		<-w.follower
	}
	return nil
}

// follow turns events into readings and readings into calls of onChange.
func (w *Watcher) follow(told *Settings) {
	defer close(w.follower)
	var events chan fsnotify.Event
	var errs chan error
	if w.events != nil {
		defer w.events.Close()
		events, errs = w.events.Events, w.events.Errors
	}
	soon, due := stoppedTimer(), stoppedTimer()
	defer soon.Stop()
	defer due.Stop()
	pending := false
	for {
		select {
		case e, ok := <-events:
			if ok && !pending && w.concerns(e.Name) {
				pending = true
				soon.Reset(settle)
			}
		case <-errs: // events were lost: look at everything
			pending = true
			soon.Reset(settle)
		case <-soon.C:
			pending = false
			w.arm()
			w.Reload()
		case <-due.C:
			w.Reload()
		case <-w.changed:
			told = w.tell(told)
		case <-w.done:
			return
		}
		if wait, ok := w.untilDue(); ok {
			due.Reset(wait)
		}
	}
}

func stoppedTimer() *time.Timer {
	t := time.NewTimer(time.Hour)
	t.Stop()
	return t
}

func (w *Watcher) tell(told *Settings) *Settings {
	now := w.Current()
	if now != told && w.onChange != nil {
		w.onChange(now)
	}
	return now
}

// untilDue returns the time until the settings change by themselves.
func (w *Watcher) untilDue() (time.Duration, bool) {
	w.mu.RLock()
	defer w.mu.RUnlock()
	if w.reloader.due.IsZero() {
		return 0, false
	}
	return max(0, w.reloader.due.Sub(w.reloader.now())), true
}

// arm watches each directory that may contain a source, and its parent, in which the directory itself appears. If
// neither exists, it watches the nearest existing one.
func (w *Watcher) arm() {
	if w.events == nil {
		return
	}
	// Adding again is cheap, and needed: a directory that was removed and made
	// again is no longer watched.
	done := map[string]bool{}
	for _, name := range w.names {
		dir := filepath.Dir(name)
		for up := 0; !done[dir]; up++ {
			done[dir] = true
			if w.events.Add(dir) == nil && up > 0 {
				break
			}
			dir = filepath.Dir(dir)
		}
	}
}

// concerns reports whether an event at path can change the settings: it names a
// source, or a directory on the way to one.
func (w *Watcher) concerns(path string) bool {
	for _, name := range w.names {
		if name == path || strings.HasPrefix(name, path+string(filepath.Separator)) {
			return true
		}
	}
	for _, d := range w.reloader.cfg.managedDirs() {
		if filepath.Dir(path) == d[1] {
			return true
		}
	}
	return false
}
