package sandbox

import (
	"context"
	"io"
	"log/slog"
	"net"
	"strconv"
	"sync"
	"time"
)

// What publishing costs at most. Nothing is published that waits for more.
const (
	// publishEvery is how often it is looked for ports that commands listen on. A development server takes
	// longer than that to start.
	publishEvery = 250 * time.Millisecond
	// maxPublished is how many ports are published at once, and maxForwarded how many connections each may have.
	maxPublished = 32
	maxForwarded = 128
	// firstPublished is the first port that is published: those below are of services that programs trust, for only
	// the system's own could listen there.
	firstPublished = 1024
)

// Publish makes the ports that commands listen on reachable under the same number on the host's loopback
// interface, so that a development server can be opened in a browser. It returns when ctx is done and all is
// closed. A port that the host uses itself stays the host's, which the log says once, and ports below 1024 are not published.
func (s *Sandbox) Publish(ctx context.Context, log *slog.Logger) {
	p := &publisher{dial: s.Dial, log: log, open: map[int]net.Listener{}, told: map[int]bool{}}
	defer p.work.Wait()
	defer p.keep(nil)
	tick := time.NewTicker(publishEvery)
	defer tick.Stop()
	for {
		ports, err := s.Listening()
		if err != nil {
			return // the sandbox has ended, or has no network of its own
		}
		p.keep(ports)
		for _, port := range ports {
			p.publish(ctx, port)
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

type publisher struct {
	dial func(context.Context, int) (net.Conn, error)
	log  *slog.Logger
	open map[int]net.Listener
	told map[int]bool // ports of which the log says that they cannot be published
	work sync.WaitGroup
}

// keep ends the publishing of all other ports.
func (p *publisher) keep(ports []int) {
	wanted := map[int]bool{}
	for _, port := range ports {
		wanted[port] = true
	}
	for port, l := range p.open {
		if !wanted[port] {
			l.Close()
			delete(p.open, port)
		}
	}
}

func (p *publisher) publish(ctx context.Context, port int) {
	if p.open[port] != nil || len(p.open) >= maxPublished || port < firstPublished {
		return
	}
	l, err := (&net.ListenConfig{}).Listen(ctx, "tcp4", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
	if err != nil {
		if !p.told[port] && len(p.told) < maxPublished {
			p.told[port] = true
			p.log.Warn("a command listens on a port that cannot be published", "port", port, "error", err)
		}
		return // tried again: it may become free
	}
	p.open[port] = l
	p.work.Go(func() { p.accept(ctx, l, port) })
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
