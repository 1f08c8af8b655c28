package httpserver

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"maps"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/mark3labs/mcp-go/mcp"

	"github.com/toolhost/toolhost/mcpserver/auth"
	"github.com/toolhost/toolhost/mcpserver/internal/jsonrpc"
	"github.com/toolhost/toolhost/mcpserver/internal/transport"
)

// A responseStream is the response to one POST. Notifications that belong to the request are written to it at
// once, which makes it a stream of events; the library's answer becomes its last one. The library itself
// would queue them per session, where they are lost when the answer is faster, and can leave on the stream of
// another request of the session.
type responseStream struct {
	w         http.ResponseWriter
	unread    time.Duration    // how long the client may leave what is written unread
	header    http.Header      // the library's
	keep      func() *eventLog // begins to keep the events; nil where they are not kept
	lacks     *auth.Error      // the right that the call lacks, which makes its answer 403; nil: none
	cancelled func() bool      // whether the client has cancelled the request; nil: it has not
	about     string           // where the metadata for the challenge is

	mu      sync.Mutex // held while the client takes what is written
	begun   bool       // the headers were sent
	streams bool       // they announced a stream of events
	single  bool       // and yet the library answers with a single JSON message, which is kept in body
	body    bytes.Buffer
	event1  chan struct{} // closed when the first event was written
	wrote   bool          // it is closed
	kept    *eventLog     // nil before the first event, and where they are not kept
	silence *time.Timer   // ends the silence of a stream of events; nil until there is one
	closed  bool          // nothing is written any more

	waiting sync.Mutex // never held while something is written
	queue   [][]byte   // notifications that were not written yet
	ended   bool       // no more are taken
}

// maxQueued is how many notifications of one request wait for a client that does not read. Further ones are
// left out: each tells how far the call is, and a later one tells more.
const maxQueued = 64

// commentEvery is how long a stream of events is silent before a comment is written to it, which clients skip. Proxies close streams
// that are silent, many of them after a minute.
const commentEvery = 15 * time.Second

// comment is a line of a stream of events without a meaning, and the empty one after it.
const comment = ":\n\n"

func newCallStream(w http.ResponseWriter, unread time.Duration) *responseStream {
	return &responseStream{w: w, unread: unread, header: w.Header().Clone(), event1: make(chan struct{})}
}

// Unwrap lets http.ResponseController reach the connection.
func (s *responseStream) Unwrap() http.ResponseWriter { return s.w }

// Header implements http.ResponseWriter.
func (s *responseStream) Header() http.Header { return s.header }

// Flush implements http.Flusher, by which the library decides whether it can stream.
func (s *responseStream) Flush() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.flush()
}

func (s *responseStream) flush() {
	s.renew()
	_ = http.NewResponseController(s.w).Flush() // a client that is gone needs no flush
	s.written()
}

// renew gives the client time anew to read what is written next. One that does not read loses its connection.
func (s *responseStream) renew() {
	_ = http.NewResponseController(s.w).SetWriteDeadline(time.Now().Add(s.unread)) // see impatient
}

// WriteHeader implements http.ResponseWriter.
func (s *responseStream) WriteHeader(status int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.silenced() {
		return
	}
	s.writeQueue()
	s.begin(status)
}

// silenced reports whether the client has cancelled the request, so that no
// response may be sent.
func (s *responseStream) silenced() bool { return s.cancelled != nil && s.cancelled() }

// begin sends the library's headers, unless a notification was faster.
func (s *responseStream) begin(status int) {
	streams := strings.HasPrefix(s.header.Get("Content-Type"), "text/event-stream")
	if s.begun {
		s.single = s.streams && !streams
		return
	}
	maps.Copy(s.w.Header(), s.header)
	s.begun, s.streams = true, streams
	s.renew()
	if s.lacks != nil && status == http.StatusOK && !streams {
		status = auth.Status(s.lacks)
		s.w.Header().Set("WWW-Authenticate", auth.Challenge(s.lacks, s.about))
	}
	s.w.WriteHeader(status)
}

// Write implements io.Writer. The library writes an event, or the single message, whole.
func (s *responseStream) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.silenced() && (!s.begun || s.streams) {
		return len(p), nil
	}
	s.writeQueue()
	if !s.begun {
		s.begin(http.StatusOK)
	}
	if s.single {
		return s.body.Write(p)
	}
	if data, ok := bytes.CutPrefix(p, []byte(eventHead)); ok && s.streams && s.keep != nil {
		s.event(bytes.TrimSuffix(bytes.Clone(data), []byte(eventTail)))
		return len(p), nil // a client that is gone may come again
	}
	return s.write(p)
}

// What stands around the message of an event, as the library writes it too.
const (
	eventHead = "event: message\ndata: "
	eventTail = "\n\n"
)

// write sends bytes.
func (s *responseStream) write(p []byte) (int, error) {
	s.renew()
	n, err := s.w.Write(p)
	if s.streams && !s.wrote {
		s.wrote = true
		close(s.event1)
	}
	return n, err
}

// written puts off the next comment. The caller holds mu.
func (s *responseStream) written() {
	switch {
	case !s.begun || !s.streams || s.closed:
	case s.silence == nil:
		s.silence = time.AfterFunc(commentEvery, s.comment)
	default:
		s.silence.Reset(commentEvery)
	}
}

// comment writes a comment.
func (s *responseStream) comment() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return
	}
	s.renew()
	if _, err := io.WriteString(s.w, comment); err != nil {
		return // the client is gone
	}
	s.flush()
}

// close ends the comments: the connection is no longer the stream's.
func (s *responseStream) close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.shut()
}

// shut is close. The caller holds mu.
func (s *responseStream) shut() {
	s.closed = true
	if s.silence != nil {
		s.silence.Stop()
	}
}

// acknowledged waits for the first event, which the library queues: it would lose the acknowledgement of a
// subscription that ends at once.
func (s *responseStream) acknowledged(ctx context.Context, _ any) {
	select {
	case <-s.event1:
	case <-ctx.Done():
	}
}

// notify sends a notification, in order before what the library writes later. It does not wait for the client: the
// call that it tells of goes on at its place in the order of its scope. After the answer it does nothing.
func (s *responseStream) notify(_ context.Context, method string, params map[string]any) {
	data, err := json.Marshal(mcp.JSONRPCNotification{
		JSONRPC:      mcp.JSONRPC_VERSION,
		Notification: mcp.Notification{Method: method, Params: mcp.NotificationParams{AdditionalFields: params}},
	})
	if err != nil {
		return
	}
	s.waiting.Lock()
	defer s.waiting.Unlock()
	if s.ended || len(s.queue) == maxQueued {
		return
	}
	if s.queue = append(s.queue, data); len(s.queue) == 1 {
		go func() { // it ends with the request at the latest, which takes what is left
			s.mu.Lock()
			defer s.mu.Unlock()
			s.writeQueue()
		}()
	}
}

// writeQueue writes the notifications that wait. The caller holds mu.
func (s *responseStream) writeQueue() {
	s.waiting.Lock()
	queue := s.queue
	s.queue = nil
	s.waiting.Unlock()
	for _, data := range queue {
		if s.begun && (s.single || !s.streams) {
			return
		}
		if !s.begun {
			s.w.Header().Set("Content-Type", "text/event-stream")
			s.w.WriteHeader(http.StatusOK)
			s.begun, s.streams = true, true
		}
		s.event(data)
	}
}

// event sends one message of the stream, which must not change any more. The caller holds mu.
func (s *responseStream) event(data []byte) {
	id, send := "", true
	if s.keep != nil {
		if s.kept == nil {
			s.kept = s.keep()
		}
		id, send = s.kept.add(data)
	}
	if send {
		_, _ = s.write(eventText(id, data)) // a client that is gone needs no event
		s.flush()
	}
}

// end sends the answer that was kept. It is called when the library is done, which says nothing to an answer
// of the client, and to a request that was cut off, for the reason that is given.
func (s *responseStream) end(m jsonrpc.Envelope, why error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.shut()
	s.waiting.Lock()
	s.ended = true
	s.waiting.Unlock()
	if !s.silenced() {
		s.writeQueue()
	}
	switch {
	case s.begun:
	case s.silenced():
		s.header.Set("Content-Type", "text/event-stream") // which may end without a response
		s.begin(http.StatusOK)
	case m.Method == "" || m.ID == nil:
		s.begin(http.StatusAccepted)
	default:
		status := http.StatusNotFound // what the next request of the session would get
		if !errors.Is(why, errEnded) {
			status, why = http.StatusServiceUnavailable, transport.ErrClosed
		}
		s.renew()
		writeFault(s.w, status, &jsonrpc.Error{ID: m.ID, Code: mcp.INTERNAL_ERROR, Text: why.Error()})
	}
	if data := bytes.TrimSpace(s.body.Bytes()); len(data) > 0 {
		s.event(data)
	}
	if s.kept != nil {
		s.kept.finish()
	}
}
