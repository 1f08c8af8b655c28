package scope

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"
)

// DefaultParallel is how many calls of one scope run at once; the setting is gate.parallel.
const DefaultParallel = 10

// SiblingWindow is how far apart two calls may arrive and still belong to one message of the assistant.
const SiblingWindow = 100 * time.Millisecond

// GateOptions are the settings of a gate. The zero value is usable: the default width, and siblings of a
// failed call are refused.
type GateOptions struct {
	// Parallel is the most calls that run at once; below 1 it is [DefaultParallel].
	Parallel int
	// KeepSiblings keeps the queued siblings of a failed call in the queue. Otherwise they are refused.
	KeepSiblings bool
}

// A Gate orders the calls of one scope by arrival. Use [NewGate].
//
// A call starts if no call runs, or if it and all running calls may run concurrently. All calls after a waiting call
// wait too, so that a later call sees the changes of an earlier one. A call gets its ticket when it arrives, before
// its input is examined. Until it calls Acquire, no call after it starts.
type Gate struct {
	opts GateOptions

	mu      sync.Mutex
	queue   []*Ticket // waiting calls in order of arrival
	running int
	alone   bool      // the running call may not run concurrently with others
	aside   int       // calls that others do not wait for: yielded and postponed ones
	yielded time.Time // when a call has yielded last
}

// NewGate returns an open gate.
func NewGate(o GateOptions) *Gate {
	if o.Parallel < 1 {
		o.Parallel = DefaultParallel
	}
	return &Gate{opts: o}
}

// A RefusedError is the error of a call whose sibling failed before the call could start.
type RefusedError struct{ Cause string }

func (e *RefusedError) Error() string {
	return fmt.Sprintf("Cancelled: parallel tool call %s errored. This call did not run; call it again if it is still "+
		"needed", e.Cause)
}

// A Ticket is the place of one call in the queue of a gate. Every ticket must be released, or failed, at the end.
type Ticket struct {
	gate    *Gate
	arrived time.Time
	start   chan error // receives once: nil if the call may start, otherwise the reason

	// Guarded by gate.mu.
	bound, concurrent bool
	state             state
	limit             *time.Timer // of YieldAfter; nil if there is none
}

type state uint8

const (
	queued state = iota
	postponed
	started
	yielded
	left
)

// Admit takes the next place in the queue. It never blocks.
func (g *Gate) Admit() *Ticket {
	t := &Ticket{gate: g, arrived: time.Now(), start: make(chan error, 1)}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.queue = append(g.queue, t)
	return t
}

// Acquire waits for the call's turn. concurrent says whether the call may run concurrently with others that may. The
// error is the cause of the context's end, or a [*RefusedError]; the ticket is then released.
func (t *Ticket) Acquire(ctx context.Context, concurrent bool) error {
	t.gate.mu.Lock()
	if t.state == postponed {
		t.state, t.arrived = queued, time.Now()
		t.gate.aside--
		t.gate.queue = append(t.gate.queue, t)
	}
	t.bound, t.concurrent = true, concurrent
	t.gate.advance()
	t.gate.mu.Unlock()
	select {
	case err := <-t.start: // usually the call can start at once
		return err
	default:
	}
	select {
	case err := <-t.start:
		return err
	case <-ctx.Done():
		t.Release()
		return context.Cause(ctx)
	}
}

// Release removes the call from the gate, whether it waits, runs or has ended. A second call does nothing.
func (t *Ticket) Release() {
	t.gate.mu.Lock()
	defer t.gate.mu.Unlock()
	t.leave()
}

// Postpone removes a call that has not called Acquire yet from the queue. Acquire then puts it at the end of the
// queue.
func (t *Ticket) Postpone() {
	g := t.gate
	g.mu.Lock()
	defer g.mu.Unlock()
	if t.state != queued || t.bound {
		return
	}
	t.unqueue()
	t.state = postponed
	g.aside++
	g.advance()
}

// YieldAfter lets later calls start when this call has run for the limit, although it still runs. If another call has
// yielded since this one arrived, this one yields at once. So several slow calls delay a later one no longer than one
// does.
func (t *Ticket) YieldAfter(limit time.Duration) {
	g := t.gate
	g.mu.Lock()
	defer g.mu.Unlock()
	if t.state != started || t.limit != nil {
		return
	}
	if t.arrived.Before(g.yielded) {
		t.yield()
		return
	}
	t.limit = time.AfterFunc(limit, func() {
		g.mu.Lock()
		defer g.mu.Unlock()
		t.yield()
	})
}

// yield lets later calls start. The caller holds the lock.
func (t *Ticket) yield() {
	if t.state != started {
		return
	}
	t.stopRunning()
	t.state = yielded
	t.gate.aside++
	t.gate.yielded = time.Now()
	t.gate.advance()
}

// stopRunning removes the call from those that others wait for. The caller holds the lock.
func (t *Ticket) stopRunning() {
	g := t.gate
	if g.running--; g.running == 0 {
		g.alone = false
	}
}

// unqueue removes the ticket from the queue. The caller holds the lock.
func (t *Ticket) unqueue() {
	g := t.gate
	g.queue = slices.DeleteFunc(g.queue, func(q *Ticket) bool { return q == t })
}

// Fail releases the ticket. Unless KeepSiblings is set, it refuses the siblings that still wait: the calls that
// arrived within [SiblingWindow] of this one. cause names the failed call.
func (t *Ticket) Fail(cause string) {
	g := t.gate
	g.mu.Lock()
	defer g.mu.Unlock()
	if !g.opts.KeepSiblings {
		var stay []*Ticket
		for _, q := range g.queue {
			if q.arrived.Sub(t.arrived).Abs() > SiblingWindow {
				stay = append(stay, q)
				continue
			}
			q.state = left
			q.start <- &RefusedError{Cause: cause}
		}
		g.queue = stay
	}
	t.leave()
}

// leave removes the ticket from the gate. The caller holds the lock.
func (t *Ticket) leave() {
	g := t.gate
	switch t.state {
	case queued:
		t.unqueue()
	case started:
		t.stopRunning()
	case postponed, yielded:
		g.aside--
	}
	if t.state = left; t.limit != nil {
		t.limit.Stop()
	}
	g.advance()
}

// advance starts waiting calls in order, up to the first one that must wait. The caller holds the lock.
func (g *Gate) advance() {
	for len(g.queue) > 0 {
		head := g.queue[0]
		if !head.bound || g.alone || g.running >= g.opts.Parallel || g.running > 0 && !head.concurrent {
			return
		}
		g.queue = g.queue[1:]
		head.state = started
		g.running++
		g.alone = !head.concurrent
		head.start <- nil
	}
}

// Len returns how many calls run or wait.
func (g *Gate) Len() int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.running + g.aside + len(g.queue)
}

// Idle reports whether no call runs or waits.
func (g *Gate) Idle() bool { return g.Len() == 0 }
