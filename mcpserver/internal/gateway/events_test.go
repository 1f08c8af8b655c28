package gateway

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
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
		{"not resumed", "id: a\nretry: 100\n\n", []string{""}, "does not go on", "a"},
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
			if got := fmt.Sprint(string(raw), err); !strings.Contains(got, tt.want) || strings.Join(after, " ") != tt.after {
				t.Errorf("got %s after %v, want %s after %s", got, after, tt.want, tt.after)
			}
		})
	}
}
