package sandbox

import (
	"context"
	"errors"
	"net"
	"strconv"
)

// A dialer connects to the network of a sandbox.
type dialer interface {
	dial(ctx context.Context, port int) (net.Conn, error)
	listen(port int) (net.Listener, error)
	listening() ([]int, error)
}

// errNoNetwork reports that a sandbox has no network of its own.
var errNoNetwork = errors.New("sandbox: the sandbox has no network of its own")

// Dial connects to a port that a command listens on inside the sandbox, on its
// loopback interface. [Sandbox.Publish] publishes such ports on the host.
func (s *Sandbox) Dial(ctx context.Context, port int) (net.Conn, error) {
	p, ok := s.engine.(dialer)
	if !ok {
		return nil, errNoNetwork
	}
	return p.dial(ctx, port)
}

// Listening returns the TCP ports that commands listen on inside the sandbox, in
// order, without the proxy's.
func (s *Sandbox) Listening() ([]int, error) {
	p, ok := s.engine.(dialer)
	if !ok {
		return nil, errNoNetwork
	}
	return p.listening()
}

// Forward lets commands reach a TCP service on the loopback interface of the host under its own port, until ctx is
// done.
func (s *Sandbox) Forward(ctx context.Context, port int) error {
	p, ok := s.engine.(dialer)
	if !ok {
		return errNoNetwork
	}
	l, err := p.listen(port)
	if err != nil {
		return err
	}
	f := &publisher{dial: func(ctx context.Context, port int) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "tcp", net.JoinHostPort("localhost", strconv.Itoa(port)))
	}}
	s.forwarded.Store(port, true)
	context.AfterFunc(ctx, func() { l.Close() })
	go f.accept(ctx, l, port)
	return nil
}
