package mcpserver

import (
	"sync/atomic"

	"github.com/toolhost/toolhost/builtin"
)

// A reloads lets calls that arrived together share one reload of the settings. A reload that began after a call arrived
// shows everything that the call must see, unless something that ran since then may have changed the settings.
type reloads struct {
	begun   atomic.Uint64
	ended   atomic.Uint64 // the number of the latest reload that has ended
	expired atomic.Uint64 // the value of begun when something that may have changed the settings had run
}

// begin returns the number of a reload that begins now.
func (r *reloads) begin() uint64 { return r.begun.Add(1) }

// done records that a reload has ended.
func (r *reloads) done(n uint64) { raise(&r.ended, n) }

// afterCall is deferred for each call that the gate let run. A call that ran alone, or its hooks, may have changed the settings, and the
// next call must see that. Hooks may have replaced the call.
func (r *reloads) afterCall(call **builtin.Call) {
	if *call == nil || !(*call).ConcurrencySafe {
		r.expire()
	}
}

// expire records that the settings may have changed.
func (r *reloads) expire() { raise(&r.expired, r.begun.Load()) }

// serves reports whether a completed reload is recent enough for a call. arrived is the number of reloads that had
// begun when the call arrived.
func (r *reloads) serves(arrived uint64) bool {
	return r.ended.Load() > max(arrived, r.expired.Load())
}

func raise(to *atomic.Uint64, n uint64) {
	for was := to.Load(); was < n && !to.CompareAndSwap(was, n); was = to.Load() {
	}
}
