//go:build unix

package hook

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/toolhost/toolhost/guard/settings"
)

// serve runs an HTTP hook, and returns it.
func serve(t *testing.T, h http.HandlerFunc) settings.Hook {
	t.Helper()
	server := httptest.NewServer(h)
	t.Cleanup(server.Close)
	return settings.Hook{Type: "http", URL: server.URL + "/hook?token=secret"}
}

func TestHTTP(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name    string
		status  int
		body    string
		want    action
		failure string
	}{
		{"nothing", 204, "", none, ""},
		{"text", 200, "OK", none, ""},
		{"allow", 200, permission("allow"), Allow, ""},
		{"deny", 201, permission("deny"), Deny, ""},
		{"block", 200, `{"decision": "block"}`, Deny, ""},
		{"broken JSON", 200, `{"decision": `, Deny, "begins as JSON"},
		{"a page", 200, "<!DOCTYPE html>", Deny, "answered with a page"},
		{"an allow with an error", 500, permission("allow"), Deny, "500 Internal Server Error"},
		{"unauthorized", 401, "", Deny, "401 Unauthorized"},
		{"too much", 200, strings.Repeat("x", maxOutput+1), Deny, "longer than 8 MiB"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			h := serve(t, func(w http.ResponseWriter, _ *http.Request) {
				w.WriteHeader(test.status)
				io.WriteString(w, test.body)
			})
			got := newRunner(t, Config{}).Pre(t.Context(), strict([]settings.HookMatcher{at(1, "", h)}), bashCall("ls"))
			if got.Action != test.want || !strings.Contains(got.Reason, test.failure) {
				t.Errorf("got %+v, want %v with %q", got, test.want, test.failure)
			}
			if strings.Contains(got.Reason, "secret") {
				t.Errorf("the reason shows the address's query: %s", got.Reason)
			}
		})
	}
}

// The request is what a command gets on standard input. Its headers hold the
// variables that may leave the machine, and no others.
func TestHTTPRequest(t *testing.T) {
	t.Setenv("SECRET", "never")
	t.Setenv("SHARED", "this")
	var body []byte
	var got [6]string
	h := serve(t, func(_ http.ResponseWriter, r *http.Request) {
		body, _ = io.ReadAll(r.Body)
		got = [6]string{r.Method, r.URL.RequestURI(), r.Host, r.Header.Get("Content-Type"), r.Header.Get("X-Key"),
			r.Header.Get("Authorization")}
	})
	h.Headers = map[string]string{"host": "guard.test", "x-key": "1",
		"Authorization": "Bearer ${SHARED}|${SECRET}$SECRET|$SHARED|$1"}
	h.AllowedEnvVars = []string{"SHARED"}
	newRunner(t, Config{}).Pre(t.Context(), []settings.HookMatcher{at(1, "", h)}, bashCall("ls > x"))
	want := [6]string{"POST", "/hook?token=secret", "guard.test", "application/json", "1", "Bearer this||this|$1"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	c := bashCall("ls > x")
	if e, _ := c.event(settings.PreToolUse).encode(); string(body) != string(e) {
		t.Errorf("got %s, want %s", body, e)
	}
}

// What a user of Claude Code would stumble over is said.
func TestHTTPHeaderHint(t *testing.T) {
	t.Parallel()
	h := serve(t, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusUnauthorized) })
	h.Headers = map[string]string{"Authorization": "Bearer $TOKEN"}
	got := newRunner(t, Config{}).Pre(t.Context(), strict([]settings.HookMatcher{at(1, "", h)}), bashCall("ls"))
	if !strings.Contains(got.Reason, "TOKEN in the header Authorization was left out: allowedEnvVars does not name it") {
		t.Errorf("got %q", got.Reason)
	}
}

// A redirect is not followed, by a client of the caller's either.
func TestHTTPRedirect(t *testing.T) {
	t.Parallel()
	h := serve(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/hook" {
			t.Error("followed")
		}
		http.Redirect(w, r, "/elsewhere", http.StatusTemporaryRedirect)
	})
	got := newRunner(t, Config{}).Pre(t.Context(), strict([]settings.HookMatcher{at(1, "", h)}), bashCall("ls"))
	if got.Action != Deny || !strings.Contains(got.Reason, "redirects are not followed") {
		t.Errorf("got %+v", got)
	}
}

func TestHTTPAddress(t *testing.T) {
	t.Parallel()
	gone := httptest.NewServer(nil)
	gone.Close()
	for _, address := range []string{"", "localhost:80", "ftp://a/", "file:///etc/passwd", "http://",
		"http://%zz?token=secret", gone.URL + "/?token=secret"} {
		got := newRunner(t, Config{}).Pre(t.Context(),
			strict([]settings.HookMatcher{at(1, "", settings.Hook{Type: "http", URL: address})}), bashCall("ls"))
		if got.Action != Deny || strings.Contains(got.Reason, "secret") {
			t.Errorf("%q: got %+v, want a refusal without the query", address, got)
		}
	}
}

// A service that does not answer is left alone when its time is over or the call
// is cancelled.
func TestHTTPEnds(t *testing.T) {
	t.Parallel()
	asked := make(chan struct{}, 2)
	h := serve(t, func(_ http.ResponseWriter, r *http.Request) {
		io.Copy(io.Discard, r.Body) // else the server does not notice that the client goes
		asked <- struct{}{}
		<-r.Context().Done()
	})
	r := newRunner(t, Config{})
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		<-asked
		cancel()
	}()
	got := r.Pre(ctx, strict([]settings.HookMatcher{at(1, "", h)}), bashCall("ls"))
	if got.Action != Deny || !strings.Contains(got.Reason, "cancelled") {
		t.Errorf("cancelled: got %+v", got)
	}
	h.Timeout = 10 * time.Millisecond
	got = r.Pre(t.Context(), strict([]settings.HookMatcher{at(1, "", h)}), bashCall("ls"))
	if got.Action != Deny || !strings.Contains(got.Reason, "no answer within 10ms") {
		t.Errorf("timed out: got %+v", got)
	}
}
