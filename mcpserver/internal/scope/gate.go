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
	// KeepSiblings leaves the queued siblings of a failed call alone.
	KeepSiblings bool
}

// A Gate orders the calls of one scope: first come, first served, in order of arrival. Use [NewGate].
//
// A call starts if nothing runs, or if it and all that runs may run concurrently with others. A call that must wait
// makes everything after it wait, so that what an earlier call changes is seen by a later one. A ticket is
// taken when a call arrives, before its input is even examined; until its input has been bound, nothing
// after it starts.
type Gate struct {
	opts GateOptions

	mu      sync.Mutex
	queue   []*Ticket // arrived, not started, in order of arrival
	running int
	alone   bool      // what runs is exclusive
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

// A RefusedError is the answer to a call whose sibling failed before it could start.
type RefusedError struct{ Cause string }

func (e *RefusedError) Error() string {
	return fmt.Sprintf("Cancelled: parallel tool call %s errored. This call did not run; call it again if it is still needed", e.Cause)
}

// A Ticket is one call's place. Every ticket must be left, whatever became of its call.
type Ticket struct {
	gate    *Gate
	arrived time.Time
	start   chan error // receives once: nil to start, or why not

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

// Acquire waits for the call's turn. concurrent says whether it may run with others that may. The error is the
// context's, or a [*RefusedError]; a call that did not enter has left the queue.
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
	case err := <-t.start: // as most are: nothing has to be waited for
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

// Release gives the place up, before or after the call ran. Leaving twice does nothing.
func (t *Ticket) Release() {
	t.gate.mu.Lock()
	defer t.gate.mu.Unlock()
	t.leave()
}

// Postpone gives the place of a call up that is not bound yet. The call gets a new one at the end of the queue in
// Acquire.
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

// YieldAfter lets later calls start once this call has run for the limit, while it goes on. A call that arrived before
// another one yielded yields at once, so that several slow calls delay a later one no longer than one does.
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

// stopRunning no longer counts the call among those that others wait for. The caller holds the lock.
func (t *Ticket) stopRunning() {
	g := t.gate
	if g.running--; g.running == 0 {
		g.alone = false
	}
}

// unqueue takes the ticket off the queue. The caller holds the lock.
func (t *Ticket) unqueue() {
	g := t.gate
	g.queue = slices.DeleteFunc(g.queue, func(q *Ticket) bool { return q == t })
}

// Fail leaves, and refuses the siblings that still wait: the calls that arrived within [SiblingWindow] of
// this one. cause names the failed call.
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

// leave takes the ticket off the gate. The caller holds the lock.
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

// advance starts what may start, in order, and stops at the first call that may not. The caller holds the lock.
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

// Len is how many calls run or wait.
func (g *Gate) Len() int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.running + g.aside + len(g.queue)
}

// Idle reports whether nothing runs and nothing waits.
func (g *Gate) Idle() bool { return g.Len() == 0 }
