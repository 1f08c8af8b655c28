package proxy

import (
	"crypto/tls"
	"io"
	"log"
	"net"
	"net/http"
	"slices"
	"sync"
)

// discardLog takes the messages of http.Server about commands that hang up.
var discardLog = log.New(io.Discard, "", 0)

// A limited listener accepts a limited number of connections at a time. When there are too many, it closes an idle
// connection of HTTP/1 that [http.Server] serves: programs open them again, and may keep them open until they end. It
// closes no connection of HTTP/2, because programs do not repeat a request that was sent as the connection ended.
type limited struct {
	net.Listener
	mu      sync.Mutex
	changed sync.Cond
	free    int // how many more are served
	closed  bool
	idle    []net.Conn // the oldest first
}

// limitListener accepts at most n connections at a time.
func limitListener(l net.Listener, n int) *limited {
	limited := &limited{Listener: l, free: n}
	limited.changed.L = &limited.mu
	return limited
}

func (l *limited) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	for l.free == 0 && !l.closed {
		if len(l.idle) > 0 {
			go l.idle[0].Close() // TLS says goodbye, which may take time
			l.idle = l.idle[1:]
		}
		l.changed.Wait()
	}
	if l.closed {
		c.Close()
		return nil, net.ErrClosed
	}
	l.free--
	return &limitedConn{Conn: c, release: sync.OnceFunc(l.release)}, nil
}

func (l *limited) release() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.free++
	l.changed.Signal()
}

// note notes the state of a connection.
func (l *limited) note(c net.Conn, state http.ConnState) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.idle = slices.DeleteFunc(l.idle, func(other net.Conn) bool { return other == c })
	secured, ok := c.(*tls.Conn)
	if h2 := ok && secured.ConnectionState().NegotiatedProtocol == "h2"; state == http.StateIdle && !h2 {
		l.idle = append(l.idle, c)
		l.changed.Signal()
	}
}

func (l *limited) Close() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.closed = true
	l.changed.Signal()
	return l.Listener.Close()
}

// limitedConn gives its place back when it is closed.
type limitedConn struct {
	net.Conn
	release func()
}

func (c *limitedConn) Close() error {
	defer c.release()
	return c.Conn.Close()
}

// CloseWrite ends one direction.
func (c *limitedConn) CloseWrite() error {
	return c.Conn.(*net.TCPConn).CloseWrite()
}
