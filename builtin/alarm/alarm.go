// Package alarm calls functions after a while, where it does not matter when exactly: to look after something that takes long, or to do
// what was put off.
//
// A clock of package time wakes a thread when it is set in a process that rests, since one has to wait for it. For a call that takes a
// tenth of a millisecond and hardly ever needs the clock, that thread is the most of what it disturbs. Here the kernel keeps the clock
// (timerfd), and whichever thread has nothing else to do hears of it.
package alarm

import (
	"sync"
	"time"
)

// An Alarm calls its function some time after it was set, but not while the function runs already. It rings at once if threads have
// nothing to do, and up to some hundredths of a second late if they have. An Alarm may be used by several goroutines.
type Alarm struct {
	ring  func()
	quiet *quiet // nil: timer is used

	mu     sync.Mutex
	timer  *time.Timer
	closed bool
}

// New makes an alarm that is not set. It must be closed.
func New(ring func()) *Alarm { return start(ring, (*Alarm).wait) }

// Process makes an alarm that belongs to the process: it is never closed.
func Process(ring func()) *Alarm { return start(ring, (*Alarm).forever) }

func start(ring func(), wait func(*Alarm)) *Alarm {
	a := &Alarm{ring: ring}
	if q, err := newQuiet(); err == nil {
		a.quiet = q
		go wait(a)
	}
	return a
}

// forever is how a test that looks for goroutines left behind knows the one that stays.
func (a *Alarm) forever() { a.wait() }

// NewTimer is an alarm that uses the clock of package time, also that of a test with a clock of its own.
func NewTimer(ring func()) *Alarm { return &Alarm{ring: ring} }

// wait rings as often as the kernel says.
func (a *Alarm) wait() {
	for a.quiet.wait() {
		a.ring()
	}
}

// Set makes the alarm ring once after a while, whatever it was set to before. Zero turns it off; it may be ringing just then.
func (a *Alarm) Set(after time.Duration) {
	if a.quiet != nil {
		a.quiet.set(after)
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	switch {
	case after <= 0 || a.closed:
		if a.timer != nil {
			a.timer.Stop()
		}
	case a.timer == nil:
		a.timer = time.AfterFunc(after, a.ring)
	default:
		a.timer.Reset(after)
	}
}

// Close turns the alarm off for good. It does not wait for a ring that has begun.
func (a *Alarm) Close() {
	if a.quiet != nil {
		a.quiet.close()
		return
	}
	a.Set(0)
	a.mu.Lock()
	defer a.mu.Unlock()
	a.closed = true
}
