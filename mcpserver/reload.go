package mcpserver

import (
	"sync/atomic"

	"github.com/toolhost/toolhost/builtin"
)

// reloads count the looks at the settings. Calls that came in together share one: a look that began behind the arrival of a call shows
// what that call must see, unless something that ran before it may have changed the settings since.
type reloads struct {
	begun   atomic.Uint64
	ended   atomic.Uint64 // the latest that ended
	expired atomic.Uint64 // the latest that had begun when something had run that may have changed them
}

// begin numbers a look that begins now.
func (l *reloads) begin() uint64 { return l.begun.Add(1) }

// done says that a look has ended, and what it found is known.
func (l *reloads) done(n uint64) { raise(&l.ended, n) }

// afterCall is deferred for each call that gets its turn. What runs alone, or its hooks, may have changed the settings, and who comes
// next must see that.
func (l *reloads) afterCall(call *builtin.Call) {
	if call == nil || !call.Beside {
		l.expire()
	}
}

// expire says that what was seen so far may have changed.
func (l *reloads) expire() { raise(&l.expired, l.begun.Load()) }

// serves reports whether a look that has ended serves a call before whose arrival so many had begun.
func (l *reloads) serves(arrived uint64) bool {
	return l.ended.Load() > max(arrived, l.expired.Load())
}

func raise(to *atomic.Uint64, n uint64) {
	for was := to.Load(); was < n && !to.CompareAndSwap(was, n); was = to.Load() {
	}
}
