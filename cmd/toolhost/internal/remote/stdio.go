package remote

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync"
	"time"
)

// The paths that a far host answers for relays, in addition to that of MCP.
const (
	StdioPath   = "/relay/stdio"
	ConsolePath = "/relay/console"
	AboutPath   = "/relay/about"
	PortPath    = "/relay/port"
	TasksPath   = "/relay/tasks"  // how many background tasks run
	RevokePath  = "/relay/revoke" // ends what a principal has open
)

const (
	// maxLine is the longest message that is examined. Longer ones are left to the far host, which refuses them.
	maxLine = 33 << 20
	// maxAnswer is the longest message that is taken from a far host.
	maxAnswer = 2 * maxLine
	// maxWaiting is how many messages wait for a link.
	maxWaiting = 64
	// endGrace is how long the far host may take to answer what runs when the client has left.
	endGrace = 3 * time.Second
)

// JSON-RPC codes of errors: the call was not sent and may be repeated, or its fate is unknown.
const (
	codeUnavailable = -32010
	codeInternal    = -32603
)

// A stdioClient is a client over standard input and output, whose messages go to a far host one by one.
type stdioClient struct {
	near *Near

	out     sync.Mutex // held while a line is written
	w       io.Writer
	mu      sync.Mutex
	pending map[string]bool // ids of requests without an answer
	hidden  map[string]bool // ids of requests that were repeated for a new far host: the client has the answer

	stream *stdioStream // nil before the first message; used by the sender alone, like long
	long   *stdioStream // has got the beginning of a line that is too long
	// greeting are the messages that begin a legacy session, for a new far host.
	initialize, initialized []byte
}

// A message is what a relay reads of a message.
type message struct {
	ID     json.RawMessage
	Method string
}

// ServeStdio relays the messages of one client, until in ends, gone is closed, or ctx is done.
func ServeStdio(ctx context.Context, near *Near, in io.Reader, out io.Writer, gone <-chan struct{}) error {
	c := &stdioClient{near: near, w: out, pending: map[string]bool{}, hidden: map[string]bool{}}
	lines := make(chan waiting, maxWaiting)
	read := make(chan error, 1)
	go func() { read <- readMessages(in, lines) }()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	sent := make(chan struct{})
	go func() {
		defer close(sent)
		c.send(ctx, lines)
	}()
	var err error
	select {
	case err = <-read:
	case <-gone:
	case <-ctx.Done():
	}
	timer := time.NewTimer(endGrace)
	defer timer.Stop()
	select {
	case <-sent:
	case <-timer.C:
		cancel() // ends a message that waits for a link
		<-sent
	}
	if c.stream == nil {
		return err
	}
	close(c.stream.lines)
	if c.stream.session.channel.linked() {
		select {
		case <-c.stream.ended:
		case <-timer.C:
		}
	}
	return err
}

// readMessages reads lines until in ends.
func readMessages(in io.Reader, lines chan<- waiting) error {
	defer close(lines)
	r := bufio.NewReaderSize(in, maxPacket)
	var line []byte
	long := false
	for {
		part, err := r.ReadSlice('\n')
		line = append(line, part...)
		whole := err == nil
		switch {
		case long || len(line) > maxLine:
			lines <- waiting{line: line, part: true, more: long, deadline: time.Now().Add(LinkWait)}
			line, long = nil, !whole
		case whole && len(bytes.TrimSpace(line)) > 0:
			lines <- waiting{line: line, message: examine(line), deadline: time.Now().Add(LinkWait)}
			fallthrough
		case whole:
			line = nil
		}
		if err != nil && !errors.Is(err, bufio.ErrBufferFull) {
			if len(line) > 0 {
				lines <- waiting{line: append(line, '\n'), message: examine(line), deadline: time.Now().Add(LinkWait)}
			}
			if errors.Is(err, io.EOF) {
				return nil
			}
			return err
		}
	}
}

// examine reads the id and the method of a message. It stops as soon as both are known, or a result has begun, so that
// long messages are not parsed.
func examine(line []byte) (m message) {
	d := json.NewDecoder(bytes.NewReader(line))
	if open, err := d.Token(); err != nil || open != json.Delim('{') {
		return m
	}
	for d.More() && (m.ID == nil || m.Method == "") {
		name, err := d.Token()
		if err != nil {
			return m
		}
		switch name {
		case "id":
			err = d.Decode(&m.ID)
		case "method":
			err = d.Decode(&m.Method)
		default:
			if (name == "result" || name == "error") && m.ID != nil {
				return m
			}
			var skipped json.RawMessage
			err = d.Decode(&skipped)
		}
		if err != nil {
			return m
		}
	}
	return m
}

// isRequest reports whether the message wants an answer.
func (m message) isRequest() bool { return m.ID != nil && m.Method != "" }

// send sends the messages in their order.
func (c *stdioClient) send(ctx context.Context, lines <-chan waiting) {
	for {
		select {
		case <-ctx.Done():
			return
		case w, ok := <-lines:
			if !ok {
				return
			}
			c.sendOne(ctx, w)
		}
	}
}

// sendOne sends a message, or answers it when there is no link.
func (c *stdioClient) sendOne(ctx context.Context, w waiting) {
	switch w.Method {
	case "initialize":
		c.initialize = w.line
	case "notifications/initialized":
		c.initialized = w.line
	}
	if w.more && (c.long == nil || c.long != c.stream) {
		return // its beginning is lost
	}
	if !w.isRequest() && !w.part && c.stream != nil && !c.stream.session.channel.ended() {
		_ = c.stream.queue(w) // it is kept until there is a link again
		return
	}
	if c.stream != nil && w.ID != nil && w.Method == "" {
		return // it answers a far host that is gone: the next one has not asked
	}
	s, err := c.near.linked(ctx, w.deadline)
	if err != nil {
		c.fail(w.message, codeUnavailable, err)
		return
	}
	c.follow(ctx, s, w.Method != "initialize")
	if w.isRequest() {
		c.mu.Lock()
		c.pending[string(w.ID)] = true
		c.mu.Unlock()
	}
	err = c.stream.queue(w)
	if c.long = nil; w.part && err == nil {
		c.long = c.stream
	}
	switch {
	case errors.Is(err, errStreamEnded) && c.answered(string(w.ID)):
		c.fail(w.message, codeInternal, &Unknown{s.lost(err)})
	case errors.Is(err, errBusy) && w.part:
		c.stream.in.CloseWithError(err) // half a line would spoil the next one
	case errors.Is(err, errBusy) && c.answered(string(w.ID)):
		c.fail(w.message, codeUnavailable, &NoLink{err})
	}
}

// follow makes the stream one of a session. A legacy session is greeted again for a new far host.
func (c *stdioClient) follow(ctx context.Context, s *session, greets bool) {
	was := c.stream
	if was != nil {
		if was.session != s {
			was.in.Close()
			<-was.ended // its requests are answered before ours are sent
		}
		select {
		case <-was.ended:
		default:
			return
		}
	}
	c.stream = c.open(ctx, s)
	if was != nil && greets && c.initialize != nil {
		c.greet()
	}
}

// answered records that a request has been answered, and reports whether it was waiting for that.
func (c *stdioClient) answered(id string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	waited := c.pending[id]
	delete(c.pending, id)
	return waited
}

// greet repeats the beginning of a legacy session for a new far host.
func (c *stdioClient) greet() {
	id := string(examine(c.initialize).ID)
	c.mu.Lock()
	c.hidden[id] = true
	c.mu.Unlock()
	for _, line := range [][]byte{c.initialize, c.initialized} {
		_ = c.stream.queue(waiting{line: line, deadline: time.Now().Add(LinkWait)}) // if it fails, so does what follows
	}
}

// readMessage reads a line of at most [maxAnswer] bytes.
func readMessage(r *bufio.Reader) (line []byte, err error) {
	for {
		part, err := r.ReadSlice('\n')
		if line = append(line, part...); len(line) > maxAnswer {
			return nil, fmt.Errorf("the far host sent a message of more than %d MB", maxAnswer>>20)
		}
		if !errors.Is(err, bufio.ErrBufferFull) {
			return line, err
		}
	}
}

// deliver passes a message to the client.
func (c *stdioClient) deliver(line []byte) error {
	if m := examine(line); m.ID != nil && m.Method == "" {
		id := string(m.ID)
		c.mu.Lock()
		hidden := c.hidden[id]
		delete(c.hidden, id)
		delete(c.pending, id)
		c.mu.Unlock()
		if hidden {
			return nil
		}
	}
	c.out.Lock()
	defer c.out.Unlock()
	_, err := c.w.Write(line)
	return err
}

// fail answers a request with an error.
func (c *stdioClient) fail(m message, code int, err error) {
	if m.isRequest() {
		c.out.Lock()
		defer c.out.Unlock()
		_, _ = c.w.Write(append(errorMessage(m.ID, code, err), '\n')) // fails when the client is gone
	}
}

// errorMessage is a JSON-RPC error response. The id is null if it is not known.
func errorMessage(id json.RawMessage, code int, err error) []byte {
	if id == nil {
		id = json.RawMessage("null")
	}
	raw, marshalling := json.Marshal(map[string]any{
		"jsonrpc": "2.0", "id": id, "error": map[string]any{"code": code, "message": err.Error()},
	})
	if marshalling != nil { // the id is not JSON
		return errorMessage(nil, code, err)
	}
	return raw
}

// post sends a request whose body and answer are streams.
func (s *session) post(ctx context.Context, path string, body io.ReadCloser) (*http.Response, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://localhost"+path, body)
	if err != nil {
		return nil, err
	}
	response, err := s.http.RoundTrip(r)
	if err == nil && response.StatusCode != http.StatusOK {
		text, _ := io.ReadAll(io.LimitReader(response.Body, maxHello))
		response.Body.Close()
		err = fmt.Errorf("the far host answers %s: %s", response.Status, bytes.TrimSpace(text))
	}
	return response, err
}

// Duplex returns a writer that sends what is written at once, while the body of the request is read.
func Duplex(w http.ResponseWriter) io.Writer {
	rc := http.NewResponseController(w)
	_ = rc.SetReadDeadline(time.Time{}) // HTTP/2 has both
	_ = rc.SetWriteDeadline(time.Time{})
	w.WriteHeader(http.StatusOK)
	_ = rc.Flush()
	return flushWriter{w, rc}
}

type flushWriter struct {
	http.ResponseWriter
	rc *http.ResponseController
}

func (w flushWriter) Write(p []byte) (int, error) {
	n, err := w.ResponseWriter.Write(p)
	if err == nil {
		err = w.rc.Flush()
	}
	return n, err
}
