package scripts

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"encoding/json"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"

	"github.com/toolhost/toolhost/integration/client"
	"github.com/toolhost/toolhost/integration/host"
)

// A login is an authorization server in this process.
type login struct {
	*httptest.Server
	t *testing.T

	mu      sync.Mutex
	away    bool
	key     *ecdsa.PrivateKey
	id      string
	fetched int
}

func newLogin(t *testing.T) *login {
	l := &login{t: t}
	l.rotate("one")
	l.Server = httptest.NewServer(http.HandlerFunc(l.serve))
	t.Cleanup(l.Close)
	return l
}

func (l *login) rotate(id string) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		l.t.Fatal(err)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.key, l.id = key, id
}

func (l *login) goAway(away bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.away = away
}

func (l *login) serve(w http.ResponseWriter, r *http.Request) {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case l.away:
		w.WriteHeader(http.StatusServiceUnavailable)
	case r.URL.Path == "/.well-known/oauth-authorization-server":
		_ = json.NewEncoder(w).Encode(map[string]string{"issuer": l.URL, "jwks_uri": l.URL + "/keys"})
	case r.URL.Path == "/keys":
		l.fetched++
		_ = json.NewEncoder(w).Encode(jose.JSONWebKeySet{Keys: []jose.JSONWebKey{{Key: l.key.Public(), KeyID: l.id}}})
	default:
		http.NotFound(w, r)
	}
}

const resource = "https://tools.example.com/mcp"

// token issues an access token.
func (l *login) token(kid string, key any, change map[string]any) string {
	l.t.Helper()
	l.mu.Lock()
	if kid == "" {
		kid, key = l.id, l.key
	}
	l.mu.Unlock()
	options := (&jose.SignerOptions{}).WithType("at+jwt").WithHeader("kid", kid)
	s, err := jose.NewSigner(jose.SigningKey{Algorithm: jose.ES256, Key: key}, options)
	if err != nil {
		l.t.Fatal(err)
	}
	claims := map[string]any{"iss": l.URL, "aud": resource, "sub": "alice", "exp": time.Now().Add(time.Hour).Unix(),
		"scope": "th:read th:exec"}
	maps.Copy(claims, change)
	raw, err := json.Marshal(claims)
	if err != nil {
		l.t.Fatal(err)
	}
	signed, err := s.Sign(raw)
	if err != nil {
		l.t.Fatal(err)
	}
	text, err := signed.CompactSerialize()
	if err != nil {
		l.t.Fatal(err)
	}
	return text
}

// knock sends a request and returns the status, the challenge and the body.
func knock(t *testing.T, url, bearer string) (status int, challenge, body string) {
	t.Helper()
	list := `{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}}`
	req, err := http.NewRequest(http.MethodPost, url, strings.NewReader(list))
	if err != nil {
		t.Fatal(err)
	}
	for k, v := range map[string]string{
		"Content-Type": "application/json", "Accept": "application/json, text/event-stream", "MCP-Protocol-Version": string(client.Modern), "Mcp-Method": "tools/list",
	} {
		req.Header.Set(k, v)
	}
	if bearer != "" {
		req.Header.Set("Authorization", "Bearer "+bearer)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	raw, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, resp.Header.Get("WWW-Authenticate"), string(raw)
}

// TestOAuth starts a host whose issuer is away, lets it come, and attacks it with tokens of every kind.
func TestOAuth(t *testing.T) {
	t.Parallel()
	l := newLogin(t)
	l.goAway(true)
	home := host.TempDir(t)
	ws, env := host.TempDir(t), host.CleanEnv(home)
	file := ws + ".token"
	ctx, cancel := host.Patient()
	defer cancel()
	h, err := host.StartHost(ctx, host.HTTPModern, ws, env,
		"--token-file", file, "--oauth-issuer", l.URL, "--oauth-audience", resource, "--oauth-scope-prefix", "th:")
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := h.Stop(); err != nil {
			t.Error(err)
		}
	}()
	good := l.token("", nil, nil)
	if status, _, body := knock(t, h.URL, good); status != http.StatusServiceUnavailable ||
		!strings.Contains(body, l.URL) {
		t.Errorf("while the issuer is away: %d %s", status, body)
	}
	if status, _, body := knock(t, h.URL, h.Token); status != http.StatusOK {
		t.Errorf("the single token while the issuer is away: %d %s", status, body)
	}
	l.goAway(false)
	host.Eventually(t, func() string {
		status, _, body := knock(t, h.URL, good)
		if status == http.StatusOK && strings.Contains(body, `"Bash"`) && strings.Contains(body, `"Read"`) &&
			!strings.Contains(body, `"Write"`) {
			return ""
		}
		return body
	})

	l.rotate("two")
	if status, _, body := knock(t, h.URL, l.token("", nil, nil)); status != http.StatusOK {
		t.Errorf("a token of a new key: %d %s", status, body)
	}
	l.attack(t, h.URL, ws)
	c, err := client.HTTP(ctx, client.Modern, h.URL, l.token("", nil, nil))
	if err != nil {
		t.Fatal(err)
	}
	if r, err := c.Call(ctx, "Write", `{"file_path":"made","content":"x"}`); err != nil || !r.IsError ||
		!strings.Contains(r.Text(), "needs the right write") {
		t.Errorf("a tool without its scope: %+v, %v", r, err)
	}
}

// attack sends tokens that must be refused, and many whose key no one knows.
func (l *login) attack(t *testing.T, url, ws string) {
	t.Helper()
	stranger, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	for name, tt := range map[string]struct {
		bearer, challenge string
		status            int
	}{
		"no token":         {"", `resource_metadata="https://tools.example.com/.well-known/oauth-protected-resource/mcp"`, 401},
		"expired":          {l.token("", nil, map[string]any{"exp": time.Now().Add(-time.Hour).Unix()}), `error="invalid_token"`, 401},
		"another audience": {l.token("", nil, map[string]any{"aud": "https://other.example.com/mcp"}), `error="invalid_token"`, 401},
		"another issuer":   {l.token("", nil, map[string]any{"iss": "https://evil.example"}), `error="invalid_token"`, 401},
		"an ID token":      {l.token("", nil, map[string]any{"nonce": "n"}), `error="invalid_token"`, 401},
		"another's key":    {l.token("one", stranger, nil), `error="invalid_token"`, 401},
		"no scope of ours": {l.token("", nil, map[string]any{"scope": "read exec openid"}), `error="insufficient_scope"`, 403},
	} {
		if status, challenge, body := knock(t, url, tt.bearer); status != tt.status ||
			!strings.Contains(challenge, tt.challenge) || strings.Contains(body, ws) {
			t.Errorf("%s: %d %s %s", name, status, challenge, body)
		}
	}
	for range 50 {
		if status, _, body := knock(t, url, l.token(rand.Text(), stranger, nil)); status != 401 && status != 429 {
			t.Errorf("an unknown key: %d %s", status, body)
		}
	}
	l.mu.Lock()
	fetched := l.fetched
	l.mu.Unlock()
	if fetched > 5 {
		t.Errorf("the keys were fetched %d times", fetched)
	}
}
