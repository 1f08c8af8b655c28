// Package remote carries the clients of one machine to a host on another. Anything that starts a command there and
// passes its input and output is a link. Links break; a [channel] goes over one after another and loses, repeats and
// reorders nothing. HTTP/2 over one channel carries all requests, so that every request reaches the far host exactly
// once or, if the far host itself is gone, is reported as such.
package remote

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"time"
)

const (
	// maxUnacknowledged is how many bytes are kept for the other side. A writer that would exceed it waits.
	maxUnacknowledged = 64 << 20
	// maxUnread is how many received bytes wait to be read before the link is not read any further.
	maxUnread = 4 << 20
	// maxPacket bounds the data of a packet, and acknowledgeEvery is after how many bytes they are acknowledged.
	maxPacket, acknowledgeEvery = 64 << 10, 1 << 20
	// linkBuffer is how much is read from a link at once, and what a link that rests keeps of a packet: a front has
	// thousands.
	linkBuffer = 16 << 10
	// heartbeat is how often a link carries something, and deadAfter how long one that carries nothing is trusted.
	heartbeat, deadAfter = 10 * time.Second, 35 * time.Second
)

// The kinds of packets. The first two are followed by a number: the length of the data, or how many bytes have been
// received. A packet of the kind packetEnd ends the channel.
const (
	packetData        = 'd'
	packetAcknowledge = 'a'
	packetEnd         = 'e'
	packetHead        = 1 + 8
)

// ErrLost is the error of a channel whose other side is gone.
var ErrLost = errors.New("the far host was ended or restarted")

// A channel is a connection that outlives its links. Both sides keep what they have written until the other side has
// acknowledged it, and each tells a new link from which byte on to continue.
type channel struct {
	id string

	mu       sync.Mutex
	changed  *sync.Cond     // broadcast after every change of what follows
	out      []byte         // written and not acknowledged
	base     uint64         // how many bytes came before out
	sent     uint64         // up to which byte the current link was given them
	in       []byte         // received and not read
	received uint64         // how many bytes were received
	told     uint64         // how many of them were acknowledged
	beat     bool           // an acknowledgement is due
	link     io.Closer      // nil while there is none
	links    uint64         // number of the last link
	err      error          // why the channel has ended
	detached func(*channel) // called without the lock when a link is lost or the channel has ended
}

func newChannel(id string, detached func(*channel)) *channel {
	c := &channel{id: id, detached: detached}
	c.changed = sync.NewCond(&c.mu)
	return c
}

// Read implements net.Conn.
func (c *channel) Read(p []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for len(c.in) == 0 && c.err == nil {
		c.changed.Wait()
	}
	if len(c.in) == 0 {
		return 0, c.err
	}
	full := len(c.in) >= maxUnread
	n := copy(p, c.in)
	if c.in = c.in[n:]; len(c.in) == 0 {
		c.in = nil
	}
	if full {
		c.changed.Broadcast()
	}
	return n, nil
}

// Write implements net.Conn.
func (c *channel) Write(p []byte) (n int, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for len(p) > 0 {
		for len(c.out) >= maxUnacknowledged && c.err == nil {
			c.changed.Wait()
		}
		if c.err != nil {
			return n, c.err
		}
		part := p[:min(len(p), maxUnacknowledged-len(c.out))]
		c.out = append(c.out, part...)
		n, p = n+len(part), p[len(part):]
		c.changed.Broadcast()
	}
	return n, nil
}

// Close ends the channel on both sides, if there is a link.
func (c *channel) Close() error {
	c.fail(net.ErrClosed)
	return nil
}

// fail ends the channel.
func (c *channel) fail(err error) {
	c.mu.Lock()
	if c.err != nil {
		c.mu.Unlock()
		return
	}
	c.err = err
	c.changed.Broadcast()
	linked := c.link != nil
	c.mu.Unlock()
	if !linked {
		c.detached(c)
	}
}

// linked reports whether there is a link now.
func (c *channel) linked() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.link != nil
}

// ended reports whether the channel has ended.
func (c *channel) ended() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.err != nil
}

// unlink ends the current link in favour of the link of a number: from then on nothing is received over the former. It
// returns how many bytes have been received. It reports false if a link of a higher number has come since.
func (c *channel) unlink(number uint64) (received uint64, ok bool) {
	c.mu.Lock()
	if number <= c.links {
		c.mu.Unlock()
		return 0, false
	}
	old := c.link
	c.links, c.link, received = number, nil, c.received
	c.changed.Broadcast()
	c.mu.Unlock()
	if old != nil {
		old.Close() // without the lock: it may take a while
	}
	return received, true
}

// carry uses the link of a number until it breaks or the channel ends, unless one of a higher number has come since
// [channel.unlink]. received is how many bytes the other side has; r reads the link, and may have read ahead.
func (c *channel) carry(link io.ReadWriteCloser, r *bufio.Reader, number, received uint64) error {
	c.mu.Lock()
	if number != c.links {
		c.mu.Unlock()
		link.Close()
		return net.ErrClosed
	}
	if base, sent := c.base, c.sent; received < base || received > sent {
		c.mu.Unlock()
		link.Close()
		c.fail(fmt.Errorf("the other side has received %d bytes of %d to %d", received, base, sent))
		return ErrLost
	}
	c.acknowledged(received)
	c.sent, c.told, c.link = received, c.received, link
	c.changed.Broadcast()
	c.mu.Unlock()
	watch := newWatchdog(c, link)
	defer watch.stop()
	done := make(chan error, 1)
	go func() { done <- c.send(link); c.release(link) }()
	err := c.receive(link, r, watch)
	c.release(link)
	if sent := <-done; err == nil || errors.Is(err, net.ErrClosed) {
		err = sent
	}
	c.detached(c)
	return err
}

// release gives up a link that has broken.
func (c *channel) release(link io.Closer) {
	c.mu.Lock()
	if c.link == link {
		c.link = nil
	}
	c.changed.Broadcast()
	c.mu.Unlock()
	link.Close()
}

// acknowledged forgets what the other side has received, which is not more than was sent. The caller holds the lock.
func (c *channel) acknowledged(received uint64) {
	if received > c.base && received <= c.sent {
		c.out, c.base = c.out[received-c.base:], received
		if len(c.out) == 0 {
			c.out = nil
		}
		c.changed.Broadcast()
	}
}

// send writes packets to a link while it is that of the channel.
func (c *channel) send(link io.WriteCloser) error {
	var packet []byte
	for {
		packet = packet[:0]
		c.mu.Lock()
		for c.link == link && c.err == nil && !c.beat && c.sent == c.base+uint64(len(c.out)) &&
			c.received-c.told < acknowledgeEvery {
			if cap(packet) > linkBuffer {
				packet = nil
			}
			c.changed.Wait()
		}
		if c.link != link {
			c.mu.Unlock()
			return nil
		}
		if c.beat || c.received > c.told {
			packet = head(packet, packetAcknowledge, c.received)
			c.beat, c.told = false, c.received
		}
		if rest := c.out[c.sent-c.base:]; len(rest) > 0 {
			rest = rest[:min(len(rest), maxPacket)]
			packet = append(head(packet, packetData, uint64(len(rest))), rest...)
			c.sent += uint64(len(rest))
		}
		ended := c.err != nil && c.sent == c.base+uint64(len(c.out))
		c.mu.Unlock()
		if ended {
			packet = head(packet, packetEnd, 0)
		}
		if _, err := link.Write(packet); err != nil || ended {
			return err
		}
	}
}

func head(packet []byte, kind byte, number uint64) []byte {
	return binary.BigEndian.AppendUint64(append(packet, kind), number)
}

// receive reads packets from a link while it is that of the channel. Data counts as far as it has come: a link that
// breaks within a packet was not in vain.
func (c *channel) receive(link io.Closer, r *bufio.Reader, watch *watchdog) error {
	var start [packetHead]byte
	for {
		if _, err := io.ReadFull(r, start[:]); err != nil {
			return err
		}
		watch.seen()
		number := binary.BigEndian.Uint64(start[1:])
		switch start[0] {
		case packetAcknowledge:
			c.mu.Lock()
			if c.link == link {
				c.acknowledged(number)
			}
			c.mu.Unlock()
		case packetEnd:
			c.fail(io.EOF)
			return io.EOF
		case packetData:
			if number > maxPacket {
				return fmt.Errorf("a packet of %d bytes: the link carries something else", number)
			}
			for left := int(number); left > 0; {
				if _, err := r.Peek(1); err != nil {
					return err
				}
				part, _ := r.Peek(min(left, r.Buffered()))
				if !c.deliver(link, part) {
					return net.ErrClosed
				}
				watch.seen()
				left -= len(part)
				_, _ = r.Discard(len(part)) // it is buffered
			}
		default:
			return fmt.Errorf("a packet of the kind %q: the link carries something else", start[0])
		}
	}
}

// deliver hands received bytes to the reader of the channel. It reports false if the link is no longer the channel's.
func (c *channel) deliver(link io.Closer, part []byte) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	for c.link == link && len(c.in) >= maxUnread && c.err == nil {
		c.changed.Wait()
	}
	if c.link != link {
		return false
	}
	if c.err == nil {
		c.in = append(c.in, part...)
	}
	c.received += uint64(len(part))
	c.changed.Broadcast()
	return true
}

// A watchdog makes a link carry something from time to time, and closes one that carries nothing.
type watchdog struct {
	channel *channel
	link    io.Closer
	ticker  *time.Ticker
	ended   chan struct{}

	mu   sync.Mutex
	last time.Time
}

func newWatchdog(c *channel, link io.Closer) *watchdog {
	w := &watchdog{channel: c, link: link, ticker: time.NewTicker(heartbeat), ended: make(chan struct{}),
		last: time.Now()}
	go w.run()
	return w
}

func (w *watchdog) run() {
	for {
		select {
		case <-w.ended:
			return
		case now := <-w.ticker.C:
			w.mu.Lock()
			silent := now.Sub(w.last)
			w.mu.Unlock()
			w.channel.mu.Lock()
			full := len(w.channel.in) >= maxUnread // then the link is not read
			w.channel.beat = true
			w.channel.changed.Broadcast()
			w.channel.mu.Unlock()
			if silent > deadAfter && !full {
				w.channel.release(w.link)
			}
		}
	}
}

func (w *watchdog) seen() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.last = time.Now()
}

func (w *watchdog) stop() {
	w.ticker.Stop()
	close(w.ended)
}

// An address is that of a channel.
type address struct{}

func (address) Network() string { return "remote" }
func (address) String() string  { return "localhost" }

// LocalAddr and RemoteAddr implement net.Conn.
func (c *channel) LocalAddr() net.Addr  { return address{} }
func (c *channel) RemoteAddr() net.Addr { return address{} }

// SetDeadline, SetReadDeadline and SetWriteDeadline implement net.Conn. A channel has no deadlines: links come and go.
func (c *channel) SetDeadline(time.Time) error      { return nil }
func (c *channel) SetReadDeadline(time.Time) error  { return nil }
func (c *channel) SetWriteDeadline(time.Time) error { return nil }
