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
	// maxConnections is how many connections are open at once: two thousand clients with a stream of events and a
	// few requests each.
	maxConnections = 8192
	// fromOneAddress is the part of them that may come from one address of a network, so that one machine cannot
	// keep all others out: a quarter. Of IPv6 the whole network counts as one address.
	fromOneAddress = 4
	// networkBits are what one customer is given of IPv6 at least (RFC 6177): within it addresses cost nothing.
	networkBits = 64
	// refusals is how many clients are told at once that there is no room; the others see their connection close.
	refusals = 32
	// refusalTime bounds how long a client may take to read that.
	refusalTime = time.Second
)

// noRoom is the answer to a connection that is not served.
const noRoom = "HTTP/1.1 503 Service Unavailable\r\nRetry-After: 5\r\nConnection: close\r\n" +
	"Content-Type: text/plain\r\nContent-Length: 37\r\n\r\ntoo many connections, try again later"

// A limiter accepts connections while there is room, or an idle one can be closed for a new one, so that no client
// can use up all by opening idle connections. It refuses others at once instead of letting them wait.
type limiter struct {
	net.Listener
	limit  int
	plain  bool // an answer can be sent without a handshake
	log    *slog.Logger
	notice chan struct{} // a place for each client that is told

	mu      sync.Mutex
	open    int
	perPeer map[netip.Prefix]int
	idle    *list.List // of *counted, the one that has rested longest first
}

func newLimiter(l net.Listener, most int, plain bool, log *slog.Logger) *limiter {
	if most <= 0 {
		most = min(maxConnections, max(maxDescriptors()/2, 1))
	}
	return &limiter{Listener: l, limit: most, plain: plain, log: log, notice: make(chan struct{}, refusals), perPeer: map[netip.Prefix]int{}, idle: list.New()}
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

// enter takes a place.
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

// overShare reports whether a peer has its part already. Peers on this machine, and those of a Unix socket, share one
// address and have no bound of their own. The caller holds the lock.
func (l *limiter) overShare(peer netip.Prefix) bool {
	apart := peer.IsValid() && !peer.Addr().IsLoopback()
	return apart && l.perPeer[peer] >= max(l.limit/fromOneAddress, 1)
}

// makeRoom closes the connection that has rested longest, if a peer may have its place. It reports whether there was
// one.
func (l *limiter) makeRoom(peer netip.Prefix) bool {
	l.mu.Lock()
	first := l.idle.Front()
	refused := first == nil || l.overShare(peer)
	l.mu.Unlock()
	if refused {
		return false
	}
	_ = first.Value.(*trackedConn).Close() // its client is gone, or comes again
	return true
}

// Watch tells a listener of this package what its connections do, as [http.Server.ConnState] does: one without a
// request rests.
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

// refuse tells a client that there is no room, if it can be told without a handshake. What the client has sent
// is read away, because closing a connection with unread bytes would take the answer back.
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
			_, _ = io.CopyN(io.Discard, conn, 64<<10) // it ends with the client, or with the time
		}
	}()
}

// remote is what counts as one peer: an IPv4 address or an IPv6 network. It is not valid where there are no addresses.
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
	p, _ := addr.Prefix(bits) // it fits the address
	return p
}

// A trackedConn connection gives its place up when it closes.
type trackedConn struct {
	net.Conn
	limiter *limiter
	leave   func()

	idle *list.Element // in of.resting; guarded by of.mu
}

// setIdle notes that the connection has no request now, or that it has one or is closed.
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

// CloseWrite lets net/http end an answer before it takes the connection away from a client that still sends: what is
// unread would else take the answer back.
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

// ownPart is the part of the descriptors that a listener of [Bound] may take.
const ownPart = 8

// Bound bounds the connections of a listener that this package did not open: at most most are open at once, and a
// quarter of them from one network address. A refused client gets an answer in plain HTTP. Nothing is logged if log
// is nil.
func Bound(l net.Listener, most int, log *slog.Logger) net.Listener {
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	return newLimiter(l, min(most, max(maxDescriptors()/ownPart, 1)), true, log)
}
