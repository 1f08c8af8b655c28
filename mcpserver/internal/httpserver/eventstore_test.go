package httpserver

import (
	"bytes"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/toolhost/toolhost/mcpserver/internal/jsonrpc"
)

func TestEventStoreLimits(t *testing.T) {
	k := newEventStore()
	first := k.open("p", "s")
	id, _ := first.add([]byte("x"))
	for range maxKeptStreams {
		k.open("p", "s")
	}
	if s, _ := k.find("s", id); s != nil || len(k.byID) > maxKeptStreams {
		t.Errorf("%d streams are kept, including the oldest; the limit is %d", len(k.byID), maxKeptStreams)
	}
	large := k.open("p", "s")
	for range maxKeptBytes>>20 + 1 {
		large.add(make([]byte, 1<<20))
	}
	if k.bytes > maxKeptBytes {
		t.Errorf("%d bytes are kept, the limit is %d", k.bytes, maxKeptBytes)
	}
	k.end("s")
	if len(k.perPrincipal) != 0 || len(k.byID) != 0 || k.byAge.Len() != 0 || k.bytes != 0 {
		t.Errorf("after the end of the session, %d streams and %d bytes are kept", len(k.byID), k.bytes)
	}
}

// Streams of one principal do not evict those of another.
func TestEventStoreEvictsPerPrincipal(t *testing.T) {
	k := newEventStore()
	first := k.open("alice", "a")
	id, _ := first.add([]byte("x"))
	for range 2 * maxKeptStreams {
		k.open("bob", "b")
	}
	large := k.open("bob", "b")
	for range maxKeptBytes>>20 + 1 {
		large.add(make([]byte, 1<<20))
	}
	if s, _ := k.find("a", id); s == nil {
		t.Error("the streams of bob have evicted the one of alice")
	}
	if k.bytes > maxKeptBytes || len(k.byID) > maxKeptStreams {
		t.Errorf("%d streams and %d bytes are kept", len(k.byID), k.bytes)
	}
	k.end("b")
	k.end("a")
	if len(k.perPrincipal) != 0 || k.bytes != 0 {
		t.Errorf("after the end of both sessions, %v and %d bytes are kept", k.perPrincipal, k.bytes)
	}
}

func TestEventStoreExpiry(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := newEventStore()
		done, running := k.open("p", "s"), k.open("p", "s")
		a, _ := done.add([]byte("x"))
		b, _ := running.add([]byte("y"))
		done.finish()
		time.Sleep(keptTime + time.Second)
		k.open("p", "other")
		if s, _ := k.find("s", a); s != nil {
			t.Errorf("a finished stream is kept for longer than %s", keptTime)
		}
		if s, _ := k.find("s", b); s == nil {
			t.Error("the stream of a running call was dropped")
		}
	})
}

func TestResume(t *testing.T) {
	k := newEventStore()
	s := k.open("p", "s")
	var ids []string
	for i := range 3 {
		id, _ := s.add(fmt.Appendf(nil, `{"n":%d}`, i))
		ids = append(ids, id)
	}
	s.finish()
	for _, tt := range []struct {
		name, session, event string
		status               int
		want                 string
	}{
		{"after the first", "s", ids[0], 200, eventFor(ids[1], 1) + eventFor(ids[2], 2)},
		{"after the last", "s", ids[2], 200, ""},
		{"beyond the last", "s", s.id + "-99", 200, ""},
		{"another session's", "q", ids[0], 400, "not kept"},
		{"made up", "s", "abc-1", 400, "not kept"},
		{"no number", "s", s.id, 400, "not kept"},
		{"a path", "s", "../../etc/passwd", 400, "not kept"},
		{"a negative number", "s", s.id + "--5", 400, "not kept"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w := httptest.NewRecorder()
			k.resume(t.Context(), newResponseStream(w, writeTime), tt.session, tt.event)
			if got := w.Body.String(); w.Code != tt.status || tt.status == 200 && got != tt.want ||
				!strings.Contains(got, tt.want) {
				t.Errorf("status %d, %q; want %d, %q", w.Code, got, tt.status, tt.want)
			}
		})
	}
}

func eventFor(id string, n int) string {
	return string(eventText(id, fmt.Appendf(nil, `{"n":%d}`, n)))
}

// A resumed stream gets later events, and the connection of the call gets none.
func TestResumeWhileTheCallRuns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := newEventStore()
		s := k.open("p", "s")
		id, send := s.add([]byte("1"))
		if !send {
			t.Error("add before resume: send is false")
		}
		w := httptest.NewRecorder()
		done := make(chan struct{})
		go func() { k.resume(t.Context(), newResponseStream(w, writeTime), "s", id); close(done) }()
		synctest.Wait()
		if _, send := s.add([]byte("2")); send {
			t.Error("add after resume: send is true")
		}
		synctest.Wait()
		s.add([]byte("3"))
		s.finish()
		<-done
		if got, want := w.Body.String(), string(eventText(s.eventID(2), []byte("2")))+string(eventText(s.eventID(3),
			[]byte("3"))); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	})
}

// A stuckWriter is a connection whose client does not read.
type stuckWriter struct {
	header  http.Header
	unstuck chan struct{}
	got     bytes.Buffer
}

func (w *stuckWriter) Header() http.Header { return w.header }
func (w *stuckWriter) WriteHeader(int)     {}
func (w *stuckWriter) Write(p []byte) (int, error) {
	<-w.unstuck
	return w.got.Write(p)
}

func TestNotifyDoesNotWaitForTheClient(t *testing.T) {
	w := &stuckWriter{header: http.Header{}, unstuck: make(chan struct{})}
	s := newResponseStream(w, writeTime)
	for i := range 10 * maxQueued { // the test hangs if notify waits
		s.notify(t.Context(), "notifications/progress", map[string]any{"progress": i})
	}
	close(w.unstuck)
	s.Header().Set("Content-Type", "application/json")
	s.WriteHeader(http.StatusOK)
	if _, err := s.Write([]byte(`{"result":{}}`)); err != nil {
		t.Error(err)
	}
	s.end(jsonrpc.Envelope{ID: []byte("1"), Method: jsonrpc.MethodCall}, nil)
	s.notify(t.Context(), "notifications/progress", nil)
	s.mu.Lock()
	defer s.mu.Unlock()
	events := strings.Split(strings.TrimSpace(w.got.String()), "\n\n")
	if n := len(events); n > 2*maxQueued+1 || !strings.Contains(events[n-1], "result") ||
		!strings.Contains(events[0], `"progress":0`) {
		t.Errorf("%d events, from %s to %s", n, events[0], events[n-1])
	}
}
