package remote

import (
	"bufio"
	"crypto/subtle"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
	"time"
)

const (
	// keepTime is how long a channel without a link is kept.
	keepTime = 10 * time.Minute
	// helloTime is how long the two sides may take to agree on a link.
	helloTime = 20 * time.Second
	// maxChannels bounds the channels of one far host.
	maxChannels = 1024
	// maxHello bounds a line that opens a link, with its credentials.
	maxHello = 64 << 10
)

// greetingMark begins the line with which a far host greets a link, before its version. What a shell prints before is
// skipped.
const greetingMark = "toolhost-link "

// A hello is the request of the near side to continue a channel, or to begin a fresh one, and the answer to it.
type hello struct {
	Channel  string `json:"channel,omitempty"`
	Fresh    bool   `json:"fresh,omitempty"`
	Received uint64 `json:"received"`
	Link     uint64 `json:"link"`
	// Credentials are values by the name of their variable, which the far host keeps in memory.
	Credentials map[string]string `json:"credentials,omitempty"`
}

// A Far accepts links and is the listener of the channels over them.
type Far struct {
	net.Listener
	version, token string
	receive        func(credentials map[string]string)

	mu       sync.Mutex
	channels map[string]*channel
	expires  map[string]*time.Timer
	accepted chan *channel
	closed   chan struct{}
	close    sync.Once
}

// NewFar returns a listener for the channels whose links come from l. A link begins with the token. receive is called
// with the credentials of the near side before its channel goes on.
func NewFar(l net.Listener, version, token string, receive func(credentials map[string]string)) *Far {
	f := &Far{
		Listener: l, version: version, token: token, receive: receive, channels: map[string]*channel{},
		expires:  map[string]*time.Timer{},
		accepted: make(chan *channel), closed: make(chan struct{}),
	}
	go f.acceptLinks()
	return f
}

// Accept implements net.Listener: it waits for a new channel.
func (f *Far) Accept() (net.Conn, error) {
	select {
	case c := <-f.accepted:
		return c, nil
	case <-f.closed:
		return nil, net.ErrClosed
	}
}

// Close implements net.Listener.
func (f *Far) Close() error {
	f.close.Do(func() { close(f.closed) })
	return f.Listener.Close()
}

// Used reports whether there is a channel.
func (f *Far) Used() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.channels) > 0
}

func (f *Far) acceptLinks() {
	for {
		link, err := f.Listener.Accept()
		if err != nil {
			_ = f.Close() // the listener has failed or was closed
			return
		}
		go func() {
			defer link.Close()
			_ = f.serve(link) // links break: the near side says why
		}()
	}
}

// errToken refuses a link without the token.
var errToken = errors.New("a link without the token")

// serve agrees with the near side on a channel and carries it.
func (f *Far) serve(link net.Conn) error {
	_ = link.SetDeadline(time.Now().Add(helloTime))
	r := bufio.NewReaderSize(link, linkBuffer)
	token, err := readLine(r)
	if err != nil {
		return err
	}
	if subtle.ConstantTimeCompare([]byte(token), []byte(f.token)) != 1 {
		return errToken
	}
	if _, err := io.WriteString(link, greetingMark+f.version+"\n"); err != nil {
		return err
	}
	h, c, err := f.agree(link, r)
	if err != nil {
		return err
	}
	received, ok := c.unlink(h.Link)
	err = net.ErrClosed
	if ok {
		err = writeLine(link, hello{Channel: c.id, Received: received})
	}
	if err != nil {
		f.detached(c)
		return err
	}
	_ = link.SetDeadline(time.Time{})
	return c.carry(link, r, h.Link, h.Received)
}

// agree reads which channel the near side continues. One that is not known, and not new either, belongs to a host that
// is gone: the answer without a channel says so.
func (f *Far) agree(link io.Writer, r *bufio.Reader) (h hello, c *channel, err error) {
	for {
		line, err := readLine(r)
		if err != nil {
			return h, nil, err
		}
		h = hello{}
		if err := json.Unmarshal([]byte(line), &h); err != nil {
			return h, nil, err
		}
		f.receive(h.Credentials)
		c, err := f.channel(h)
		if c != nil || err != nil {
			return h, c, err
		}
		if err := writeLine(link, hello{}); err != nil {
			return h, nil, err
		}
	}
}

// channel returns the channel that a hello names, made if it is fresh; nil if it is not known.
func (f *Far) channel(h hello) (*channel, error) {
	f.mu.Lock()
	c := f.channels[h.Channel]
	switch {
	case c != nil:
		f.expires[c.id].Stop()
		fallthrough
	case !h.Fresh:
		f.mu.Unlock()
		return c, nil
	case len(f.channels) >= maxChannels:
		f.mu.Unlock()
		return nil, errors.New("too many channels")
	}
	c = newChannel(h.Channel, f.detached)
	f.channels[c.id] = c
	f.expires[c.id] = time.AfterFunc(keepTime, func() { f.expire(c) })
	f.mu.Unlock()
	select {
	case f.accepted <- c:
		return c, nil
	case <-f.closed:
		return nil, net.ErrClosed
	}
}

// detached waits for the next link of a channel that has lost one, and forgets one that has ended.
func (f *Far) detached(c *channel) {
	c.mu.Lock()
	ended, linked := c.err != nil, c.link != nil
	c.mu.Unlock()
	f.mu.Lock()
	defer f.mu.Unlock()
	switch {
	case f.channels[c.id] == nil || linked:
	case ended:
		f.expires[c.id].Stop()
		delete(f.channels, c.id)
		delete(f.expires, c.id)
	default:
		f.expires[c.id].Reset(keepTime)
	}
}

// expire ends a channel that has had no link for too long.
func (f *Far) expire(c *channel) {
	if !c.linked() {
		c.fail(errors.New("the near side did not come back"))
	}
}

// readLine reads a line of at most [maxHello] bytes.
func readLine(r *bufio.Reader) (string, error) {
	var line strings.Builder
	for {
		part, err := r.ReadSlice('\n')
		if line.Write(part); line.Len() > maxHello {
			return "", errors.New("a line is too long: the link carries something else")
		}
		if err == nil {
			return strings.TrimRight(line.String(), "\r\n"), nil
		}
		if !errors.Is(err, bufio.ErrBufferFull) {
			return line.String(), err
		}
	}
}

// writeLine writes a value as a line of JSON.
func writeLine(w io.Writer, v any) error {
	raw, err := json.Marshal(v)
	if err != nil {
		return err
	}
	if len(raw) >= maxHello {
		return Refusal{fmt.Errorf("the credentials of --credential are too long: all may have %d bytes", maxHello)}
	}
	_, err = w.Write(append(raw, '\n'))
	return err
}
