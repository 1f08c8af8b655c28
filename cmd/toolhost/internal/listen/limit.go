package listen

import (
	"container/list"
	"crypto/tls"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"sync"
	"time"
)

// Bounds of connections.
const (
	// maxConnections is how many connections may be open at once: enough for two thousand clients with an event stream
	// and a few requests each.
	maxConnections = 8192
	// fromOneAddress limits the connections from one network address to a part of all, a quarter, so that one machine
	// cannot keep all others out. For IPv6 a whole network counts as one address.
	fromOneAddress = 4
	// networkBits is the prefix length of the smallest IPv6 network that a customer gets (RFC 6177), who can use all
	// addresses in it.
	networkBits = 64
	// refusals is how many clients at once are sent the answer that there is no room. For other clients the connection
	// is closed.
	refusals = 32
	// refusalTime is how long a client may take to read that answer.
	refusalTime = time.Second
)

// noRoom is the answer to a connection that is not served.
const noRoom = "HTTP/1.1 503 Service Unavailable\r\nRetry-After: 5\r\nConnection: close\r\n" +
	"Content-Type: text/plain\r\nContent-Length: 37\r\n\r\ntoo many connections, try again later"

// A limiter accepts connections while there is room, or while it can close an idle connection, so that no client can
// block others with idle connections. Otherwise it refuses connections immediately, instead of letting them wait.
type limiter struct {
	net.Listener
	limit  int
	plain  bool // an answer can be sent without a TLS handshake
	log    *slog.Logger
	notice chan struct{} // has an element for each client that is being sent the answer

	mu      sync.Mutex
	open    int
	perPeer map[netip.Prefix]int
	idle    *list.List // of *trackedConn, the longest idle one first
}

func newLimiter(l net.Listener, most int, plain bool, log *slog.Logger) *limiter {
	if most <= 0 {
		most = min(maxConnections, max(maxDescriptors()/2, 1))
	}
	return &limiter{Listener: l, limit: most, plain: plain, log: log, notice: make(chan struct{}, refusals),
		perPeer: map[netip.Prefix]int{}, idle: list.New()}
}

// Accept waits for the next connection that there is room for.
func (l *limiter) Accept() (net.Conn, error) {
	for {
		conn, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		peer := remote(conn)
		if l.enter(peer) || l.makeRoom(peer) && l.enter(peer) {
			c := &trackedConn{Conn: conn, limiter: l}
			c.leave = sync.OnceFunc(func() { c.setIdle(false); l.leave(peer) })
			return c, nil
		}
		l.log.Debug("a connection is refused, too many are open", "peer", conn.RemoteAddr())
		l.refuse(conn)
	}
}

// enter counts a connection of a peer. It reports false if there is no room for it.
func (l *limiter) enter(peer netip.Prefix) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.open >= l.limit || l.overShare(peer) {
		return false
	}
	l.open++
	l.perPeer[peer]++
	return true
}

// overShare reports whether a peer already has as many connections as one address may have. Peers on this machine
// have no such limit, because they share one address, and those of a Unix socket have none. The caller holds the
// lock.
func (l *limiter) overShare(peer netip.Prefix) bool {
	apart := peer.IsValid() && !peer.Addr().IsLoopback()
	return apart && l.perPeer[peer] >= max(l.limit/fromOneAddress, 1)
}

// makeRoom closes the longest idle connection, unless the peer may not have another one. It reports whether it closed
// one.
func (l *limiter) makeRoom(peer netip.Prefix) bool {
	l.mu.Lock()
	first := l.idle.Front()
	refused := first == nil || l.overShare(peer)
	l.mu.Unlock()
	if refused {
		return false
	}
	_ = first.Value.(*trackedConn).Close() // its client is gone, or connects again
	return true
}

// Watch tells a listener of this package the state of its connections, as [http.Server.ConnState] gets it. A
// connection without a request is idle.
func Watch(conn net.Conn, state http.ConnState) {
	if t, ok := conn.(*tls.Conn); ok {
		conn = t.NetConn()
	}
	if c, ok := conn.(*trackedConn); ok {
		c.setIdle(state == http.StateNew || state == http.StateIdle)
	}
}

func (l *limiter) leave(peer netip.Prefix) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.open--
	if l.perPeer[peer]--; l.perPeer[peer] == 0 {
		delete(l.perPeer, peer)
	}
}

// refuse sends a client the answer that there is no room, if that is possible without a TLS handshake. It reads what
// the client has sent, because closing a connection with unread bytes may discard the answer.
func (l *limiter) refuse(conn net.Conn) {
	select {
	case l.notice <- struct{}{}:
	default:
		conn.Close()
		return
	}
	go func() {
		defer func() { conn.Close(); <-l.notice }()
		if !l.plain || conn.SetDeadline(time.Now().Add(refusalTime)) != nil {
			return
		}
		if _, err := io.WriteString(conn, noRoom); err != nil {
			return
		}
		if half, ok := conn.(interface{ CloseWrite() error }); ok && half.CloseWrite() == nil {
			_, _ = io.CopyN(io.Discard, conn, 64<<10) // ends when the client closes, or at the deadline
		}
	}()
}

// remote returns what counts as one peer: an IPv4 address or an IPv6 network. The result is invalid for a connection
// without addresses.
func remote(conn net.Conn) netip.Prefix {
	if tcp, ok := conn.RemoteAddr().(*net.TCPAddr); ok {
		return network(tcp.AddrPort().Addr())
	}
	return netip.Prefix{}
}

func network(addr netip.Addr) netip.Prefix {
	addr = addr.Unmap().WithZone("")
	bits := addr.BitLen()
	if addr.Is6() && !addr.IsLoopback() {
		bits = networkBits
	}
	p, _ := addr.Prefix(bits) // bits fits the address
	return p
}

// A trackedConn is a connection that makes room for another one when it is closed.
type trackedConn struct {
	net.Conn
	limiter *limiter
	leave   func()

	idle *list.Element // in limiter.idle; guarded by limiter.mu
}

// setIdle records that the connection is idle, or that it has a request or is closed.
func (c *trackedConn) setIdle(resting bool) {
	c.limiter.mu.Lock()
	defer c.limiter.mu.Unlock()
	if c.idle != nil {
		c.limiter.idle.Remove(c.idle)
		c.idle = nil
	}
	if resting {
		c.idle = c.limiter.idle.PushBack(c)
	}
}

// CloseWrite lets net/http end its answer before it closes a connection whose client still sends: closing with unread
// bytes may discard the answer.
func (c *trackedConn) CloseWrite() error {
	if half, ok := c.Conn.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return errors.ErrUnsupported
}

func (c *trackedConn) Close() error {
	defer c.leave()
	return c.Conn.Close()
}

// ownPart limits a listener of [Bound] to 1/ownPart of the descriptors.
const ownPart = 8

// Bound limits the connections of a listener that this package has not opened: at most most are open at once, and a
// quarter of them from one network address. A refused client gets an answer in plain HTTP.
func Bound(l net.Listener, most int, log *slog.Logger) net.Listener {
	return newLimiter(l, min(most, max(maxDescriptors()/ownPart, 1)), true, log)
}
