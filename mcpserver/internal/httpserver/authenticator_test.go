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

// strangers are what a server that knows no one is told of.
type strangers struct{ transport.Handler }

func (strangers) CountUnauthorized()        {}
func (strangers) Record(audit.Record) error { return nil }

// TestGuessingFromAfar guesses from an address that is one caller's alone.
func TestGuessingFromAfar(t *testing.T) { synctest.Test(t, testGuessingFromAfar) } // where no time passes, in which one could guess again

func testGuessingFromAfar(t *testing.T) {
	file := filepath.Join(t.TempDir(), "tokens.json")
	var bearers []string
	for _, name := range []string{"known", "new"} {
		bearer, _, err := auth.AddToken(file, name, auth.Read, 0)
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
	c := newAuthenticator(strangers{}, Config{Verifier: tokens})
	try := func(from, bearer string) (status int, who string) {
		r, w := httptest.NewRequest(http.MethodPost, Endpoint, nil), httptest.NewRecorder()
		r.RemoteAddr = from
		if bearer != "" {
			r.Header.Set("Authorization", "Bearer "+bearer)
		}
		id, ok := c.identify(w, r)
		if ok != (id.Principal != "") {
			t.Errorf("%+v is let in: %v", id, ok)
		}
		return w.Code, id.Principal
	}
	const attacker, other = "203.0.113.5:99", "203.0.113.6:99"
	if _, who := try(attacker, bearers[0]); who != "token:known" {
		t.Fatal("a right token is refused")
	}
	for n := range 3 * FailureBurst {
		if status, _ := try(attacker, fmt.Sprint("guess", n)); status == http.StatusUnauthorized != (n < FailureBurst) {
			t.Errorf("guess %d gets %d", n+1, status)
		}
	}
	for _, tt := range []struct {
		name, from, bearer string
		status             int
		who                string
	}{
		{"a token that was right before", attacker, bearers[0], 200, "token:known"},
		{"a right token that is new", attacker, bearers[1], 429, ""},
		{"the same from elsewhere", other, bearers[1], 200, "token:new"},
		{"and now from there too", attacker, bearers[1], 200, "token:new"},
		{"no token, to learn where they are issued", attacker, "", 401, ""},
		{"a wrong token from elsewhere", other, "guess", 401, ""},
	} {
		if status, who := try(tt.from, tt.bearer); status != tt.status || who != tt.who {
			t.Errorf("%s: %d %q", tt.name, status, who)
		}
	}
}
