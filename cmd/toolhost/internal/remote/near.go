package remote

import (
	"bufio"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	mathrand "math/rand/v2"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"
)

const (
	// LinkWait is how long a call waits while there is no link.
	LinkWait = 20 * time.Second
	// firstRetry and lastRetry are the pauses before a link is dialled again: they double from one to the other.
	firstRetry, lastRetry = 200 * time.Millisecond, 10 * time.Second
	// maxStreamUnread is how many received bytes of one call or forwarded connection wait to be read. One whose client
	// does not read stops no other: there is room for 64.
	maxStreamUnread = 1 << 20
)

// A Dialer starts the far side, and returns the connection to its input and output. While it sends the program, it
// calls moving after each part: calls of clients wait as long as parts are sent.
type Dialer func(ctx context.Context, moving func()) (io.ReadWriteCloser, error)

// Credentials returns what the far host is given when a link is opened: values by the name of their variable.
type Credentials func(context.Context) (map[string]string, error)

// A Near is the near side: it keeps a channel to a far host and sends requests over it.
type Near struct {
	dial Dialer
	warn func(error) // is told why a link has failed, once for each reason
	wait time.Duration

	credentials Credentials

	transport *http.Transport
	ended     chan struct{}

	mu      sync.Mutex
	changed chan struct{} // closed and replaced when the channel gets or loses its link
	current *session
	reason  error     // why there is no link
	moved   time.Time // when a part of the program was last sent
}

// A session is one channel, and the HTTP connection over it.
type session struct {
	channel *channel
	agreed  bool // the far side knows the channel; used by run alone
	http    *http.ClientConn
}

// NewNear returns a near side that dials until ctx is done. credentials and warn may be nil.
func NewNear(ctx context.Context, dial Dialer, credentials Credentials, warn func(error)) *Near {
	return newNearWith(ctx, dial, credentials, warn, firstRetry)
}

// newNearWith is NewNear with another first pause.
func newNearWith(ctx context.Context, dial Dialer, credentials Credentials, warn func(error),
	first time.Duration) *Near {
	if credentials == nil {
		credentials = func(context.Context) (map[string]string, error) { return nil, nil }
	}
	if warn == nil {
		warn = func(error) {}
	}
	n := &Near{
		dial: dial, credentials: credentials, warn: warn, wait: LinkWait, ended: make(chan struct{}),
		changed: make(chan struct{}),
		reason:  errors.New("the first link is being opened"),
	}
	protocols := new(http.Protocols)
	protocols.SetUnencryptedHTTP2(true)
	n.transport = &http.Transport{
		DialContext: channelOf, Protocols: protocols, DisableCompression: true,
		HTTP2: &http.HTTP2Config{MaxReceiveBufferPerConnection: maxUnacknowledged,
			MaxReceiveBufferPerStream: maxStreamUnread},
	}
	go n.run(ctx, first)
	return n
}

// Done is closed after the near side has ended its channel.
func (n *Near) Done() <-chan struct{} { return n.ended }

// run keeps a link.
func (n *Near) run(ctx context.Context, first time.Duration) {
	defer close(n.ended)
	pause, said := first, ""
	last := time.Now() // when there was a link
	for number := uint64(1); ctx.Err() == nil; number++ {
		linked, err := n.link(ctx, number)
		if ctx.Err() != nil {
			break
		}
		n.lost(err)
		if linked {
			last, pause, said = time.Now(), first, ""
		}
		if s := n.session(); s != nil && time.Since(last) > keepTime {
			s.channel.fail(ErrLost) // the far side does not keep it for longer
		}
		if text := err.Error(); text != said {
			said = text
			n.warn(err)
		}
		timer := time.NewTimer(pause/2 + mathrand.N(pause))
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
		}
		pause = min(2*pause, lastRetry)
	}
	n.lost(context.Cause(ctx))
	if s := n.session(); s != nil {
		s.channel.fail(io.EOF)
	}
}

// link opens one link and carries the channel over it until it breaks. linked reports whether the two sides agreed on
// it.
func (n *Near) link(ctx context.Context, number uint64) (linked bool, err error) {
	dialled, cancel := context.WithCancel(ctx)
	defer cancel()
	credentials, err := n.credentials(dialled)
	if err != nil {
		return false, err
	}
	link, err := n.dial(dialled, n.moving)
	if err != nil {
		return false, err
	}
	defer link.Close()
	slow := time.AfterFunc(helloTime, func() { link.Close() })
	defer slow.Stop()
	r := bufio.NewReaderSize(link, linkBuffer)
	if err := readGreeting(r); err != nil {
		return false, closeReason(link, err)
	}
	s, received, err := n.agree(link, r, number, credentials)
	if err != nil {
		return false, closeReason(link, err)
	}
	if !slow.Stop() {
		return false, fmt.Errorf("the far side did not answer for %s: if that stays so, end the toolhost processes there",
			helloTime)
	}
	defer context.AfterFunc(ctx, func() {
		s.channel.fail(io.EOF)
		time.AfterFunc(endGrace, func() { link.Close() }) // it may be dead, and the end never arrive
	})()
	n.up()
	err = s.channel.carry(link, r, number, received)
	return true, closeReason(link, errors.Join(errors.New("the link broke"), err))
}

// agree tells the far side which channel goes on, and returns how much of it has arrived there. A far side that does
// not know the channel is another one: then a new channel begins.
func (n *Near) agree(
	link io.Writer, r *bufio.Reader, number uint64, credentials map[string]string,
) (s *session, received uint64, err error) {
	for range 2 {
		if s = n.session(); s == nil || s.channel.ended() {
			if s, err = n.open(); err != nil {
				return nil, 0, err
			}
		}
		h := hello{Channel: s.channel.id, Fresh: !s.agreed, Link: number, Credentials: credentials}
		h.Received, _ = s.channel.unlink(number)
		if err := writeLine(link, h); err != nil {
			return nil, 0, err
		}
		line, err := readLine(r)
		if err != nil {
			return nil, 0, err
		}
		var answer hello
		if err := json.Unmarshal([]byte(line), &answer); err != nil {
			return nil, 0, fmt.Errorf("the far side answered %.60q", line) // an echo, without credentials
		}
		if answer.Channel == s.channel.id {
			s.agreed = true
			return s, answer.Received, nil
		}
		s.channel.fail(ErrLost)
	}
	return nil, 0, errors.New("the far side takes no new client: end clients of it, or its toolhost processes")
}

// A reasoner is a link that knows why it has failed.
type reasoner interface{ Reason() error }

// closeReason closes a link and returns why it has failed: what the link says, or err.
func closeReason(link io.Closer, err error) error {
	link.Close()
	if r, ok := link.(reasoner); ok {
		if reason := r.Reason(); reason != nil {
			return reason
		}
	}
	return err
}

// readGreeting skips what a shell prints before the greeting of the far host.
func readGreeting(r *bufio.Reader) error {
	for range maxNoise {
		line, err := readLine(r)
		if err != nil {
			return fmt.Errorf("the far side ended before it greeted: %w", err)
		}
		if strings.Contains(line, greetingMark) {
			return nil
		}
	}
	return errors.New("the far side prints something else than a greeting")
}

// open makes a session with a new channel.
func (n *Near) open() (*session, error) {
	s := &session{channel: newChannel(rand.Text(), func(*channel) {})}
	conn, err := n.transport.NewClientConn(context.WithValue(context.Background(), channelKey{}, s.channel), "http",
		"localhost:80")
	if err != nil {
		return nil, err
	}
	s.http = conn
	n.mu.Lock()
	defer n.mu.Unlock()
	n.current = s
	return s, nil
}

type channelKey struct{}

// channelOf is the dialer of the HTTP client.
func channelOf(ctx context.Context, _, _ string) (net.Conn, error) {
	return ctx.Value(channelKey{}).(*channel), nil
}

func (n *Near) session() *session {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.current
}

// up records that there is a link.
func (n *Near) up() {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.reason = nil
	close(n.changed)
	n.changed = make(chan struct{})
}

// lost records that there is no link.
func (n *Near) lost(reason error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.reason = reason
	if _, final := errors.AsType[Refusal](reason); final {
		close(n.changed)
		n.changed = make(chan struct{})
	}
}

// A Refusal is an error that the next link will have too, unless somebody changes something: calls do not wait for
// that.
type Refusal struct{ error }

func (e Refusal) Unwrap() error { return e.error }

// Refuse makes an error one that the next link will have too.
func Refuse(err error) error { return Refusal{err} }

// A NoLink is the error of a request that was not sent, because there was no link.
type NoLink struct{ Reason error }

func (e *NoLink) Error() string {
	return fmt.Sprintf("there is no link to the far side: %v; the call was not sent and has not run", e.Reason)
}

func (e *NoLink) Unwrap() error { return e.Reason }

// An Unknown is the error of a request that was sent and whose answer is lost.
type Unknown struct{ Reason error }

func (e *Unknown) Error() string {
	return fmt.Sprintf("%v while this call was with it; it ran or not: unknown, so check its effects before you repeat it",
		e.Reason)
}

func (e *Unknown) Unwrap() error { return e.Reason }

// state returns the session, what is closed when it gets a link, and why it has none.
func (n *Near) state() (s *session, changed <-chan struct{}, reason error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.current, n.changed, n.reason
}

// moving records that a part of the program was sent.
func (n *Near) moving() {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.moved = time.Now()
}

// sending returns how long to wait for the next part of the program to be sent. It is not positive if none is expected.
func (n *Near) sending() time.Duration {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.wait - time.Since(n.moved)
}

// linked waits until there is a link, at most until deadline, or while the program is sent.
func (n *Near) linked(ctx context.Context, deadline time.Time) (*session, error) {
	timer := time.NewTimer(time.Until(deadline))
	defer timer.Stop()
	for {
		s, changed, reason := n.state()
		if reason == nil {
			return s, nil
		}
		if _, final := errors.AsType[Refusal](reason); final {
			return nil, &NoLink{reason}
		}
		select {
		case <-changed:
			continue
		case <-ctx.Done():
		case <-timer.C:
			if more := n.sending(); more > 0 {
				timer.Reset(more)
				continue
			}
		case <-n.ended:
		}
		if s, _, reason = n.state(); reason != nil {
			return nil, &NoLink{reason}
		}
		return s, nil
	}
}

// RoundTrip implements http.RoundTripper. The request is sent once: if it may have reached a far host that is gone now,
// the error is an [*Unknown].
func (n *Near) RoundTrip(r *http.Request) (*http.Response, error) {
	s, err := n.linked(r.Context(), time.Now().Add(n.wait))
	if err != nil {
		return nil, err
	}
	return s.roundTrip(r)
}

func (s *session) roundTrip(r *http.Request) (*http.Response, error) {
	response, err := s.http.RoundTrip(r)
	if err != nil && r.Context().Err() == nil {
		err = &Unknown{s.lost(err)}
	}
	return response, err
}

// lost returns the reason why the channel has ended, or err.
func (s *session) lost(err error) error {
	s.channel.mu.Lock()
	defer s.channel.mu.Unlock()
	if s.channel.err != nil && !errors.Is(s.channel.err, io.EOF) {
		return s.channel.err
	}
	return err
}
