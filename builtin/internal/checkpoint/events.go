package checkpoint

import (
	"math"
	"path"
	"slices"
	"sync"

	"github.com/toolhost/toolhost/guard/changes"
)

// events holds the events since the last comparison, and the commands that run.
type events struct {
	mu       sync.Mutex
	dirty    map[*dir]map[string]bool // names to look at
	overflow bool                     // anything may have changed
	marks    []*Mark
	ignored  map[string]bool // files that changed in ignored directories while marks are open
	touched  map[string]bool // files in ignored directories to look at
	more     int             // others, which were found in new directories
}

func newEvents() events {
	return events{dirty: map[*dir]map[string]bool{}, ignored: map[string]bool{},
		touched: map[string]bool{}}
}

func (e *events) begin(m *Mark) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if len(e.marks) == 0 {
		clear(e.ignored)
		e.more = 0
	}
	m.ignored = len(e.ignored) + e.more
	e.marks = append(e.marks, m)
}

// end removes a mark and returns how many ignored files have changed since it began.
func (e *events) end(m *Mark) int {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.marks = slices.DeleteFunc(e.marks, func(o *Mark) bool { return o == m })
	return len(e.ignored) + e.more - m.ignored
}

// marked reports whether a command runs.
func (e *events) marked() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return len(e.marks) > 0
}

// earlier reports whether a command that runs has begun before seq.
func (e *events) earlier(seq uint64) bool { return e.oldest() < seq }

// oldest is the time when the first running command began.
func (e *events) oldest() uint64 {
	e.mu.Lock()
	defer e.mu.Unlock()
	first := uint64(math.MaxUint64)
	for _, m := range e.marks {
		first = min(first, m.start)
	}
	return first
}

// before is the time when the last running command began that began before seq.
func (e *events) before(seq uint64) (last uint64) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, m := range e.marks {
		if m.start < seq {
			last = max(last, m.start)
		}
	}
	return last
}

// again makes the next comparison examine everything.
func (e *events) again() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.overflow = true
}

// isReplaced reports, once, whether the watch of a directory has ended.
func (e *events) isReplaced(d *dir) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	was := d.replaced
	d.replaced = false
	return was
}

// forget records that a directory no longer exists.
func (e *events) forget(d *dir) {
	e.mu.Lock()
	defer e.mu.Unlock()
	delete(e.dirty, d)
	d.gone = true
}

// ignoredFile counts a file in a new ignored directory.
func (e *events) ignoredFile() {
	e.mu.Lock()
	defer e.mu.Unlock()
	if len(e.marks) > 0 {
		e.more++
	}
}

// touch notes that a name must be examined.
func (e *events) touch(d *dir, name string) {
	if e.dirty[d] == nil {
		e.dirty[d] = map[string]bool{}
	}
	e.dirty[d][name] = true
}

// take returns the entries to examine, and clears them.
func (e *events) take() (dirty map[*dir]map[string]bool, overflow bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	dirty, overflow = e.dirty, e.overflow
	e.dirty, e.overflow = map[*dir]map[string]bool{}, false
	return dirty, overflow
}

// takeTouched returns the files in ignored directories to look at, and clears them.
func (e *events) takeTouched() map[string]bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	touched := e.touched
	e.touched = map[string]bool{}
	return touched
}

// maxIgnoredNames bounds the names of ignored files that are kept to count each once; the rest is counted as often as
// it changes.
const maxIgnoredNames = 100_000

// drain takes in what has changed.
func (t *Tracker) drain() {
	e := &t.events
	e.mu.Lock()
	defer e.mu.Unlock()
	lost := t.feed.Read(func(owner any, ev changes.Event) {
		d := owner.(*dir)
		switch {
		case d.gone:
		case ev.Kind == changes.Self || ev.Entry == "":
			d.replaced = d.replaced || ev.Kind == changes.Self
			if d.up != nil && !d.up.ignored {
				e.touch(d.up, path.Base(d.rel))
			}
		case !d.ignored:
			e.touch(d, ev.Entry)
		case ev.Kind == changes.Name && ev.Dir:
			e.touch(d, ev.Entry) // to be watched
		default:
			if len(e.marks) > 0 && len(e.ignored) < maxIgnoredNames {
				e.ignored[d.rel+ev.Entry] = true
			}
			if len(e.touched) < maxIgnoredNames {
				e.touched[d.rel+ev.Entry] = true
			}
		}
	})
	e.overflow = e.overflow || lost
}
