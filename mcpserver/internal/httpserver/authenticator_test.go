package httpserver

import (
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"testing"
	"testing/synctest"

	"github.com/toolhost/toolhost/mcpserver/audit"
	"github.com/toolhost/toolhost/mcpserver/auth"
	"github.com/toolhost/toolhost/mcpserver/internal/transport"
)

// A discardHandler implements what the authenticator calls for refused requests.
type discardHandler struct{ transport.Handler }

func (discardHandler) CountUnauthorized()        {}
func (discardHandler) Record(audit.Record) error { return nil }

// TestTokenGuessing guesses tokens from a remote address. It uses synctest so that no tries are regained.
func TestTokenGuessing(t *testing.T) { synctest.Test(t, testTokenGuessing) }

func testTokenGuessing(t *testing.T) {
	file := filepath.Join(t.TempDir(), "tokens.json")
	var bearers []string
	for _, name := range []string{"known", "new"} {
		bearer, _, err := auth.AddToken(file, name, auth.Read, 0, "")
		if err != nil {
			t.Fatal(err)
		}
		bearers = append(bearers, bearer)
	}
	tokens, err := auth.OpenTokenFile(file, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	defer tokens.Close()
	c := newAuthenticator(discardHandler{}, Config{Verifier: tokens})
	try := func(from, bearer string) (status int, who string) {
		r, w := httptest.NewRequest(http.MethodPost, Endpoint, nil), httptest.NewRecorder()
		r.RemoteAddr = from
		if bearer != "" {
			r.Header.Set("Authorization", "Bearer "+bearer)
		}
		id, ok := c.identify(w, r)
		if ok != (id.Principal != "") {
			t.Errorf("identify returned %+v and %v", id, ok)
		}
		return w.Code, id.Principal
	}
	const attacker, other = "203.0.113.5:99", "203.0.113.6:99"
	if _, who := try(attacker, bearers[0]); who != "token:known" {
		t.Fatal("a valid token was refused")
	}
	for n := range 3 * FailureBurst {
		if status, _ := try(attacker, fmt.Sprint("guess", n)); status == http.StatusUnauthorized != (n < FailureBurst) {
			t.Errorf("guess %d: status %d", n+1, status)
		}
	}
	for _, tt := range []struct {
		name, from, bearer string
		status             int
		who                string
	}{
		{"token that was valid before", attacker, bearers[0], 200, "token:known"},
		{"new valid token", attacker, bearers[1], 429, ""},
		{"new valid token from another address", other, bearers[1], 200, "token:new"},
		{"token that was valid from another address", attacker, bearers[1], 200, "token:new"},
		{"no token, to find the authorization server", attacker, "", 401, ""},
		{"wrong token from another address", other, "guess", 401, ""},
	} {
		if status, who := try(tt.from, tt.bearer); status != tt.status || who != tt.who {
			t.Errorf("%s: got status %d and principal %q, want %d and %q", tt.name, status, who, tt.status, tt.who)
		}
	}
}
