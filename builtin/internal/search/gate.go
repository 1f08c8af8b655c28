package search

import (
	"cmp"
	"context"
	"sync"
	"time"
)

// backgroundGate makes background work wait while queries run. When they do not end, it
// gets a slice of time after a limit.
type backgroundGate struct {
	mu      sync.Mutex
	running int
	free    chan struct{} // closed when no query runs any more; nil: no goroutine waits
	slice   time.Time     // until when work continues although queries run
	patient time.Duration // instead of patience, for tests; 0: it is not set
}

const (
	// patience is how long background work waits for queries to end, and workSlice how
	// long it then continues: a host that is never idle gets its index too.
	patience  = time.Second
	workSlice = 100 * time.Millisecond
)

func (g *backgroundGate) enter() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.running++
}

func (g *backgroundGate) leave() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.running--; g.running == 0 && g.free != nil {
		close(g.free)
		g.free = nil
	}
}

// pause returns when no query runs, or when patience has passed.
func (g *backgroundGate) pause(ctx context.Context) error {
	var timer *time.Timer
	for {
		free := g.busy()
		if free == nil {
			return ctx.Err()
		}
		if timer == nil {
			timer = time.NewTimer(cmp.Or(g.patient, patience))
			defer timer.Stop()
		}
		select {
		case <-free:
		case <-timer.C:
			g.mu.Lock()
			g.slice = time.Now().Add(workSlice)
			g.mu.Unlock()
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// busy returns nil if background work may go on, otherwise a channel that is closed when no query runs any more.
func (g *backgroundGate) busy() <-chan struct{} {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.running == 0 || time.Now().Before(g.slice) {
		return nil
	}
	if g.free == nil {
		g.free = make(chan struct{})
	}
	return g.free
}
