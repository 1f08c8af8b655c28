package httpserver

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"

	"github.com/toolhost/toolhost/mcpserver/internal/jsonrpc"
)

// A notification right before the response is sent before it.
func TestProgressBeforeTheAnswer(t *testing.T) {
	for range 200 {
		w := httptest.NewRecorder()
		s := newResponseStream(w, time.Minute)
		s.notify(t.Context(), "notifications/progress", map[string]any{"progress": 1})
		s.Header().Set("Content-Type", "application/json")
		if _, err := s.Write([]byte(`{"jsonrpc":"2.0","id":5,"result":{}}`)); err != nil {
			t.Fatal(err)
		}
		s.end(jsonrpc.Envelope{Method: jsonrpc.MethodCall, ID: json.RawMessage("5")}, nil)
		events := strings.Split(strings.TrimSpace(w.Body.String()), "\n\n")
		if len(events) != 2 || !strings.Contains(events[0], "notifications/progress") ||
			!strings.Contains(events[1], `"result"`) {
			t.Fatalf("events: %q", events)
		}
	}
}

// A timedWriter records the deadlines.
type timedWriter struct {
	*httptest.ResponseRecorder
	read, write time.Time
}

func (w *timedWriter) SetReadDeadline(t time.Time) error  { w.read = t; return nil }
func (w *timedWriter) SetWriteDeadline(t time.Time) error { w.write = t; return nil }

// Each write gets the full timeout, however long the call took.
func TestWriteDeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &entrance{cfg: Config{Limits: UsualLimits()}}
		w := &timedWriter{ResponseRecorder: httptest.NewRecorder(), write: time.Now()}
		fresh := func(what string) {
			t.Helper()
			if left := time.Until(w.write); left < writeTime || left > writeTime+headerTime {
				t.Errorf("%s: the write deadline is in %s, want at least %s", what, left, writeTime)
			}
			time.Sleep(2 * writeTime)
		}
		d.withDeadlines(http.HandlerFunc(func(http.ResponseWriter,
			*http.Request) {
			fresh("a new request")
		})).ServeHTTP(w, nil)
		s := newResponseStream(w, writeTime)
		s.Flush()
		fresh("a flush")
		s.WriteHeader(http.StatusOK)
		fresh("a status")
		if _, err := s.Write([]byte("{}")); err != nil {
			t.Fatal(err)
		}
		fresh("an answer")
		newResponseStream(w, writeTime).end(request("1"), nil)
		fresh("the end of the host")
		newResponseStream(w, writeTime).revoked(request("1"))
		fresh("a revoked credential")
	})
}

// An event stream is never silent for longer than keepAliveInterval. A single response gets no comments, and nothing
// follows the end.
func TestKeepAlive(t *testing.T) {
	const listen = `{"jsonrpc":"2.0","id":5,"method":"subscriptions/listen","params":{"notifications":{"toolsListChanged":true},` +
		`"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}}`
	tests := []struct {
		name string
		run  func(ctx context.Context, s *responseStream)
		want int // comments within 4 times keepAliveInterval
	}{
		{"a call with progress", func(_ context.Context, s *responseStream) {
			s.notify(context.Background(), "notifications/progress", map[string]any{"progress": 1})
		}, 3},
		{"progress now and then", func(_ context.Context, s *responseStream) {
			for range 10 {
				s.notify(context.Background(), "notifications/progress", map[string]any{"progress": 1})
				time.Sleep(keepAliveInterval / 3)
			}
		}, 0},
		{"a call without progress", func(context.Context, *responseStream) {}, 0},
		{"a single answer", func(_ context.Context, s *responseStream) {
			s.Header().Set("Content-Type", "application/json")
			_, _ = s.Write([]byte("{}"))
		}, 0},
		{"a stream of a session", func(ctx context.Context, s *responseStream) {
			s.Header().Set("Content-Type", "text/event-stream")
			s.WriteHeader(http.StatusOK)
			s.Flush()
			<-ctx.Done()
		}, 3},
		{"a subscription", func(ctx context.Context, s *responseStream) {
			library := server.NewStreamableHTTPServer(server.NewMCPServer("bare", "0",
				server.WithToolCapabilities(true)))
			r := httptest.NewRequest(http.MethodPost, Endpoint, strings.NewReader(listen)).WithContext(ctx)
			for name, value := range map[string]string{"Content-Type": "application/json",
				"Accept": "application/json, text/event-stream", mcp.HeaderProtocolVersion: "2026-07-28", "Mcp-Method": "subscriptions/listen"} {
				r.Header.Set(name, value)
			}
			library.ServeHTTP(s, r)
		}, 3},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := httptest.NewRecorder()
				s := newResponseStream(w, time.Minute)
				ctx, cancel := context.WithCancel(t.Context())
				go tt.run(ctx, s)
				time.Sleep(4*keepAliveInterval - time.Second)
				s.close()
				text := w.Body.String()
				events := strings.Split(text, "\n\n")
				if got := len(events) - len(slices.DeleteFunc(events, func(e string) bool { return e == ":" })); got != tt.want {
					t.Errorf("%d comments, want %d: %q", got, tt.want, text)
				}
				time.Sleep(4 * keepAliveInterval)
				if w.Body.String() != text {
					t.Errorf("after the end: %q", w.Body.String()[len(text):])
				}
				cancel()
				synctest.Wait()
			})
		})
	}
}
