package gateway

import (
	"bytes"
	"cmp"
	"context"
	"crypto/ed25519"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"

	"github.com/toolhost/toolhost/builtin"
	"github.com/toolhost/toolhost/guard"
)

// An authServer is an MCP server that wants a token, and the authorization server that gives it.
type authServer struct {
	*httptest.Server
	mcp *fake

	mu        sync.Mutex
	clients   int // that were registered
	unknown   int // clients up to this one are not known any more
	tokens    int // that were given
	valid     string
	challenge string
	refuse    string            // what is answered to a refresh; "down": nothing useful
	seen      map[string]string // the last form that was sent to a path
	moved     string            // where tokens are given; "": here
	life      int
	open      bool   // all but calls work without a token
	modern    bool   // it does not know initialize
	secret    string // that the token endpoint requires; "": none
	key       ed25519.PublicKey
	need      string // the scope that a call needs; "": none
	refusals  int    // of calls, for that
	more      string // members of its metadata
	resource  string // its metadata of the protected resource; "": as it should be
	bound     *binding
}

func startAuthServer(t *testing.T) *authServer {
	a := &authServer{mcp: newFake("", nil), seen: map[string]string{}, life: 3600}
	a.Server = httptest.NewServer(a)
	t.Cleanup(a.Close)
	return a
}

func (a *authServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	a.mu.Lock()
	defer a.mu.Unlock()
	switch {
	case r.URL.Path == "/mcp":
		body, _ := io.ReadAll(r.Body)
		r.Body = io.NopCloser(bytes.NewReader(body))
		call := bytes.Contains(body, []byte(`"tools/call"`))
		if a.modern && bytes.Contains(body, []byte(`"initialize"`)) {
			http.Error(w, "unsupported", http.StatusBadRequest)
			return
		}
		asked, _ := url.ParseQuery(a.seen["authorize"])
		if authorized := a.bound.accepts(r, a.valid); authorized && call && a.need != "" &&
			!slices.Contains(strings.Fields(asked.Get("scope")), a.need) {
			a.refusals++
			w.Header().Set("WWW-Authenticate", fmt.Sprintf(`Bearer error="insufficient_scope", scope="%s", resource_metadata="%s/prm", error_description="more"`, a.need, a.URL))
			w.WriteHeader(http.StatusForbidden)
			return
		} else if !authorized && (call || !a.open) {
			a.bound.challenge(w)
			w.Header().Set("WWW-Authenticate", fmt.Sprintf(`Bearer resource_metadata="%s/prm", scope="read write"`, a.URL))
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		a.mcp.ServeHTTP(w, r)
	case r.URL.Path == "/prm" && a.resource != "":
		fmt.Fprint(w, a.resource)
	case r.URL.Path == "/prm":
		fmt.Fprintf(w, `{"resource":"%s/mcp","authorization_servers":["%[1]s"]}`, a.URL)
	case r.URL.Path == "/.well-known/oauth-authorization-server":
		fmt.Fprintf(w, `{"issuer":"%[1]s","authorization_endpoint":"%[1]s/authorize","token_endpoint":"%[2]s/token","registration_endpoint":"%[1]s/register","response_types_supported":["code"],"code_challenge_methods_supported":["S256"]%[3]s}`,
			a.URL, cmp.Or(a.moved, a.URL), a.more)
	case r.URL.Path == "/register":
		a.clients++
		w.WriteHeader(http.StatusCreated)
		fmt.Fprintf(w, `{"client_id":"client%d"}`, a.clients)
	case r.URL.Path == "/token":
		a.token(w, r)
	default:
		w.WriteHeader(http.StatusNotFound)
	}
}

func (a *authServer) token(w http.ResponseWriter, r *http.Request) {
	r.ParseForm()
	a.seen["token"] = r.Form.Encode()
	var n int
	fmt.Sscanf(r.Form.Get("client_id"), "client%d", &n)
	sum := sha256.Sum256([]byte(r.Form.Get("code_verifier")))
	refused := ""
	if a.bound != nil && !a.bound.proves(r, "") {
		a.bound.challenge(w)
		w.WriteHeader(http.StatusBadRequest)
		fmt.Fprint(w, `{"error":"use_dpop_nonce"}`)
		return
	}
	switch refresh := r.Form.Get("grant_type") == "refresh_token"; {
	case r.Form.Get("grant_type") == grantAssertionType:
		if r.Form.Get("assertion") != "platform's token" {
			refused = "invalid_grant"
		}
	case r.Form.Get("grant_type") == grantClientCredentials:
		if !a.knows(r) {
			refused = "invalid_client"
		}
	case refresh && a.refuse == "down":
		w.WriteHeader(http.StatusServiceUnavailable)
		return
	case strings.HasPrefix(r.Form.Get("client_id"), "client") && n <= a.unknown, a.secret != "" &&
		secretOf(r) != a.secret:
		refused = "invalid_client"
	case refresh && a.refuse != "":
		refused = a.refuse
	case refresh && r.Form.Get("refresh_token") != fmt.Sprintf("refresh%d", a.tokens),
		!refresh && (r.Form.Get("code") != "code" || base64.RawURLEncoding.EncodeToString(sum[:]) != a.challenge):
		refused = "invalid_grant"
	}
	if refused != "" {
		w.WriteHeader(http.StatusBadRequest)
		fmt.Fprintf(w, `{"error":%q}`, refused)
		return
	}
	a.tokens++
	a.valid = fmt.Sprintf("access%d", a.tokens)
	fmt.Fprintf(w, `{"access_token":%q,"token_type":%q,"refresh_token":"refresh%d","expires_in":%d}`, a.valid,
		a.bound.scheme(), a.tokens, a.life)
}

// knows reports whether a client proves its identity: by the secret, or by an assertion that the key has signed.
func (a *authServer) knows(r *http.Request) bool {
	if a.key == nil {
		id, _, _ := r.BasicAuth()
		return id == "robot" && secretOf(r) == a.secret
	}
	signed, err := jose.ParseSignedCompact(r.Form.Get("client_assertion"), []jose.SignatureAlgorithm{jose.EdDSA})
	if err != nil {
		return false
	}
	text, err := signed.Verify(a.key)
	var claims struct{ Iss, Sub, Aud string }
	return err == nil && json.Unmarshal(text, &claims) == nil && claims.Iss == "robot" && claims.Sub == "robot" &&
		claims.Aud == a.URL
}

// secretOf returns the secret of the client of a request.
func secretOf(r *http.Request) string {
	if _, secret, ok := r.BasicAuth(); ok {
		return secret
	}
	return r.Form.Get("client_secret")
}

// browser answers a login as a person does, after a request of somebody else with another state.
func (a *authServer) browser(t *testing.T) func(string) error {
	return func(address string) error {
		u, err := url.Parse(address)
		if err != nil {
			return err
		}
		q := u.Query()
		a.mu.Lock()
		a.challenge, a.seen["authorize"] = q.Get("code_challenge"), u.RawQuery
		a.mu.Unlock()
		back := q.Get("redirect_uri")
		for _, answer := range []struct {
			query string
			want  int
		}{
			{"state=other&code=stolen", http.StatusBadRequest},
			{"state=" + url.QueryEscape(q.Get("state")) + "&code=code&iss=https://other.example", http.StatusBadRequest},
			{"state=" + url.QueryEscape(q.Get("state")) + "&code=code&iss=" + url.QueryEscape(a.URL), http.StatusOK},
		} {
			resp, err := http.Get(back + "?" + answer.query)
			if err != nil {
				return err
			}
			resp.Body.Close()
			if resp.StatusCode != answer.want {
				t.Errorf("callback with %s: %d, want %d", answer.query, resp.StatusCode, answer.want)
			}
		}
		return nil
	}
}

// change changes the server while it runs.
func (a *authServer) change(f func()) {
	a.mu.Lock()
	defer a.mu.Unlock()
	f()
}

func loginGateway(t *testing.T, a *authServer, dir string, pinned ...string) *Gateway {
	entries := []*Entry{{Name: "s", Trust: User, Type: typeHTTP, URL: a.URL + "/mcp", File: "test",
		OAuth: &OAuthEntry{Scopes: pinned}}}
	g := Open(Config{
		MayRun:  func(guard.HostCommand) error { return nil },
		Servers: func() ([]*Entry, []string) { return entries, nil }, Dir: dir, Changed: func(*Gateway, bool) {},
		Start: startPlain, Log: slog.New(slog.DiscardHandler),
	})
	t.Cleanup(func() { g.Close() })
	return g
}

// kept is the file of the only login.
func kept(t *testing.T, dir string) (keptLogin, string) {
	t.Helper()
	files, _ := filepath.Glob(filepath.Join(dir, "*.login"))
	if len(files) != 1 {
		t.Fatalf("files of logins: %q", files)
	}
	text, err := os.ReadFile(files[0])
	if err != nil {
		t.Fatal(err)
	}
	var k keptLogin
	if err := json.Unmarshal(text, &k); err != nil {
		t.Fatal(err)
	}
	return k, files[0]
}

// say calls the tool of the server.
func say(t *testing.T, g *Gateway, principal string) error {
	t.Helper()
	s, err := g.server("s")
	if err != nil {
		t.Fatal(err)
	}
	s.forgive() // the pause after a failure is not waited for
	_, err = caller{g, &builtin.Env{Principal: principal, Scope: "one"}, s}.runHere(t.Context(),
		request{method: "tools/call", params: map[string]any{"name": "say"}},
		noReader)
	return err
}

// TestLogin: the login, what is kept of it, and whose it is.
func TestLogin(t *testing.T) {
	a := startAuthServer(t)
	dir := t.TempDir()
	g := loginGateway(t, a, dir)
	if err := say(t, g, localPrincipal); err == nil || !strings.Contains(err.Error(), "toolhost mcp login s") {
		t.Errorf("without a login: %v", err)
	}
	if err := g.Login(t.Context(), "s", a.browser(t)); err != nil {
		t.Fatal(err)
	}
	if err := say(t, g, localPrincipal); err != nil {
		t.Error(err)
	}
	if len(g.Tools()) != 1 {
		t.Errorf("tools after the login: %v", g.Tools())
	}
	k, file := kept(t, dir)
	if info, err := os.Stat(file); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the file of the login: %v, %v", info.Mode(), err)
	}
	if k.Token.AccessToken != "access1" || k.Client.ID != "client1" {
		t.Errorf("kept: %+v %+v", k.Token, k.Client)
	}
	q, _ := url.ParseQuery(a.seen["authorize"])
	if q.Get("scope") != "read write" || q.Get("resource") != a.URL+"/mcp" || q.Get("code_challenge_method") != "S256" {
		t.Errorf("the authorization server was asked %v", q)
	}
	if err := say(t, g, "other"); err == nil {
		t.Error("another caller used the login")
	}
	if err := say(t, loginGateway(t, a, dir), localPrincipal); err != nil {
		t.Errorf("in another host: %v", err)
	}
	if err := g.Login(t.Context(), "s", a.browser(t)); err != nil && !strings.Contains(err.Error(), "without a login") {
		t.Error(err)
	}
	if a.clients != 1 {
		t.Errorf("%d clients were registered by two logins", a.clients)
	}
	if found, err := g.Logout("s"); !found || err != nil {
		t.Errorf("logout: %v, %v", found, err)
	}
	if k, _ := kept(t, dir); k.Token != nil || k.Client == nil {
		t.Errorf("after the logout: %+v %+v", k.Token, k.Client)
	}
	if err := say(t, loginGateway(t, a, dir), localPrincipal); err == nil {
		t.Error("the login was used after the logout")
	}
	a.change(func() { a.unknown = 1 })
	if err := g.Login(t.Context(), "s", a.browser(t)); err != nil || a.clients != 2 {
		t.Errorf("a client that is not known any more: %v, %d clients", err, a.clients)
	}
}

// TestLoginEnds: what ends a login, and what does not.
func TestLoginEnds(t *testing.T) {
	for _, tt := range []struct {
		name          string
		change        func(*authServer)
		ok            bool
		token, client string // that are kept
	}{
		{"renewed", func(a *authServer) {}, true, "access2", "client1"},
		{"refused before it expires", func(a *authServer) { a.valid = "other" }, true, "access2", "client1"},
		{"down", func(a *authServer) { a.refuse = "down" }, false, "access1", "client1"},
		{"invalid_grant", func(a *authServer) { a.refuse = "invalid_grant" }, false, "", "client1"},
		{"invalid_client", func(a *authServer) { a.refuse = "invalid_client" }, false, "", ""},
		{"another error", func(a *authServer) { a.refuse = "temporarily_unavailable" }, false, "access1", "client1"},
		{"another address", func(a *authServer) { a.moved = "https://other.example" }, false, "access1", "client1"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			a := startAuthServer(t)
			dir := t.TempDir()
			g := loginGateway(t, a, dir)
			if err := g.Login(t.Context(), "s", a.browser(t)); err != nil {
				t.Fatal(err)
			}
			k, file := kept(t, dir)
			if a.change(func() { tt.change(a) }); a.valid == "access1" {
				k.Token.ExpiresAt = time.Now().Add(-time.Minute)
				if err := os.WriteFile(file, marshal(k), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			err := say(t, g, localPrincipal)
			if (err == nil) != tt.ok {
				t.Errorf("call: %v", err)
			}
			k, _ = kept(t, dir)
			token, client := "", ""
			if k.Token != nil {
				token = k.Token.AccessToken
			}
			if k.Client != nil {
				client = k.Client.ID
			}
			if token != tt.token || client != tt.client {
				t.Errorf("kept: %q and %q, want %q and %q (call: %v)", token, client, tt.token, tt.client, err)
			}
			a.change(func() { a.refuse, a.moved = "", "" })
			if err := say(t, g, localPrincipal); tt.token != "" && err != nil {
				t.Errorf("afterwards: %v", err)
			}
		})
	}
}

// TestLoginRefused: logins that do not come to be.
func TestLoginRefused(t *testing.T) {
	a := startAuthServer(t)
	dir := t.TempDir()
	g := loginGateway(t, a, dir)
	ctx, cancel := context.WithCancel(t.Context())
	err := g.Login(ctx, "s", func(string) error { cancel(); return nil })
	if err == nil || !strings.Contains(err.Error(), "no answer came from the browser") {
		t.Errorf("a login that no one answers: %v", err)
	}
	err = g.Login(t.Context(), "s", func(address string) error {
		u, _ := url.Parse(address)
		resp, err := http.Get(u.Query().Get("redirect_uri") + "?error=access_denied&state=" +
			url.QueryEscape(u.Query().Get("state")))
		if err == nil {
			resp.Body.Close()
		}
		return err
	})
	if err == nil || !strings.Contains(err.Error(), "access_denied") {
		t.Errorf("a login that was refused: %v", err)
	}
	if k, _ := kept(t, dir); k.Token != nil || a.clients != 1 {
		t.Errorf("kept: %+v after %d registrations", k.Token, a.clients)
	}
	a.change(func() { a.moved = "http://other.example" })
	if err := g.Login(t.Context(), "s", a.browser(t)); err == nil ||
		!strings.Contains(err.Error(), "https is required") {
		t.Errorf("tokens in clear: %v", err)
	}
}

// TestLoginMetadata: an error about metadata says what answered, and not what a decoder says.
func TestLoginMetadata(t *testing.T) {
	a := startAuthServer(t)
	g := loginGateway(t, a, t.TempDir())
	for answer, want := range map[string]string{
		"<html>":                         "something other than metadata in JSON",
		`["x"]`:                          "something other than metadata in JSON",
		`{"resource": 1}`:                "something other than metadata in JSON",
		`{"resource": "https://other/"}`: "does not match",
	} {
		a.change(func() { a.resource = answer })
		err := g.Login(t.Context(), "s", a.browser(t))
		if err == nil || !strings.Contains(err.Error(), "its OAuth metadata cannot be used: ") ||
			!strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "json") {
			t.Errorf("%s: %v", answer, err)
		}
	}
}

// TestLoginModern: a server that only knows the modern era, and does not know initialize, is asked for its login too.
func TestLoginModern(t *testing.T) {
	a := startAuthServer(t)
	a.modern, a.mcp = true, newFake("modern yes", nil)
	g := loginGateway(t, a, t.TempDir())
	if err := g.Login(t.Context(), "s", a.browser(t)); err != nil {
		t.Fatal(err)
	}
	if err := say(t, g, localPrincipal); err != nil {
		t.Error(err)
	}
}

// TestLoginSecret: a client that was registered by hand logs in with its secret, which a variable holds.
func TestLoginSecret(t *testing.T) {
	t.Setenv("TOOLHOST_TEST_SECRET", "hunter2")
	for secret, want := range map[string]string{"${TOOLHOST_TEST_SECRET}": "", "other": "invalid_client",
		"${TOOLHOST_TEST_NONE}": "TOOLHOST_TEST_NONE"} {
		a := startAuthServer(t)
		a.secret = "hunter2"
		g := loginGateway(t, a, t.TempDir())
		s, err := g.server("s")
		if err != nil {
			t.Fatal(err)
		}
		s.Entry.OAuth = &OAuthEntry{ClientID: "client7", ClientSecret: secret}
		err = g.Login(t.Context(), "s", a.browser(t))
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", secret, err)
		}
		if want == "" {
			if err := say(t, g, localPrincipal); err != nil || a.clients != 0 {
				t.Errorf("%v; %d clients were registered", err, a.clients)
			}
		}
	}
}

// TestClientCredentials: a server gets its token by the credentials of its entry, again when that one has expired or is refused, and
// from no other authorization server than the first time.
func TestClientCredentials(t *testing.T) {
	t.Setenv("TOOLHOST_TEST_SECRET", "hunter2")
	public, private, err := ed25519.GenerateKey(nil)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	key := filepath.Join(t.TempDir(), "key.pem")
	if err := os.WriteFile(key, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, tt := range map[string]struct {
		own  OAuthEntry
		want string // part of the error
	}{
		"secret":          {OAuthEntry{ClientID: "robot", ClientSecret: "${TOOLHOST_TEST_SECRET}"}, ""},
		"key":             {OAuthEntry{ClientID: "robot", PrivateKeyFile: key}, ""},
		"wrong secret":    {OAuthEntry{ClientID: "robot", ClientSecret: "other"}, "client credentials of its entry: OAuth error: invalid_client"},
		"no key":          {OAuthEntry{ClientID: "robot", PrivateKeyFile: key + "x"}, "no such file"},
		"no credentials":  {OAuthEntry{ClientID: "robot"}, `set "clientId", and "clientSecret" or "privateKeyFile"`},
		"a grant unknown": {OAuthEntry{ClientID: "robot", Grant: "password"}, `"client_credentials" or "jwt-bearer" is expected`},
	} {
		t.Run(name, func(t *testing.T) {
			a := startAuthServer(t)
			a.secret = "hunter2"
			if tt.own.PrivateKeyFile != "" {
				a.key = public
			}
			dir := t.TempDir()
			g := loginGateway(t, a, dir)
			s, err := g.server("s")
			if err != nil {
				t.Fatal(err)
			}
			tt.own.Grant = cmp.Or(tt.own.Grant, grantClientCredentials)
			s.Entry.OAuth = &tt.own
			err = say(t, g, localPrincipal)
			if (err == nil) != (tt.want == "") || err != nil && !strings.Contains(err.Error(), tt.want) {
				t.Fatal(err)
			}
			if tt.want != "" {
				return
			}
			if form, _ := url.ParseQuery(a.seen["token"]); form.Get("resource") != a.URL+"/mcp" ||
				form.Get("scope") != "read write" || a.clients != 0 {
				t.Errorf("asked for %v; %d clients were registered", form, a.clients)
			}
			if k, _ := kept(t, dir); k.Token == nil || strings.Contains(string(marshal(k)), "hunter2") {
				t.Errorf("kept: %s", marshal(k))
			}
			a.change(func() { a.valid = "revoked" })
			if err := say(t, g, localPrincipal); err != nil || a.tokens != 2 {
				t.Errorf("revoked: %v, %d tokens", err, a.tokens)
			}
			if err := g.Login(t.Context(), "s", a.browser(t)); err == nil ||
				!strings.Contains(err.Error(), "it needs none") {
				t.Errorf("a login: %v", err)
			}
			other := startAuthServer(t)
			a.change(func() { a.valid, a.moved = "revoked", other.URL })
			if err := say(t, g, localPrincipal); err == nil ||
				!strings.Contains(err.Error(), "run `toolhost mcp logout s`") || other.seen["token"] != "" {
				t.Errorf("moved: %v, and the other server has seen %q", err, other.seen["token"])
			}
			if _, err := g.Logout("s"); err != nil {
				t.Error(err)
			}
			_ = say(t, g, localPrincipal)
			if other.seen["token"] == "" {
				t.Error("after the logout the new authorization server is not asked")
			}
		})
	}
}

func TestLoginScopes(t *testing.T) {
	for _, tt := range []struct {
		name   string
		pinned []string
		open   bool   // the server can be looked at without a login
		says   string // the call without the scope
		scope  string // that the login asks for then
		ok     bool   // the call afterwards
	}{
		{"more", nil, false, "your login lacks a scope (HTTP 403, scopes: admin): run `toolhost mcp login s`", "read write admin", true},
		{"of the entry alone", []string{"read"}, false, "add them to the \"scopes\" of \"oauth\" in its entry, then run `toolhost mcp login s`", "read", false},
		{"only calls want a login", nil, true, "scopes: admin", "read write admin", true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			a := startAuthServer(t)
			a.open = tt.open
			dir := t.TempDir()
			g := loginGateway(t, a, dir, tt.pinned...)
			if err := say(t, g, localPrincipal); err == nil ||
				!strings.Contains(err.Error(), "it requires a login (HTTP 401): run `toolhost mcp login s`") {
				t.Errorf("without a login: %v", err)
			}
			login := func() string {
				t.Helper()
				if err := g.Login(t.Context(), "s", a.browser(t)); err != nil {
					t.Fatal(err)
				}
				q, _ := url.ParseQuery(a.seen["authorize"])
				return q.Get("scope")
			}
			login()
			if err := say(t, g, localPrincipal); err != nil {
				t.Error(err)
			}
			a.change(func() { a.need = "admin" })
			if err := say(t, g, localPrincipal); err == nil || !strings.Contains(err.Error(), tt.says) {
				t.Errorf("the call says %v", err)
			}
			if a.refusals != 1 {
				t.Errorf("the call was put to the server %d times", a.refusals)
			}
			if k, _ := kept(t, dir); k.Token == nil {
				t.Error("the login was dropped")
			}
			if scope := login(); scope != tt.scope {
				t.Errorf("the login asks for %q, want %q", scope, tt.scope)
			}
			if err := say(t, g, localPrincipal); (err == nil) != tt.ok {
				t.Errorf("after the login: %v", err)
			}
			if a.clients != 1 {
				t.Errorf("%d clients were registered", a.clients)
			}
			if _, err := g.Logout("s"); err != nil {
				t.Error(err)
			}
			if k, _ := kept(t, dir); len(k.Asked.Scopes) > 0 {
				t.Errorf("after the logout a login would ask for %q", k.Asked.Scopes)
			}
		})
	}
}
