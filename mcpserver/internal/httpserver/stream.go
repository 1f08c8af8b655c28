package httpserver

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/mark3labs/mcp-go/mcp"

	"github.com/toolhost/toolhost/mcpserver/auth"
	"github.com/toolhost/toolhost/mcpserver/internal/jsonrpc"
	"github.com/toolhost/toolhost/mcpserver/internal/transport"
)

// A responseStream is the response to one POST or GET. Notifications of a request are written to it at once, which
// turns it into an event stream, and the response of the library becomes its last event. The library itself would
// queue the notifications per session: they are lost if the response is faster, and can leave on the stream of
// another request.
type responseStream struct {
	w            http.ResponseWriter
	writeTimeout time.Duration             // after each write, for the client to read it
	header       http.Header               // set by the library
	openLog      func() *eventLog          // nil: events are not kept
	missingRight *auth.Error               // nil, or the right that the caller lacks: the status is then 403
	instead      func() mcp.JSONRPCMessage // returns what replaces the response of the library, or nil; nil: nothing does
	cancelled    func() bool               // reports whether the client has cancelled the request; nil: never
	metadataURL  string                    // for the challenge that goes with missingRight

	mu             sync.Mutex // held during writes
	headersSent    bool
	isEventStream  bool         // according to the headers that were sent
	buffered       bool         // the response is a single JSON message, which end sends as an event
	body           bytes.Buffer // if buffered
	firstEvent     chan struct{}
	firstEventSent bool        // firstEvent is closed
	log            *eventLog   // nil before the first event, or if events are not kept
	keepAlive      *time.Timer // nil before the first event
	closed         bool

	queueMu     sync.Mutex // not held during writes
	queue       [][]byte   // notifications to write
	queueClosed bool
}

// maxQueued limits the notifications that one request queues for a client that does not read. Further ones are dropped:
// each reports progress, which a later one supersedes. Those of tasks are queued all the same, because none follows the
// end of a task. A client that does not read them is disconnected.
const maxQueued = 64

// keepAliveInterval is how long an event stream is silent before a comment is sent. Many proxies close a stream after a
// minute of silence.
const keepAliveInterval = 15 * time.Second

// keepAliveComment is a comment of an event stream, which clients ignore.
const keepAliveComment = ":\n\n"

func newResponseStream(w http.ResponseWriter, writeTimeout time.Duration) *responseStream {
	return &responseStream{w: w, writeTimeout: writeTimeout, header: w.Header().Clone(),
		firstEvent: make(chan struct{})}
}

// Unwrap lets http.ResponseController reach the connection.
func (s *responseStream) Unwrap() http.ResponseWriter { return s.w }

// Header implements http.ResponseWriter.
func (s *responseStream) Header() http.Header { return s.header }

// Flush implements http.Flusher. The library streams only to writers that implement it.
func (s *responseStream) Flush() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.flushLocked()
}

func (s *responseStream) flushLocked() {
	s.extendWriteDeadline()
	_ = http.NewResponseController(s.w).Flush() // fails if the client has disconnected
	s.resetKeepAlive()
}

// extendWriteDeadline gives the client the full timeout for the next write. A client that does not read is
// disconnected.
func (s *responseStream) extendWriteDeadline() {
	_ = http.NewResponseController(s.w).SetWriteDeadline(time.Now().Add(s.writeTimeout)) // fails only without a connection
}

// WriteHeader implements http.ResponseWriter.
func (s *responseStream) WriteHeader(status int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.cancelledByClient() {
		return
	}
	s.writeQueue()
	s.sendHeaders(status)
}

// cancelledByClient reports whether the client has cancelled the request. Then no response may be sent.
func (s *responseStream) cancelledByClient() bool { return s.cancelled != nil && s.cancelled() }

// sendHeaders sends the headers of the library, unless a notification has already sent those of an event stream.
func (s *responseStream) sendHeaders(status int) {
	isEventStream := strings.HasPrefix(s.header.Get("Content-Type"), "text/event-stream")
	if s.headersSent {
		s.buffered = s.isEventStream && !isEventStream
		return
	}
	maps.Copy(s.w.Header(), s.header)
	s.headersSent, s.isEventStream = true, isEventStream
	s.extendWriteDeadline()
	if s.missingRight != nil && status == http.StatusOK && !isEventStream {
		status = auth.Status(s.missingRight)
		s.w.Header().Set("WWW-Authenticate", auth.Challenge(s.missingRight, s.metadataURL))
	}
	s.w.WriteHeader(status)
}

// Write implements io.Writer. The library writes an event, or a single message, in one call.
func (s *responseStream) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.cancelledByClient() && (!s.headersSent || s.isEventStream) {
		return len(p), nil
	}
	s.writeQueue()
	if !s.headersSent {
		s.sendHeaders(http.StatusOK)
	}
	written := len(p)
	p = s.replaced(p)
	if s.buffered {
		_, err := s.body.Write(p)
		return written, err
	}
	if data, ok := bytes.CutPrefix(p, []byte(eventHead)); ok && s.isEventStream && s.openLog != nil {
		s.sendEvent(bytes.TrimSuffix(bytes.Clone(data), []byte(eventTail)))
		return written, nil // the event is kept, so that a client that has disconnected can resume
	}
	_, err := s.writeLocked(p)
	return written, err
}

// replaced returns what is written in place of a response of the library, in the same form.
func (s *responseStream) replaced(p []byte) []byte {
	if s.instead == nil {
		return p
	}
	answer := s.instead()
	if answer == nil {
		return p
	}
	text, err := json.Marshal(answer)
	switch {
	case err != nil:
		return p
	case bytes.HasPrefix(p, []byte(eventHead)):
		return slices.Concat([]byte(eventHead), text, []byte(eventTail))
	}
	return append(text, '\n')
}

// send sends the response to a request that the library does not handle.
func (s *responseStream) send(answer mcp.JSONRPCMessage, status int) {
	text, err := json.Marshal(answer)
	if err != nil {
		return // end reports it
	}
	s.header.Set("Content-Type", "application/json")
	s.WriteHeader(status)
	_, _ = s.Write(append(text, '\n')) // fails if the client has disconnected
}

// eventHead and eventTail enclose the message of an event, in the format of the library.
const (
	eventHead = "event: message\ndata: "
	eventTail = "\n\n"
)

// writeLocked sends bytes. The caller holds mu.
func (s *responseStream) writeLocked(p []byte) (int, error) {
	s.extendWriteDeadline()
	n, err := s.w.Write(p)
	if s.isEventStream && !s.firstEventSent {
		s.firstEventSent = true
		close(s.firstEvent)
	}
	return n, err
}

// resetKeepAlive postpones the next comment. The caller holds mu.
func (s *responseStream) resetKeepAlive() {
	switch {
	case !s.headersSent || !s.isEventStream || s.closed:
	case s.keepAlive == nil:
		s.keepAlive = time.AfterFunc(keepAliveInterval, s.writeKeepAlive)
	default:
		s.keepAlive.Reset(keepAliveInterval)
	}
}

// writeKeepAlive sends a comment.
func (s *responseStream) writeKeepAlive() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return
	}
	s.extendWriteDeadline()
	if _, err := io.WriteString(s.w, keepAliveComment); err != nil {
		return // the client has disconnected
	}
	s.flushLocked()
}

// close stops the comments. It must be called before the handler returns: after that, the connection may serve another
// request.
func (s *responseStream) close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closeLocked()
}

func (s *responseStream) closeLocked() {
	s.closed = true
	if s.keepAlive != nil {
		s.keepAlive.Stop()
	}
}

// waitForFirstEvent returns after the first event was sent. The library queues the acknowledgement of a subscription,
// and would lose it if the subscription ended at once.
func (s *responseStream) waitForFirstEvent(ctx context.Context, _ any) {
	select {
	case <-s.firstEvent:
	case <-ctx.Done():
	}
}

// notify queues a notification. It is sent before anything that the library writes later. notify does not wait for the
// client, so that a slow client does not delay its call. After the response, notify does nothing.
func (s *responseStream) notify(_ context.Context, method string, params map[string]any) {
	data, err := json.Marshal(transport.Notification(method, params))
	if err != nil {
		return
	}
	s.queueMu.Lock()
	defer s.queueMu.Unlock()
	if s.queueClosed || len(s.queue) >= maxQueued && method != transport.TaskEvent {
		return
	}
	if s.queue = append(s.queue, data); len(s.queue) == 1 {
		go func() { // ends with the request at the latest: end empties the queue
			s.mu.Lock()
			defer s.mu.Unlock()
			s.writeQueue()
		}()
	}
}

// writeQueue sends the queued notifications. The caller holds mu.
func (s *responseStream) writeQueue() {
	s.queueMu.Lock()
	queue := s.queue
	s.queue = nil
	s.queueMu.Unlock()
	for _, data := range queue {
		if s.headersSent && (s.buffered || !s.isEventStream) {
			return
		}
		if !s.headersSent {
			s.w.Header().Set("Content-Type", "text/event-stream")
			s.w.WriteHeader(http.StatusOK)
			s.headersSent, s.isEventStream = true, true
		}
		s.sendEvent(data)
	}
}

// sendEvent sends data as one event, and keeps data, which must not change afterwards. The caller holds mu.
func (s *responseStream) sendEvent(data []byte) {
	id, send := "", true
	if s.openLog != nil {
		if s.log == nil {
			s.log = s.openLog()
		}
		id, send = s.log.add(data)
	}
	if send {
		_, _ = s.writeLocked(eventText(id, data)) // fails if the client has disconnected
		s.flushLocked()
	}
}

// end completes the response after the library has returned. The library writes nothing for a message without an id, or
// for a request that was cut off; cause says why it was.
func (s *responseStream) end(m jsonrpc.Envelope, cause error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closeLocked()
	s.queueMu.Lock()
	s.queueClosed = true
	s.queueMu.Unlock()
	if !s.cancelledByClient() {
		s.writeQueue()
	}
	switch {
	case s.headersSent:
	case s.cancelledByClient():
		s.header.Set("Content-Type", "text/event-stream") // an event stream may end without a response
		s.sendHeaders(http.StatusOK)
	case m.Method == "" || m.ID == nil:
		s.sendHeaders(http.StatusAccepted)
	default:
		status := http.StatusNotFound // as for the next request of a session that has ended
		if !errors.Is(cause, errEnded) {
			status, cause = http.StatusServiceUnavailable, transport.ErrClosed
		}
		s.extendWriteDeadline()
		writeRPCError(s.w, status, &jsonrpc.Error{ID: m.ID, Code: mcp.INTERNAL_ERROR, Text: cause.Error()})
	}
	if data := bytes.TrimSpace(s.body.Bytes()); len(data) > 0 {
		s.sendEvent(data)
	}
	if s.log != nil {
		s.log.finish()
	}
}

// revoked answers a request that was cut off because its credential was revoked.
func (s *responseStream) revoked(m jsonrpc.Envelope) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.headersSent {
		return
	}
	s.headersSent = true
	s.extendWriteDeadline()
	s.w.Header().Set("WWW-Authenticate", auth.Challenge(&auth.Error{Kind: auth.Invalid, Reason: errRevoked.Error()}, ""))
	writeRPCError(s.w, http.StatusUnauthorized, &jsonrpc.Error{ID: m.ID, Code: mcp.INVALID_REQUEST,
		Text: errRevoked.Error()})
}
