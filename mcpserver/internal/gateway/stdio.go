package gateway

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/toolhost/toolhost/builtin"
)

// A wire carries messages to a server and back.
type wire interface {
	// request sends a request and waits for its result. An error response is an *rpcError.
	request(ctx context.Context, method string, params json.RawMessage) (json.RawMessage, error)
	notify(method string, params json.RawMessage)
	// setVersion sets the negotiated version of the protocol.
	setVersion(version string)
	// initialized is called when the server is ready.
	initialized()
	// unexpected returns what the server wrote besides messages since it was ready, or "".
	unexpected() string
	// words returns what an error says of what the server wrote besides messages, or "".
	words() string
	// ended returns a channel that is closed when the connection has ended. Then why returns the reason.
	ended() <-chan struct{}
	why() error
	close()
}

// A listener gets the notifications and requests of a server. It must not block.
type listener interface {
	notified(method string, params json.RawMessage)
	// asked answers a request. reply may be called from another goroutine.
	asked(id json.RawMessage, method string, params json.RawMessage, reply func(message))
}

// Limits of a process.
const (
	maxQueue  = 256                    // unread messages
	graceTime = 500 * time.Millisecond // for a server to exit by itself
	roomTime  = 5 * time.Second        // for a server to read when the queue is full
)

// An errDied is the error of a call whose server has died.
type errDied struct{ text string }

func (e *errDied) Error() string { return e.text }

// errStopped is the error of a call whose server was stopped by the host.
var errStopped = errors.New("it was stopped")

// A stdioWire is a wire to a process, with one message per line.
type stdioWire struct {
	process *builtin.ServerProcess
	to      listener
	stderr  *lastLines
	noise   noise
	in      *os.File
	out     chan []byte

	mu       sync.Mutex
	pending  map[int64]chan answer
	next     int64
	reason   error
	ready    bool // it is initialized
	stopping atomic.Bool
	gone     chan struct{}
	once     sync.Once
}

// newStdioWire returns a wire over the pipes of a process. It takes ownership of in and out.
func newStdioWire(p *builtin.ServerProcess, in, out *os.File, stderr *lastLines, to listener) *stdioWire {
	w := &stdioWire{process: p, to: to, stderr: stderr, in: in, out: make(chan []byte, maxQueue),
		pending: map[int64]chan answer{}, gone: make(chan struct{})}
	go w.write()
	go w.read(out)
	return w
}

// write sends the queued messages in the background: a server that does not read must not block callers.
func (w *stdioWire) write() {
	for {
		select {
		case line := <-w.out:
			if _, err := w.in.Write(line); err != nil {
				w.end(fmt.Errorf("it does not read its input: %w", err))
				return
			}
		case <-w.gone:
			return
		}
	}
}

// read handles messages of the server until its output ends.
func (w *stdioWire) read(out *os.File) {
	defer out.Close()
	in := bufio.NewReaderSize(io.TeeReader(out, &w.noise), 64<<10)
	for {
		line, err := readLine(in)
		if err != nil {
			if errors.Is(err, io.EOF) {
				err = errors.New("it closed its output")
			}
			w.end(err)
			return
		}
		w.take(line)
	}
}

// readLine reads a line of at most maxMessage bytes.
func readLine(in *bufio.Reader) (line []byte, err error) {
	for {
		part, err := in.ReadSlice('\n')
		if len(line)+len(part) > maxMessage {
			return nil, fmt.Errorf("it sent a line of more than %d bytes", maxMessage)
		}
		switch {
		case err == nil && line == nil:
			return part, nil
		case err == nil:
			return append(line, part...), nil
		case !errors.Is(err, bufio.ErrBufferFull):
			return nil, err // drop an incomplete line
		}
		line = append(line, part...)
	}
}

// initialized is called when the server is ready.
func (w *stdioWire) initialized() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.ready = true
	w.noise.reset()
}

// take handles a line. Some servers log to standard output: what is not a message is kept for errors.
func (w *stdioWire) take(line []byte) {
	all, odd := messagesIn(line)
	for _, m := range all {
		switch {
		case m.Method != "" && len(m.ID) == 0:
			w.to.notified(m.Method, m.Params)
		case m.Method != "":
			w.to.asked(m.ID, m.Method, m.Params, func(reply message) { w.send(reply, nil) })
		default:
			w.deliver(m)
		}
	}
	if !odd {
		return
	}
	w.noise.add(line)
	if len(all) == 0 && isDamaged(line) {
		w.damaged(line)
	}
}

// deliver passes a response to its request. An error that names no request belongs to the only one, unless the server
// is still starting.
func (w *stdioWire) deliver(m message) {
	id, ok := m.number()
	w.mu.Lock()
	defer w.mu.Unlock()
	if !ok && m.isNull() && m.Error != nil {
		if id, ok = w.only(); !w.ready {
			w.noise.add(marshal(m))
			return
		}
	}
	if waiting := w.pending[id]; ok && waiting != nil {
		delete(w.pending, id)
		waiting <- answer{m, nil}
	}
}

// damaged ends the request whose response cannot be decoded.
func (w *stdioWire) damaged(line []byte) {
	w.mu.Lock()
	defer w.mu.Unlock()
	id, ok := w.only()
	if found := damagedAnswer.FindSubmatch(line); found != nil {
		id, ok = message{ID: found[1]}.number()
	}
	if waiting := w.pending[id]; ok && waiting != nil {
		delete(w.pending, id)
		waiting <- answer{err: &notMessage{bytes.Clone(line)}}
	}
}

// only returns the id of the only request without a response. The caller holds the lock.
func (w *stdioWire) only() (id int64, ok bool) {
	for id = range w.pending {
	}
	return id, len(w.pending) == 1
}

// An answer is a response, or the reason why there is none.
type answer struct {
	message
	err error
}

func (a answer) outcome() (json.RawMessage, error) {
	if a.err != nil {
		return nil, a.err
	}
	return a.message.outcome()
}

// send queues a message. It drops the message and reports false if the queue stays full until full is closed. A nil
// channel drops it at once.
func (w *stdioWire) send(m message, full <-chan struct{}) bool {
	m.JSONRPC = "2.0"
	text, err := json.Marshal(m)
	if err != nil {
		return false
	}
	line := append(text, '\n')
	select {
	case w.out <- line:
		return true
	default:
	}
	if full == nil {
		return false
	}
	select {
	case w.out <- line:
		return true
	case <-full:
	case <-w.gone:
	}
	return false
}

func (w *stdioWire) request(ctx context.Context, method string, params json.RawMessage) (json.RawMessage, error) {
	answered := make(chan answer, 1)
	w.mu.Lock()
	w.next++
	id := w.next
	w.pending[id] = answered
	w.mu.Unlock()
	raw, _ := json.Marshal(id)
	// The queue is also full for a moment while the server reads the answers to many requests of its own.
	full, cancel := context.WithTimeout(ctx, roomTime)
	sent := w.send(message{ID: raw, Method: method, Params: params}, full.Done())
	cancel()
	if !sent {
		w.forget(id)
		select {
		case <-w.gone:
			return nil, w.why()
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		default:
			return nil, fmt.Errorf("it does not read its input: the queue was full for %s", roomTime)
		}
	}
	select {
	case m := <-answered:
		return m.outcome()
	case <-w.gone:
		select {
		case m := <-answered: // arrived before the end
			return m.outcome()
		default:
		}
		return nil, w.why()
	case <-ctx.Done():
		w.forget(id)
		if method != "initialize" {
			w.notify("notifications/cancelled", marshal(map[string]any{"requestId": id, "reason": "the call was cancelled"}))
		}
		return nil, context.Cause(ctx)
	}
}

func (w *stdioWire) forget(id int64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.pending, id)
}

func (w *stdioWire) notify(method string, params json.RawMessage) {
	w.send(message{Method: method, Params: params}, nil)
}

func (w *stdioWire) setVersion(string) {}

func (w *stdioWire) ended() <-chan struct{} { return w.gone }

func (w *stdioWire) why() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.reason
}

// end kills the process with its descendants, and records the reason.
func (w *stdioWire) end(reason error) {
	w.once.Do(func() {
		_ = w.process.Kill()
		select {
		case <-w.stderr.done:
		case <-time.After(graceTime): // a process outside of the sandbox keeps it open
		}
		if w.stopping.Load() {
			reason = errStopped
		}
		text := reason.Error() + w.words()
		w.mu.Lock()
		if w.reason = error(&errDied{text}); reason == errStopped {
			w.reason = errStopped
		}
		w.mu.Unlock()
		close(w.gone)
		w.in.Close()
	})
}

// unexpected returns what the server wrote to its standard output besides messages since it was initialized, or "".
func (w *stdioWire) unexpected() string { return w.noise.text() }

// words returns, for an error, what the server wrote last besides messages.
func (w *stdioWire) words() (text string) {
	if lines := w.stderr.text(); lines != "" {
		text = ". It wrote last:\n" + lines
	}
	if odd := w.unexpected(); odd != "" {
		text += ". On its standard output, where only messages are expected, it wrote:\n" + odd
	}
	return text
}

// close closes the input of the process, and kills it if it does not exit within graceTime.
func (w *stdioWire) close() {
	w.stopping.Store(true)
	w.in.Close()
	limit := time.NewTimer(graceTime)
	defer limit.Stop()
	select {
	case <-w.process.Done:
	case <-limit.C:
	}
	w.end(errStopped)
}

// lastLines keeps the last lines that a server writes to stderr.
type lastLines struct {
	mu    sync.Mutex
	lines []string
	cut   bool // the rest of the last line is dropped
	done  chan struct{}
}

// readLast reads from until its end, so that the server does not block, and keeps the last lines.
func readLast(from *os.File) *lastLines {
	l := &lastLines{done: make(chan struct{})}
	go func() {
		defer close(l.done)
		defer from.Close()
		in := bufio.NewReaderSize(from, 4096)
		for {
			part, err := in.ReadSlice('\n')
			if len(part) > 0 {
				l.add(string(part))
			}
			if err != nil && !errors.Is(err, bufio.ErrBufferFull) {
				return
			}
		}
	}()
	return l
}

func (l *lastLines) add(part string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	whole := strings.HasSuffix(part, "\n")
	if !l.cut {
		if line := cleanText(strings.TrimRight(part, "\r\n"), maxLine); line != "" {
			l.lines = append(l.lines, line)
		}
		if len(l.lines) > maxStderr {
			l.lines = slices.Delete(l.lines, 0, len(l.lines)-maxStderr)
		}
	}
	l.cut = !whole
}

func (l *lastLines) reset() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.lines = nil
}

func (l *lastLines) text() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Join(l.lines, "\n")
}

func marshal(v any) json.RawMessage {
	raw, err := json.Marshal(v)
	if err != nil {
		panic(err) // not reached: callers pass maps and strings
	}
	return raw
}
