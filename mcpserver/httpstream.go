package mcpserver

import (
	"bytes"
	"context"
	"log"
	"log/slog"
	"net/http"
	"sync"
	"time"

	"github.com/mark3labs/mcp-go/server"
)

// flushTime bounds how long an answer waits for the progress sent before it. It passes only when the
// client does not read, or when its notifications go to another stream of its session.
const flushTime = 250 * time.Millisecond

// A countingWriter counts the events written to a stream. The library takes a notification off its queue
// before it takes the lock that its answer needs too, and drops it when the answer is faster: about one in
// eight of those sent just before a return. So an answer waits until as many events are out as were sent.
type countingWriter struct {
	http.ResponseWriter

	mu            sync.Mutex
	sent, written int
	caughtUp      chan struct{} // closed when written reaches sent; nil when nobody waits
}

// Unwrap lets http.ResponseController reach the connection.
func (w *countingWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// Flush implements http.Flusher, by which the library decides whether it can stream.
func (w *countingWriter) Flush() {
	_ = http.NewResponseController(w.ResponseWriter).Flush() // a client that is gone needs no flush
}

// Write implements io.Writer. A client that does not read loses its connection.
func (w *countingWriter) Write(p []byte) (int, error) {
	_ = http.NewResponseController(w.ResponseWriter).SetWriteDeadline(time.Now().Add(writeTime)) // see readBody
	n, err := w.ResponseWriter.Write(p)
	if bytes.HasPrefix(p, []byte("event: message")) {
		w.mu.Lock()
		w.written++
		if w.written >= w.sent && w.caughtUp != nil {
			close(w.caughtUp)
			w.caughtUp = nil
		}
		w.mu.Unlock()
	}
	return n, err
}

// notify sends notifications through the library, and counts them.
func (w *countingWriter) notify(m *server.MCPServer) func(context.Context, string, map[string]any) {
	return func(ctx context.Context, method string, params map[string]any) {
		if session := server.ClientSessionFromContext(ctx); session != nil && !session.Initialized() {
			session.Initialize() // a request's own session starts without the handshake that came before it
		}
		w.mu.Lock()
		w.sent++
		w.mu.Unlock()
		if err := m.SendNotificationToClient(ctx, method, params); err != nil {
			w.mu.Lock()
			w.sent--
			w.mu.Unlock()
		}
	}
}

// await waits until what was sent is written.
func (w *countingWriter) await(ctx context.Context) {
	w.mu.Lock()
	if w.written >= w.sent {
		w.mu.Unlock()
		return
	}
	if w.caughtUp == nil {
		w.caughtUp = make(chan struct{})
	}
	caughtUp := w.caughtUp
	w.mu.Unlock()
	timer := time.NewTimer(flushTime)
	defer timer.Stop()
	select {
	case <-caughtUp:
	case <-timer.C:
	case <-ctx.Done():
	}
}

// quietLog turns the lines of net/http into debug messages: broken connections are everyday business.
func quietLog(l *slog.Logger) *log.Logger { return slog.NewLogLogger(l.Handler(), slog.LevelDebug) }
