package sandboxpool

import (
	"context"
	"sync"
	"time"
)

// publishAfter is how long a command runs before its listening ports are published. Most commands have ended by then.
const publishAfter = 250 * time.Millisecond

// ports publishes the ports on which commands in a sandbox listen, while any command runs. A nil *ports publishes
// none.
type ports struct {
	life    context.Context           // of the sandbox
	publish func(ctx context.Context) // publishes them until ctx is done

	mu      sync.Mutex
	timer   *time.Timer        // starts publish; nil if no command runs
	stop    context.CancelFunc // ends publish; nil if it has not been started
	running sync.WaitGroup     // publish
}

// begin is called when a command starts and no other runs.
func (p *ports) begin() {
	if p == nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	ctx, stop := context.WithCancel(p.life)
	p.stop = stop
	p.timer = time.AfterFunc(publishAfter, func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		if ctx.Err() == nil {
			p.running.Go(func() { p.publish(ctx) })
		}
	})
}

// end is called when the last command has ended.
func (p *ports) end() {
	if p == nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.timer.Stop()
	p.stop()
}

// wait waits until no port is published any more. The sandbox has ended.
func (p *ports) wait() {
	if p == nil {
		return
	}
	p.mu.Lock() // publish does not start meanwhile
	defer p.mu.Unlock()
	p.running.Wait()
}
