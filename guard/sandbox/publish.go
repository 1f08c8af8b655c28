package sandbox

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net"
	"slices"
	"strconv"
	"sync"
	"time"
)

// The limits on publishing. Nothing beyond them is published.
const (
	// publishEvery is how often it is looked for ports that commands listen on. A development server takes
	// longer than that to start.
	publishEvery = 250 * time.Millisecond
	// maxPublished is how many ports are published at once, and maxForwarded how many connections each may have.
	maxPublished = 32
	maxForwarded = 128
)

// Publish makes the ports that commands listen on reachable under the same number on the host's loopback interface,
// so that a development server can be opened in a browser. It returns when ctx is done and all is closed. A port that
// a program of the host listens on, on whatever address and also later, stays that program's; those of well-known
// services and of toolhosts are not published. The log says so once, and [Sandbox.Withheld].
func (s *Sandbox) Publish(ctx context.Context, log *slog.Logger) { s.publish(ctx, log, nil, nil) }

// maxLogins is how many login ports of a sandbox are published at once.
const maxLogins = 2

// A loginPublisher publishes the ports at which a program of a sandbox waits for the browser of the user.
type loginPublisher struct {
	sandbox *Sandbox
	ctx     context.Context
	log     *slog.Logger
	wake    chan struct{}
	start   sync.Once

	mu    sync.Mutex
	until map[int]time.Time // by port
}

// PublishLogins returns the publisher of a sandbox. It ends when ctx is done.
func (s *Sandbox) PublishLogins(ctx context.Context, log *slog.Logger) *loginPublisher {
	return &loginPublisher{sandbox: s, ctx: ctx, log: log, wake: make(chan struct{}, 1), until: map[int]time.Time{}}
}

// Publish publishes a port for a time at most, as long as a program of the sandbox listens on it. It is an error if
// maxLogins others are published already.
func (p *loginPublisher) Publish(port int, atMost time.Duration) error {
	listening, err := p.sandbox.Listening()
	if err != nil {
		return err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if _, known := p.until[port]; !known && len(p.until) >= maxLogins {
		maps.DeleteFunc(p.until, func(other int, end time.Time) bool {
			return !slices.Contains(listening, other) || time.Now().After(end)
		})
		if len(p.until) >= maxLogins {
			return fmt.Errorf("%d login ports are published already: end one of these logins first", maxLogins)
		}
	}
	p.until[port] = time.Now().Add(atMost)
	p.start.Do(func() { go p.sandbox.publish(p.ctx, p.log, p.wants, p.wake) })
	select {
	case p.wake <- struct{}{}:
	default: // a look is due already
	}
	return nil
}

func (p *loginPublisher) wants(port int) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return time.Now().Before(p.until[port])
}

// publish is [Sandbox.Publish] for the ports for which wants returns true; nil: all. A value of wake makes it look
// at once.
func (s *Sandbox) publish(ctx context.Context, log *slog.Logger, wants func(port int) bool, wake <-chan struct{}) {
	p := &publisher{dial: s.Dial, log: log, open: map[int]net.Listener{}, told: map[int]bool{}, records: s.portRecords,
		notes: &s.ports}
	defer p.work.Wait()
	defer p.keep(nil)
	tick := time.NewTicker(publishEvery)
	defer tick.Stop()
	for {
		ports, err := s.Listening()
		if err != nil {
			return // the sandbox has ended, or has no network of its own
		}
		ports = slices.DeleteFunc(ports, func(port int) bool {
			_, ours := s.forwarded.Load(port)
			return ours || wants != nil && !wants(port)
		})
		if p.taken = nil; len(ports) > 0 {
			p.taken = takenPorts()
		}
		p.keep(ports)
		for _, port := range ports {
			p.publish(ctx, port)
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		case <-wake:
		}
	}
}

type publisher struct {
	dial func(context.Context, int) (net.Conn, error)
	log  *slog.Logger
	open map[int]net.Listener
	told map[int]bool // ports that were reported as not published
	work sync.WaitGroup

	records string       // see [RecordPort]
	taken   map[int]bool // ports that programs of the host listen on, on other addresses than ours
	notes   *portNotes
}

// keep ends the publishing of all other ports, and of those that a program of the host has come to listen on.
func (p *publisher) keep(ports []int) {
	wanted := map[int]bool{}
	for _, port := range ports {
		wanted[port] = !p.taken[port]
	}
	for port, l := range p.open {
		if !wanted[port] {
			l.Close()
			delete(p.open, port)
		}
	}
}

// publish publishes a port, or tells why not. It is tried again: a port may become free.
func (p *publisher) publish(ctx context.Context, port int) {
	if p.open[port] != nil {
		return
	}
	why := reserved(port, p.records)
	switch {
	case why != "":
	case p.taken[port]:
		why = "a program of the host listens on it"
	case len(p.open) >= maxPublished:
		why = fmt.Sprintf("%d ports are published already", maxPublished)
	default:
		l, err := (&net.ListenConfig{}).Listen(ctx, "tcp4", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
		if err == nil {
			p.open[port] = l
			p.work.Go(func() { p.accept(ctx, l, port) })
			return
		}
		why = err.Error()
	}
	if ctx.Err() != nil || p.told[port] || len(p.told) >= maxPublished {
		return
	}
	p.told[port] = true
	p.log.Warn("a command listens on a port that is not published", "port", port, "why", why)
	p.notes.add(withheld{port, why})
}

func (p *publisher) accept(ctx context.Context, l net.Listener, port int) {
	places := make(chan struct{}, maxForwarded)
	for {
		c, err := l.Accept()
		if err != nil {
			return // closed by keep
		}
		select {
		case places <- struct{}{}:
			p.work.Go(func() {
				defer func() { <-places }()
				p.forward(ctx, c, port)
			})
		default:
			c.Close()
		}
	}
}

// forward carries one connection until both sides have ended it, or ctx is done.
func (p *publisher) forward(ctx context.Context, outer net.Conn, port int) {
	defer outer.Close()
	inner, err := p.dial(ctx, port)
	if err != nil {
		return
	}
	defer inner.Close()
	defer context.AfterFunc(ctx, func() {
		outer.Close()
		inner.Close()
	})()
	var both sync.WaitGroup
	both.Go(func() { carry(inner, outer) })
	both.Go(func() { carry(outer, inner) })
	both.Wait()
}

// carry copies one direction and passes its end on. An error ends both directions.
func carry(to, from net.Conn) {
	_, err := io.Copy(to, from)
	half, ok := to.(interface{ CloseWrite() error })
	if err != nil || !ok || half.CloseWrite() != nil {
		to.Close()
		from.Close()
	}
}
