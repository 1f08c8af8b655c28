package remote

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/iotest"
	"testing/synctest"
	"time"

	"github.com/toolhost/toolhost/integration/samples"
	"github.com/toolhost/toolhost/integration/testenv"
)

const testToken = "the-token"

// A site is a far host in this process. It counts how often each request was run.
type site struct {
	far     *Far
	links   chan net.Conn
	closing chan struct{}

	mu      sync.Mutex
	ran     map[string]int
	tasks   int
	revoked string // the principal
	known   string // the last Authorization of a message
}

func (s *site) bearer() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.known
}

func (s *site) setTasks(n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.tasks = n
}

// Accept, Close and Addr make the site the listener of its links.
func (s *site) Accept() (net.Conn, error) {
	select {
	case link := <-s.links:
		return link, nil
	case <-s.closing:
		return nil, net.ErrClosed
	}
}

func (s *site) Close() error {
	select {
	case <-s.closing:
	default:
		close(s.closing)
	}
	return nil
}

func (s *site) Addr() net.Addr { return address{} }

func (s *site) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	switch {
	case r.URL.Path == StdioPath:
		s.serveStdio(Duplex(w), r.Body)
		return
	case r.URL.Path == TasksPath:
		s.mu.Lock()
		defer s.mu.Unlock()
		fmt.Fprint(w, s.tasks)
		return
	case r.URL.Path == RevokePath:
		s.mu.Lock()
		defer s.mu.Unlock()
		s.revoked = r.URL.Query().Get("principal")
		return
	case r.Header.Get("Events") != "":
		w.Header().Set("Content-Type", "text/event-stream")
		_, _ = io.WriteString(w, "data: hello\n\n")
		_ = http.NewResponseController(w).Flush()
		<-r.Context().Done()
		return
	}
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	s.mu.Lock()
	s.ran[string(body)]++
	s.known = r.Header.Get("Authorization")
	s.mu.Unlock()
	if wait := r.Header.Get("Hold"); wait != "" {
		<-r.Context().Done()
		return
	}
	_, _ = w.Write(append([]byte("done "), body...))
}

// serveStdio answers each request of a client.
func (s *site) serveStdio(out io.Writer, in io.Reader) {
	for lines := bufio.NewScanner(in); lines.Scan(); {
		s.mu.Lock()
		s.ran[lines.Text()]++
		s.mu.Unlock()
		if m := examine(lines.Bytes()); m.isRequest() {
			fmt.Fprintf(out, `{"id":%s,"result":{}}`+"\n", m.ID)
		}
	}
}

// runs returns how often the request with a body was run.
func (s *site) runs(body string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.ran[body]
}

func newSite(t testing.TB) *site {
	s := &site{links: make(chan net.Conn), closing: make(chan struct{}), ran: map[string]int{}}
	s.far = NewFar(s, "1.0", testToken, func(map[string]string) {})
	protocols := new(http.Protocols)
	protocols.SetUnencryptedHTTP2(true)
	web := &http.Server{Handler: s, Protocols: protocols}
	go func() { _ = web.Serve(s.far) }()
	t.Cleanup(func() { web.Close() })
	return s
}

// dial opens a link to the site, as the command dial does it.
func (s *site) dial() (net.Conn, error) {
	near, far := net.Pipe()
	select {
	case s.links <- far:
	case <-s.closing:
		return nil, errors.New("the far host has ended")
	}
	_, err := near.Write([]byte(testToken + "\n"))
	return near, err
}

// A cutLink breaks after it has carried a number of bytes.
type cutLink struct {
	net.Conn
	left *atomic.Int64
}

func (l cutLink) carry(n int) int {
	rest := l.left.Add(-int64(n)) + int64(n)
	if rest > int64(n) {
		return n
	}
	l.Conn.Close()
	return max(0, int(rest))
}

func (l cutLink) Read(p []byte) (int, error) {
	n, err := l.Conn.Read(p)
	if kept := l.carry(n); kept < n {
		return kept, io.ErrUnexpectedEOF
	}
	return n, err
}

func (l cutLink) Write(p []byte) (int, error) {
	if left := l.left.Load(); left < int64(len(p)) {
		n, _ := l.Conn.Write(p[:max(0, left)])
		l.carry(len(p))
		return n, io.ErrClosedPipe
	}
	n, err := l.Conn.Write(p)
	l.carry(n)
	return n, err
}

// cutting dials links of which the one of each number breaks after so many bytes; the others do not break.
func (s *site) cutting(after func(number int) int64) Dialer {
	number := 0
	return func(context.Context, func()) (io.ReadWriteCloser, error) {
		conn, err := s.dial()
		if err != nil {
			return nil, err
		}
		left := new(atomic.Int64)
		left.Store(after(number))
		number++
		return cutLink{conn, left}, nil
	}
}

const uncut = int64(1) << 40

// newNear returns a near side without pauses between links.
func newNear(t testing.TB, dial Dialer) *Near {
	ctx, cancel := context.WithCancel(t.Context())
	n := newNearWith(ctx, dial, nil, nil, time.Millisecond)
	t.Cleanup(func() { cancel(); <-n.Done() })
	return n
}

// call sends a request and returns the answer.
func call(ctx context.Context, n *Near, body string, header ...string) (string, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://localhost/", strings.NewReader(body))
	if err != nil {
		return "", err
	}
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	response, err := n.RoundTrip(r)
	if err != nil {
		return "", err
	}
	defer response.Body.Close()
	answer, err := io.ReadAll(response.Body)
	return string(answer), err
}

// TestCutAtEveryByte breaks the first link after each number of bytes that a call takes, in both directions together: the
// call runs once and is answered.
func TestCutAtEveryByte(t *testing.T) { synctest.Test(t, cutAtEveryByte) }

func cutAtEveryByte(t *testing.T) {
	counted := new(atomic.Int64)
	s := newSite(t)
	whole := newNear(t, func(context.Context, func()) (io.ReadWriteCloser, error) {
		conn, err := s.dial()
		counted.Store(uncut)
		return cutLink{conn, counted}, err
	})
	if _, err := call(t.Context(), whole, "measured"); err != nil {
		t.Fatal(err)
	}
	total := uncut - counted.Load()
	if total < 100 || total > 4000 {
		t.Fatalf("a call takes %d bytes", total)
	}
	for cut := int64(1); cut <= total+16; cut++ {
		body := fmt.Sprint("cut after ", cut)
		n := newNear(t, s.cutting(func(number int) int64 {
			if number == 0 {
				return cut
			}
			return uncut
		}))
		answer, err := call(t.Context(), n, body)
		if err != nil || answer != "done "+body {
			t.Fatalf("%s of %d: %q, %v", body, total, answer, err)
		}
		if ran := s.runs(body); ran != 1 {
			t.Fatalf("%s of %d: it ran %d times", body, total, ran)
		}
	}
}

// TestManyCuts breaks every link soon while calls of all sizes run at once.
func TestManyCuts(t *testing.T) {
	testenv.NotShort(t, "starts processes")
	long := samples.Rounds(5)
	synctest.Test(t, func(t *testing.T) { manyCuts(t, long) })
}

func manyCuts(t *testing.T, long int) {
	s := newSite(t)
	n := newNear(t, s.cutting(func(number int) int64 { return int64(400 + 997*number%9000) }))
	var calls sync.WaitGroup
	for i := range 100 {
		calls.Go(func() {
			body := fmt.Sprint(i, strings.Repeat("x", i*i*long))
			answer, err := call(t.Context(), n, body)
			if err != nil || answer != "done "+body || s.runs(body) != 1 {
				t.Errorf("call %d: %d bytes, ran %d times, %v", i, len(answer), s.runs(body), err)
			}
		})
	}
	calls.Wait()
}

// TestFarKilled: a call that was with a far host that is gone is reported, and not sent to the next one.
func TestFarKilled(t *testing.T) {
	first, second := newSite(t), newSite(t)
	var use atomic.Pointer[site]
	use.Store(first)
	var link atomic.Pointer[net.Conn]
	n := newNear(t, func(context.Context, func()) (io.ReadWriteCloser, error) {
		conn, err := use.Load().dial()
		link.Store(&conn)
		return conn, err
	})
	answered := make(chan error, 1)
	go func() {
		_, err := call(t.Context(), n, "held", "Hold", "yes")
		answered <- err
	}()
	for first.runs("held") == 0 {
		time.Sleep(time.Millisecond)
	}
	use.Store(second)
	(*link.Load()).Close()
	var unknown *Unknown
	if err := <-answered; !errors.As(err, &unknown) || !errors.Is(err, ErrLost) ||
		!strings.Contains(err.Error(), "it ran or not: unknown") {
		t.Errorf("the call that was running: %v", err)
	}
	if answer, err := call(t.Context(), n, "next"); err != nil || answer != "done next" {
		t.Errorf("the next call: %q, %v", answer, err)
	}
	if first.runs("held") != 1 || second.runs("held") != 0 || second.runs("next") != 1 {
		t.Errorf("held ran %d and %d times, next %d times", first.runs("held"), second.runs("held"),
			second.runs("next"))
	}
}

// TestLateAnswer: what a client answers to a far host that is gone does not reach the next one.
func TestLateAnswer(t *testing.T) {
	first, second := newSite(t), newSite(t)
	var use atomic.Pointer[site]
	use.Store(first)
	var link atomic.Pointer[net.Conn]
	n := newNear(t, func(context.Context, func()) (io.ReadWriteCloser, error) {
		conn, err := use.Load().dial()
		link.Store(&conn)
		return conn, err
	})
	in, toClient := io.Pipe()
	fromClient, out := io.Pipe()
	served := make(chan error, 1)
	go func() { served <- ServeStdio(t.Context(), n, in, out, nil) }()
	answers := bufio.NewScanner(fromClient)
	send := func(lines ...string) {
		t.Helper()
		for _, line := range lines {
			fmt.Fprintln(toClient, line)
		}
		if !answers.Scan() {
			t.Fatal("no answer")
		}
	}
	const answer = `{"id":"ask-1","result":{"action":"accept"}}`
	send(`{"id":1,"method":"x"}`)
	send(answer, `{"id":2,"method":"x"}`)
	use.Store(second)
	(*link.Load()).Close()
	for second.runs("next") == 0 {
		_, _ = call(t.Context(), n, "next") // the first one may still be with the host that is gone
	}
	send(answer, `{"id":3,"method":"x"}`)
	if first.runs(answer) != 1 || second.runs(answer) != 0 || second.runs(`{"id":3,"method":"x"}`) != 1 {
		t.Errorf("the hosts got the answer %d and %d times", first.runs(answer), second.runs(answer))
	}
	toClient.Close()
	if err := <-served; err != nil {
		t.Error(err)
	}
}

// TestCancel: only the caller cancels a call. A broken link does not.
func TestCancel(t *testing.T) {
	s := newSite(t)
	var link atomic.Pointer[net.Conn]
	n := newNear(t, func(context.Context, func()) (io.ReadWriteCloser, error) {
		conn, err := s.dial()
		link.Store(&conn)
		return conn, err
	})
	ctx, cancel := context.WithCancel(t.Context())
	answered := make(chan error, 1)
	go func() {
		_, err := call(ctx, n, "held", "Hold", "yes")
		answered <- err
	}()
	for s.runs("held") == 0 {
		time.Sleep(time.Millisecond)
	}
	(*link.Load()).Close()
	if answer, err := call(t.Context(), n, "other"); err != nil || answer != "done other" {
		t.Errorf("a call after the link was cut: %q, %v", answer, err)
	}
	select {
	case err := <-answered:
		t.Fatalf("the cut link ended the call: %v", err)
	default:
	}
	cancel()
	if err := <-answered; !errors.Is(err, context.Canceled) {
		t.Errorf("the cancelled call: %v", err)
	}
}

// TestNoLink: without a link a call waits, and is then refused with the reason. It is never run.
func TestNoLink(t *testing.T) { synctest.Test(t, testNoLink) }

func testNoLink(t *testing.T) {
	reason := errors.New("the host key of box has changed")
	n := newNear(t, func(context.Context, func()) (io.ReadWriteCloser, error) { return nil, reason })
	n.wait = 50 * time.Millisecond
	_, err := call(t.Context(), n, "never")
	var none *NoLink
	if !errors.As(err, &none) || !errors.Is(err, reason) || !strings.Contains(err.Error(), "has not run") {
		t.Errorf("a call without a link: %v", err)
	}
}

// TestOldLink: what arrives late over a link that was given up is ignored.
func TestOldLink(t *testing.T) {
	s := newSite(t)
	say := func(conn net.Conn, text string) string {
		t.Helper()
		if _, err := conn.Write([]byte(text + "\n")); err != nil {
			t.Fatal(err)
		}
		line := make([]byte, maxHello)
		n, err := conn.Read(line)
		if err != nil {
			return err.Error()
		}
		return strings.TrimSpace(string(line[:n]))
	}
	open := func() net.Conn {
		conn, err := s.dial()
		if err != nil {
			t.Fatal(err)
		}
		if _, err := conn.Read(make([]byte, maxHello)); err != nil {
			t.Fatal(err)
		}
		return conn
	}
	late, next := open(), open()
	if got := say(next, `{"channel":"0123456789abcdef","fresh":true,"link":2}`); !strings.Contains(got,
		`"channel":"0123456789abcdef"`) {
		t.Errorf("a fresh channel: %s", got)
	}
	if got := say(late, `{"channel":"0123456789abcdef","received":7,"link":1}`); got != "EOF" {
		t.Errorf("a hello that came late: %s", got)
	}
	c, _ := s.far.channel(hello{Channel: "0123456789abcdef"})
	for !c.linked() && !c.ended() { // the link is used after the answer
		time.Sleep(time.Millisecond)
	}
	if c.ended() {
		t.Error("the late hello ended the channel")
	}
	if got := say(open(), `{"channel":"ffffffffffffffff","link":3}`); strings.Contains(got, "channel") {
		t.Errorf("an unknown channel: %s", got)
	}
}

// TestUnsent: the other side cannot acknowledge, over a link or for a new one, what it was not sent.
func TestUnsent(t *testing.T) {
	c := newChannel("x", func(*channel) {})
	near, far := net.Pipe()
	carried := make(chan error, 1)
	go func() { carried <- c.carry(near, bufio.NewReader(near), 0, 0) }()
	if _, err := c.Write(make([]byte, 3*maxPacket)); err != nil { // the first packet is being sent, the others wait
		t.Fatal(err)
	}
	for _, number := range []uint64{3 * maxPacket, 0} { // the second is read after the first was acted on
		if _, err := far.Write(head(nil, packetAcknowledge, number)); err != nil {
			t.Fatal(err)
		}
	}
	c.mu.Lock()
	if c.base != 0 || len(c.out) != 3*maxPacket {
		t.Errorf("%d bytes were forgotten", c.base)
	}
	c.mu.Unlock()
	far.Close()
	if err := <-carried; err == nil || c.ended() {
		t.Errorf("the link: %v", err)
	}
	near, _ = net.Pipe()
	if err := c.carry(near, bufio.NewReader(near), 0, 3*maxPacket); !errors.Is(err, ErrLost) || !c.ended() {
		t.Errorf("a link that has received too much: %v", err)
	}
}

// TestOvertaken: a link that was given up before it was used does not replace the one that has come since.
func TestOvertaken(t *testing.T) {
	c := newChannel("x", func(*channel) {})
	c.unlink(1)
	c.unlink(2)
	late, _ := net.Pipe()
	if err := c.carry(late, bufio.NewReader(late), 1, 7); !errors.Is(err, net.ErrClosed) || c.ended() {
		t.Errorf("a link that was overtaken: %v", err)
	}
	if _, err := late.Write(nil); !errors.Is(err, io.ErrClosedPipe) {
		t.Errorf("it is open: %v", err)
	}
}

// TestStuckMessage: while the link carries nothing, a message waits for the one before it as long as for a link, and is
// then refused. The parts of a line that is too long have no beginning then, and are dropped.
func TestStuckMessage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		n := NewNear(ctx, deadLink, nil, nil)
		synctest.Wait()
		in, toClient := io.Pipe()
		fromClient, out := io.Pipe()
		served := make(chan error, 1)
		go func() { served <- ServeStdio(ctx, n, in, out, nil) }()
		go func() {
			_, _ = io.WriteString(toClient, `{"id":1,"method":"x","params":"`+strings.Repeat("x", 1<<20)+"\"}\n")
			_, _ = io.WriteString(toClient, `{"id":2,"method":"x"}`+"\n")
		}()
		began := time.Now()
		answer, err := bufio.NewReader(fromClient).ReadString('\n')
		if err != nil || !strings.Contains(answer, `"id":2`) ||
			!strings.Contains(answer, "was not sent and has not run") {
			t.Errorf("%q, %v", answer, err)
		}
		if took := time.Since(began); took != LinkWait {
			t.Errorf("it took %s", took)
		}
		go func() { _, _ = io.Copy(io.Discard, fromClient) }()
		toClient.Close()
		cancel()
		<-served
		out.Close()
		<-n.Done()
	})
}

// TestLongLine: the parts of a line that is too long go to one stream only.
func TestLongLine(t *testing.T) {
	s := newSite(t)
	n := newNear(t, func(context.Context, func()) (io.ReadWriteCloser, error) { return s.dial() })
	if _, err := call(t.Context(), n, "linked"); err != nil {
		t.Fatal(err)
	}
	c := &stdioClient{near: n, w: io.Discard, pending: map[string]bool{}, hidden: map[string]bool{}}
	send := func(line string, more bool) {
		c.sendOne(t.Context(), waiting{line: []byte(line), part: true, more: more, deadline: time.Now().Add(LinkWait)})
	}
	send("be", false)
	send("gin", true)
	first := c.stream
	close(first.lines)
	<-first.ended
	c.stream = nil
	send("lost\n", true)
	send("whole\n", false)
	for s.runs("whole") == 0 {
		time.Sleep(time.Millisecond)
	}
	close(c.stream.lines)
	<-c.stream.ended
	if s.runs("begin") != 1 || s.runs("lost") != 0 {
		t.Errorf("the far host got %v", s.ran)
	}
}

// TestProxyHopByHop: an offer to change the protocol, which curl and Java make, stays with the front, and no client takes
// away the token that the front has set.
func TestProxyHopByHop(t *testing.T) {
	s := newSite(t)
	n := newNear(t, func(context.Context, func()) (io.ReadWriteCloser, error) { return s.dial() })
	proxy := Proxy(n, log.New(io.Discard, "", 0))
	for _, connection := range []string{"Upgrade, HTTP2-Settings", "Authorization", "close, authorization, Upgrade"} {
		r := httptest.NewRequest(http.MethodPost, "/mcp", strings.NewReader(connection))
		r.Header.Set("Connection", connection)
		r.Header.Set("Upgrade", "h2c")
		r.Header.Set("Authorization", "Bearer alice")
		out := httptest.NewRecorder()
		proxy.ServeHTTP(out, r)
		if out.Code != http.StatusOK || s.bearer() != "Bearer alice" {
			t.Errorf("%s: %d %s; the far host got the token %q", connection, out.Code, out.Body, s.bearer())
		}
	}
}

// TestAnsweredOnce: an event stream that breaks has a last event only if the answer has not passed.
func TestAnsweredOnce(t *testing.T) {
	const event = "event: message\ndata: %s\n\n"
	for _, c := range []struct {
		event string
		added bool
	}{
		{`{"jsonrpc":"2.0","id":7,"result":{"text":"` + strings.Repeat("x", 5000) + `"}}`, false},
		{`{"jsonrpc":"2.0","id":8,"result":{}}`, true},
		{`{"jsonrpc":"2.0","method":"notifications/progress","params":{"id":7}}`, true},
		{`{"jsonrpc":"2.0","id":7,"method":"elicitation/create"}`, true},
	} {
		broken := io.MultiReader(iotest.OneByteReader(strings.NewReader(fmt.Sprintf(event, c.event))),
			iotest.ErrReader(io.ErrUnexpectedEOF))
		b := &eventBody{
			ReadCloser: io.NopCloser(broken), ctx: t.Context(), id: json.RawMessage("7"),
			session: &session{channel: newChannel("x", func(*channel) {})},
		}
		text, err := io.ReadAll(b)
		if added := strings.Contains(string(text), "it ran or not"); added != c.added || added != (err == nil) {
			t.Errorf("%.60s: %v %.300s", c.event, err, text)
		}
	}
}

// endless is a line that does not end.
type endless struct{}

func (endless) Read(p []byte) (int, error) { return len(p), nil }

// TestLongAnswer: a message of the far host is passed on whole, however many reads it takes, and one without end is not kept.
func TestLongAnswer(t *testing.T) {
	for _, size := range []int{0, 1, maxPacket - 1, maxPacket, 3 * maxPacket} {
		want := strings.Repeat("x", size) + "\n"
		r := bufio.NewReaderSize(strings.NewReader(want+"next"), maxPacket)
		if got, err := readMessage(r); err != nil || string(got) != want {
			t.Errorf("%d bytes: %d, %v", size, len(got), err)
		}
	}
	if got, err := readMessage(bufio.NewReaderSize(endless{}, maxPacket)); err == nil || len(got) > 0 {
		t.Errorf("an endless message: %d bytes, %v", len(got), err)
	}
}

// deadLink is a dialer of links whose far side agrees, and reads nothing from then on.
func deadLink(context.Context, func()) (io.ReadWriteCloser, error) {
	near, far := net.Pipe()
	go func() {
		_, _ = io.WriteString(far, greetingMark+"1.0\n")
		line, _ := readLine(bufio.NewReader(far))
		_, _ = io.WriteString(far, line+"\n")
	}()
	return near, nil
}

// TestSlowSending: a call waits for as long as the program is sent, and no longer when that is stuck.
func TestSlowSending(t *testing.T) {
	for _, stuck := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			n := NewNear(ctx, func(ctx context.Context, moving func()) (io.ReadWriteCloser, error) {
				for range 10 {
					time.Sleep(LinkWait / 2)
					moving()
				}
				if stuck {
					<-ctx.Done()
				}
				return deadLink(ctx, moving)
			}, nil, nil)
			began := time.Now()
			_, err := n.linked(ctx, began.Add(LinkWait))
			if took := time.Since(began); stuck != (err != nil) || stuck && took != 6*LinkWait {
				t.Errorf("stuck %v: after %s: %v", stuck, took, err)
			}
			cancel()
			<-n.Done()
		})
	}
}

// TestEndOfDeadLink: the near side ends soon although the link carries nothing any more.
func TestEndOfDeadLink(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		n := NewNear(ctx, deadLink, nil, nil)
		synctest.Wait()
		if _, _, reason := n.state(); reason != nil {
			t.Fatal(reason)
		}
		began := time.Now()
		cancel()
		<-n.Done()
		if took := time.Since(began); took > endGrace {
			t.Errorf("it took %s", took)
		}
	})
}

// TestAbandoned: the channel of a near side that was killed is kept for a time, and then does not keep the far host.
func TestAbandoned(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSite(t)
		link, err := s.dial()
		if err != nil {
			t.Fatal(err)
		}
		r := bufio.NewReader(link)
		if err := errors.Join(readGreeting(r), writeLine(link, hello{Channel: "x", Fresh: true, Link: 1})); err != nil {
			t.Fatal(err)
		}
		if _, err := readLine(r); err != nil {
			t.Fatal(err)
		}
		link.Close()
		synctest.Wait()
		if !s.far.Used() {
			t.Error("the channel was forgotten when it lost its link")
		}
		time.Sleep(keepTime)
		synctest.Wait()
		if s.far.Used() {
			t.Error("the channel is kept forever")
		}
	})
}

// TestToken: a link without the token is not greeted.
func TestToken(t *testing.T) {
	s := newSite(t)
	near, far := net.Pipe()
	s.links <- far
	go func() { _, _ = near.Write([]byte("another\n")) }()
	if got, err := io.ReadAll(near); err != nil || len(got) > 0 {
		t.Errorf("it was answered %q, %v", got, err)
	}
}

// TestNoise: what a login shell prints before the greeting is skipped.
func TestNoise(t *testing.T) {
	s := newSite(t)
	n := newNear(t, func(context.Context, func()) (io.ReadWriteCloser, error) {
		conn, err := s.dial()
		return struct {
			io.Reader
			io.WriteCloser
		}{io.MultiReader(bytes.NewBufferString("Welcome!\n\n"+strings.Repeat("motd\n", 99)), conn), conn}, err
	})
	if answer, err := call(t.Context(), n, "after noise"); err != nil || answer != "done after noise" {
		t.Errorf("%q, %v", answer, err)
	}
}
