package gateway

import (
	"encoding/json"
	"log/slog"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"

	"github.com/toolhost/toolhost/guard"
)

// A binding is how an authServer binds its tokens to a key. A nil one does not.
type binding struct {
	nonce string // that a proof must have
	seen  []string
	keys  map[string]bool
}

func (b *binding) scheme() string {
	if b == nil {
		return "bearer"
	}
	return "DPoP"
}

// challenge sends the nonce.
func (b *binding) challenge(w http.ResponseWriter) {
	if b != nil && b.nonce != "" {
		w.Header().Set("DPoP-Nonce", b.nonce)
	}
}

// accepts reports whether a request has the valid token.
func (b *binding) accepts(r *http.Request, valid string) bool {
	if b == nil {
		return valid != "" && r.Header.Get("Authorization") == "Bearer "+valid
	}
	return valid != "" && r.Header.Get("Authorization") == "DPoP "+valid && b.proves(r, valid)
}

// proves reports whether a request has a new proof.
func (b *binding) proves(r *http.Request, token string) bool {
	signed, err := jose.ParseSignedCompact(r.Header.Get("DPoP"), []jose.SignatureAlgorithm{jose.ES256})
	if err != nil {
		return false
	}
	key := signed.Signatures[0].Header.JSONWebKey
	text, err := signed.Verify(key)
	var claims struct{ Jti, Htm, Htu, Ath, Nonce string }
	if err != nil || json.Unmarshal(text, &claims) != nil || slices.Contains(b.seen, claims.Jti) {
		return false
	}
	b.seen = append(b.seen, claims.Jti)
	b.keys[string(marshal(key))] = true
	return claims.Htm == r.Method && claims.Htu == "http://"+r.Host+r.URL.Path && (claims.Ath != "") == (token != "") &&
		claims.Nonce == b.nonce
}

// TestBoundLogin: requests with a bound token have a new proof each, with the nonce of the server, by one key.
func TestBoundLogin(t *testing.T) {
	for _, nonce := range []string{"", "n1"} {
		t.Run("nonce "+nonce, func(t *testing.T) {
			a := startAuthServer(t)
			a.more, a.bound = `,"dpop_signing_alg_values_supported":["RS256","ES256"]`, &binding{nonce: nonce,
				keys: map[string]bool{}}
			dir := t.TempDir()
			g := loginGateway(t, a, dir)
			if err := g.Login(t.Context(), "s", a.browser(t)); err != nil {
				t.Fatal(err)
			}
			if err := say(t, g, localPrincipal); err != nil {
				t.Error(err)
			}
			k, file := kept(t, dir)
			k.Token.ExpiresAt = time.Now().Add(-time.Minute)
			if err := os.WriteFile(file, marshal(k), 0o600); err != nil {
				t.Fatal(err)
			}
			if err := say(t, loginGateway(t, a, dir), localPrincipal); err != nil {
				t.Errorf("after the renewal in another host: %v", err)
			}
			a.change(func() {
				if len(a.bound.keys) != 1 || a.tokens != 2 {
					t.Errorf("%d keys, %d tokens", len(a.bound.keys), a.tokens)
				}
			})
		})
	}
}

// TestPageAsClientID: a client ID that is the address of a page is used where such pages are read, and a client is registered elsewhere.
func TestPageAsClientID(t *testing.T) {
	const page = "https://client.example/toolhost.json"
	for more, want := range map[string]string{`,"client_id_metadata_document_supported":true`: page, "": "client1"} {
		a := startAuthServer(t)
		a.more = more
		g := loginGateway(t, a, t.TempDir())
		g.servers["s"].OAuth.ClientID = page
		if err := g.Login(t.Context(), "s", a.browser(t)); err != nil {
			t.Fatal(err)
		}
		a.change(func() {
			if q, _ := url.ParseQuery(a.seen["authorize"]); q.Get("client_id") != want {
				t.Errorf("with %q: the client ID is %q, want %q", more, q.Get("client_id"), want)
			}
		})
	}
}

// TestAssertionGrant: the token of the platform is exchanged, and read again for each exchange. A repository names no file that is sent.
func TestAssertionGrant(t *testing.T) {
	for _, tt := range []struct {
		name, content, want string
		trust               Trust
	}{
		{"valid", "platform's token\n", "", User},
		{"refused", "old", "invalid_grant", User},
		{"missing", "", "assertionFile", User},
		{"of a repository", "platform's token", "only entries of the user", Project},
	} {
		t.Run(tt.name, func(t *testing.T) {
			a := startAuthServer(t)
			file := filepath.Join(t.TempDir(), "token")
			if tt.content != "" {
				if err := os.WriteFile(file, []byte(tt.content), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			entry := &Entry{Name: "s", Trust: tt.trust, Type: typeHTTP, URL: a.URL + "/mcp", File: "test",
				OAuth: &OAuthEntry{Grant: grantAssertion, AssertionFile: file}}
			g := Open(Config{
				MayRun:  func(guard.HostCommand) error { return nil },
				Servers: func() ([]*Entry, []string) { return []*Entry{entry}, nil }, Dir: t.TempDir(),
				Changed: func(*Gateway, bool) {}, Start: startPlain, Log: slog.New(slog.DiscardHandler),
			})
			defer g.Close()
			err := say(t, g, localPrincipal)
			if (err == nil) != (tt.want == "") || err != nil && !strings.Contains(err.Error(), tt.want) {
				t.Errorf("call: %v, want %q", err, tt.want)
			}
			a.change(func() {
				if sent := strings.Contains(a.seen["token"], "platform"); sent != (tt.want == "") {
					t.Errorf("the token was sent: %v", sent)
				}
			})
		})
	}
}
