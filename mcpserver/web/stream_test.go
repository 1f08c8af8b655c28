package web

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"toolhost/mcpserver/internal/wire"
)

// TestProgressBeforeTheAnswer reports progress right before the answer, which must not be faster.
func TestProgressBeforeTheAnswer(t *testing.T) {
	for range 200 {
		w := httptest.NewRecorder()
		s := newCallStream(w, time.Minute)
		s.notify(t.Context(), "notifications/progress", map[string]any{"progress": 1})
		s.Header().Set("Content-Type", "application/json")
		if _, err := s.Write([]byte(`{"jsonrpc":"2.0","id":5,"result":{}}`)); err != nil {
			t.Fatal(err)
		}
		s.end(wire.Envelope{Method: wire.MethodCall, ID: json.RawMessage("5")}, nil)
		events := strings.Split(strings.TrimSpace(w.Body.String()), "\n\n")
		if len(events) != 2 || !strings.Contains(events[0], "notifications/progress") || !strings.Contains(events[1], `"result"`) {
			t.Fatalf("events: %q", events)
		}
	}
}

// A timedWriter remembers until when its client may dawdle.
type timedWriter struct {
	*httptest.ResponseRecorder
	read, write time.Time
}

func (w *timedWriter) SetReadDeadline(t time.Time) error  { w.read = t; return nil }
func (w *timedWriter) SetWriteDeadline(t time.Time) error { w.write = t; return nil }

// The time to read an answer begins with the answer: the work before it does not count.
func TestTimeToRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &door{cfg: Config{Limits: UsualLimits()}}
		w := &timedWriter{ResponseRecorder: httptest.NewRecorder(), write: time.Now()}
		fresh := func(what string) {
			t.Helper()
			if left := time.Until(w.write); left < writeTime || left > writeTime+headerTime {
				t.Errorf("%s: the client has %s to read", what, left)
			}
			time.Sleep(2 * writeTime)
		}
		d.impatient(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { fresh("a new request") })).ServeHTTP(w, nil)
		s := newCallStream(w, writeTime)
		s.Flush()
		fresh("a flush")
		s.WriteHeader(http.StatusOK)
		fresh("a status")
		if _, err := s.Write([]byte("{}")); err != nil {
			t.Fatal(err)
		}
		fresh("an answer")
		newCallStream(w, writeTime).end(request("1"), nil)
		fresh("the end of the host")
		newCallStream(w, writeTime).revoked(request("1"))
		fresh("a revoked credential")
	})
}
