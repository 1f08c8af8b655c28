package checkpoint

import (
	"math"
	"path"
	"slices"
	"sync"

	"github.com/toolhost/toolhost/guard/changes"
)

// events holds the commands that run, and counts the ignored files that changed meanwhile.
type events struct {
	mu      sync.Mutex
	marks   []*Mark
	ignored map[string]bool // files that changed in ignored directories while marks are open
	more    int             // others, which were found in new directories
	begun   []uint64        // when the commands began that started since none ran
}

func (e *events) begin(m *Mark) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if len(e.marks) == 0 {
		clear(e.ignored)
		e.more, e.begun = 0, nil
	}
	e.begun = append(e.begun, m.start)
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

// before returns the latest time before seq at which a running command began; 0 if none began before seq.
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

// begunBetween reports whether a command began after one change and before another.
func (e *events) begunBetween(first, second uint64) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return slices.ContainsFunc(e.begun, func(start uint64) bool { return first <= start && start < second })
}

// ignoredFile counts a file in a new ignored directory.
func (e *events) ignoredFile() {
	e.mu.Lock()
	defer e.mu.Unlock()
	if len(e.marks) > 0 {
		e.more++
	}
}

// maxIgnoredNames bounds the names of ignored files that are kept to count each once; the rest is counted as often as
// it changes.
const maxIgnoredNames = 100_000

// drain takes in what has changed: names in directories, and the paths of files in ignored ones. lost says that
// anything may have changed.
func (t *Tracker) drain(touched map[string]bool) (dirty map[*dir]map[string]bool, lost bool) {
	dirty = map[*dir]map[string]bool{}
	touch := func(d *dir, name string) {
		if dirty[d] == nil {
			dirty[d] = map[string]bool{}
		}
		dirty[d][name] = true
	}
	e := &t.events
	e.mu.Lock()
	defer e.mu.Unlock()
	lost = t.feed.Read(func(owner any, ev changes.Event) {
		d := owner.(*dir)
		switch {
		case d.gone:
		case ev.Kind == changes.Self || ev.Entry == "":
			d.replaced = d.replaced || ev.Kind == changes.Self
			if d.up != nil && !d.up.ignored {
				touch(d.up, path.Base(d.rel))
			}
		case !d.ignored:
			touch(d, ev.Entry)
		case ev.Kind == changes.Name && ev.Dir:
			touch(d, ev.Entry) // to be watched
		default:
			if len(e.marks) > 0 && len(e.ignored) < maxIgnoredNames {
				e.ignored[d.rel+ev.Entry] = true
			}
			touched[d.rel+ev.Entry] = true
		}
	})
	lost, t.again = lost || t.again, false
	return dirty, lost
}
