package gateway

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
)

// TestResume has a server end the stream of an answer before the result.
func TestResume(t *testing.T) {
	const result = `data: {"jsonrpc":"2.0","id":1,"result":{"ok":true}}` + "\n\n"
	for _, tt := range []struct {
		name, first string
		rest        []string // the answers to requests for the rest; "": there is none
		want        string   // of the result or the error
		after       string   // the ids that were named
	}{
		{"at once", result, nil, `{"ok":true}`, ""},
		{"after an event", "id: a\nretry: 100\n\n", []string{result}, `{"ok":true}`, "a"},
		{"after two", "id: a\nretry: 0\n\n", []string{"id: b\ndata: {}\n\n", result}, `{"ok":true}`, "a b"},
		{"without an id", "retry: 100\n\n", []string{result}, "before the result", ""},
		{"not resumed", "id: a\nretry: 100\n\n", []string{""}, "cannot resume", "a"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			var after []string
			s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				text := tt.first
				if r.Method == http.MethodGet {
					text = tt.rest[len(after)]
					after = append(after, r.Header.Get("Last-Event-ID"))
				}
				if text != "" {
					w.Header().Set("Content-Type", "text/event-stream")
				}
				fmt.Fprint(w, text)
			}))
			defer s.Close()
			none := func(context.Context) (http.Header, error) { return http.Header{}, nil }
			w := newHTTPWire(&Entry{Name: "s", URL: s.URL}, none, nil)
			defer w.close()
			raw, err := w.request(t.Context(), "tools/call", json.RawMessage("{}"))
			if got := fmt.Sprint(string(raw), err); !strings.Contains(got, tt.want) ||
				strings.Join(after, " ") != tt.after {
				t.Errorf("got %s after %v, want %s after %s", got, after, tt.want, tt.after)
			}
		})
	}
}

// A told listener keeps what a server says without being asked, and answers what it asks.
type told struct {
	mu  sync.Mutex
	all []string
}

func (l *told) notified(method string, _ json.RawMessage) { l.add(method) }

func (l *told) asked(id json.RawMessage, method string, _ json.RawMessage, reply func(message)) {
	l.add(method)
	go reply(message{ID: id, Result: json.RawMessage(`{}`)})
}

func (l *told) add(method string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.all = append(l.all, method)
}

// TestGeneralStream has a server send all it has on the stream that is open for messages outside of answers.
func TestGeneralStream(t *testing.T) {
	const changed = "id: g1\nretry: 0\ndata: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/tools/list_changed\"}\n\n"
	const question = "data: {\"jsonrpc\":\"2.0\",\"id\":7,\"method\":\"roots/list\"}\n\n"
	const answer = "id: g2\ndata: {\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{\"ok\":true}}\n\n"
	for _, tt := range []struct {
		name    string
		post    string   // what begins the answer to the call, which does not end
		streams []string // by request for the general stream; the last one does not end
		after   string   // the ids that were named
	}{
		{"while the answer is open", ": nothing\n\n", []string{changed + question + answer}, ""},
		{"on the next stream", ": nothing\n\n", []string{changed + question, answer}, "g1"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			var after []string // guarded by to.mu
			to := &told{}
			called, replied := make(chan struct{}), make(chan struct{})
			s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				var m message
				_ = json.NewDecoder(r.Body).Decode(&m) // a GET has none
				if r.Method == http.MethodPost && m.Method == "" {
					close(replied)
					w.WriteHeader(http.StatusAccepted)
					return
				}
				w.Header().Set("Content-Type", "text/event-stream")
				text, last := tt.post, true
				if r.Method == http.MethodGet {
					<-called
					to.mu.Lock()
					if id := r.Header.Get("Last-Event-ID"); id != "" {
						after = append(after, id)
					}
					text, last = tt.streams[len(after)], len(after) == len(tt.streams)-1
					to.mu.Unlock()
				}
				fmt.Fprint(w, text)
				w.(http.Flusher).Flush()
				if r.Method == http.MethodPost {
					close(called)
				}
				if last {
					<-r.Context().Done()
				}
			}))
			defer s.Close()
			none := func(context.Context) (http.Header, error) { return http.Header{}, nil }
			w := newHTTPWire(&Entry{Name: "s", URL: s.URL}, none, to)
			defer w.close()
			go w.listen(func() {})
			raw, err := w.request(t.Context(), "tools/call", json.RawMessage("{}"))
			if <-replied; err != nil || string(raw) != `{"ok":true}` {
				t.Errorf("the call got %s, %v", raw, err)
			}
			to.mu.Lock()
			defer to.mu.Unlock()
			if !slices.Equal(to.all, []string{"notifications/tools/list_changed", "roots/list"}) ||
				strings.Join(after, " ") != tt.after {
				t.Errorf("told %q after %q", to.all, after)
			}
		})
	}
}
