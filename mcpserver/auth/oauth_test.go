package auth

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-jose/go-jose/v4"
)

const (
	testIssuer   = "https://login.example.com/tenant"
	testAudience = "https://tools.example.com/mcp"
)

// An issuer is an authorization server. It is asked through [issuer.client] and needs no network.
type issuer struct {
	t *testing.T

	mu       sync.Mutex
	keys     map[string]crypto.Signer // published
	away     bool
	oauth    bool // it has no OpenID Connect metadata, only those of RFC 8414
	claims   string
	keysAt   string
	asked    map[string]int // path → requests
	redirect string
}

func newIssuer(t *testing.T) *issuer {
	i := &issuer{t: t, keys: map[string]crypto.Signer{}, asked: map[string]int{}, claims: testIssuer, keysAt: testIssuer + "/keys"}
	i.rotate("one")
	return i
}

// rotate replaces the keys by a new one.
func (i *issuer) rotate(id string) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		i.t.Fatal(err)
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	i.keys = map[string]crypto.Signer{id: key}
}

func (i *issuer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.asked[r.URL.Path]++
	metadata := "/tenant/.well-known/openid-configuration"
	if i.oauth {
		metadata = "/.well-known/oauth-authorization-server/tenant"
	}
	switch {
	case i.away:
		http.Error(w, "down", http.StatusBadGateway)
	case i.redirect != "" && r.URL.Path == metadata:
		http.Redirect(w, r, i.redirect, http.StatusFound)
	case r.URL.Path == metadata:
		json.NewEncoder(w).Encode(map[string]any{"issuer": i.claims, "jwks_uri": i.keysAt})
	case r.URL.Path == "/tenant/keys":
		set := jose.JSONWebKeySet{}
		for id, key := range i.keys {
			set.Keys = append(set.Keys, jose.JSONWebKey{Key: key.Public(), KeyID: id, Use: "sig"})
		}
		json.NewEncoder(w).Encode(set)
	default:
		http.NotFound(w, r)
	}
}

func (i *issuer) RoundTrip(r *http.Request) (*http.Response, error) {
	w := httptest.NewRecorder()
	i.ServeHTTP(w, r)
	return w.Result(), nil
}

func (i *issuer) set(change func()) {
	i.mu.Lock()
	defer i.mu.Unlock()
	change()
}

func (i *issuer) fetched() int {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.asked["/tenant/keys"]
}

// verifier makes a verifier that trusts the issuer.
func (i *issuer) verifier(prefix string) *OAuth {
	o, err := NewOAuth(OAuthConfig{Issuer: testIssuer, Audience: testAudience, ScopePrefix: prefix, Client: &http.Client{Transport: i}})
	if err != nil {
		i.t.Fatal(err)
	}
	return o
}

// goodClaims are those of an access token that is as it should be.
func goodClaims(change map[string]any) map[string]any {
	now := time.Now()
	c := map[string]any{
		"iss": testIssuer, "aud": testAudience, "sub": "alice", "client_id": "c", "jti": "1",
		"exp": now.Add(time.Hour).Unix(), "iat": now.Unix(), "scope": "openid read exec",
	}
	maps.Copy(c, change)
	maps.DeleteFunc(c, func(_ string, v any) bool { return v == nil })
	return c
}

// sign makes a token. The header is {"alg":…,"kid":…} with the changes.
func sign(t *testing.T, alg jose.SignatureAlgorithm, key any, header map[string]any, claims any) string {
	t.Helper()
	options := &jose.SignerOptions{}
	for name, value := range header {
		options.WithHeader(jose.HeaderKey(name), value)
	}
	s, err := jose.NewSigner(jose.SigningKey{Algorithm: alg, Key: key}, options)
	if err != nil {
		t.Fatal(err)
	}
	raw, err := json.Marshal(claims)
	if err != nil {
		t.Fatal(err)
	}
	signed, err := s.Sign(raw)
	if err != nil {
		t.Fatal(err)
	}
	text, err := signed.CompactSerialize()
	if err != nil {
		t.Fatal(err)
	}
	return text
}

func (i *issuer) token(header, claims map[string]any) string {
	h := map[string]any{"kid": "one", "typ": "at+jwt"}
	maps.Copy(h, header)
	maps.DeleteFunc(h, func(_ string, v any) bool { return v == nil })
	i.mu.Lock()
	key := i.keys[h["kid"].(string)]
	i.mu.Unlock()
	return sign(i.t, jose.ES256, key, h, goodClaims(claims))
}

// unsigned is a token whose header says that nobody has signed it.
func unsigned(alg string) string {
	header, _ := json.Marshal(map[string]any{"alg": alg, "kid": "one", "typ": "at+jwt"})
	claims, _ := json.Marshal(goodClaims(nil))
	encode := base64.RawURLEncoding.EncodeToString
	return encode(header) + "." + encode(claims) + "."
}

// An oauthCase is a token and what becomes of it.
type oauthCase struct {
	name, token string
	want        Rights
	kind        Kind // of the refusal
}

// tokens are right and wrong ones.
func (i *issuer) tokens(t *testing.T) []oauthCase {
	t.Helper()
	now := time.Now()
	stranger, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	public, err := x509.MarshalPKIXPublicKey(i.keys["one"].Public())
	if err != nil {
		t.Fatal(err)
	}
	good := i.token(nil, nil)
	parts := strings.Split(good, ".")
	claims := func(change map[string]any) string { return i.token(nil, change) }
	header := func(change map[string]any) string { return i.token(change, nil) }
	return []oauthCase{
		{"as it should be", good, Read | Exec, 0},
		{"of the type JWT", header(map[string]any{"typ": "JWT"}), Read | Exec, 0},
		{"of the long type", header(map[string]any{"typ": "application/AT+JWT"}), Read | Exec, 0},
		{"of no type", header(map[string]any{"typ": nil}), Read | Exec, 0},
		{"for several", claims(map[string]any{"aud": []string{"x", testAudience}}), Read | Exec, 0},
		{"scopes in a list", claims(map[string]any{"scope": nil, "scp": []string{"write"}}), Write, 0},
		{"scopes of both names", claims(map[string]any{"scp": "write"}), All, 0},
		{"expired within the skew", claims(map[string]any{"exp": now.Add(-Skew / 2).Unix()}), Read | Exec, 0},
		{"a date with a fraction", claims(map[string]any{"exp": float64(now.Unix()) + 100.5}), Read | Exec, 0},
		{"Keycloak says what it is", claims(map[string]any{"typ": "Bearer"}), Read | Exec, 0},

		{"no token", "", 0, Missing},
		{"no JWT", "th_ABC", 0, Invalid},
		{"half a JWT", parts[0] + "." + parts[1], 0, Invalid},
		{"nothing signed", parts[0] + "." + parts[1] + ".", 0, Invalid},
		{"another's claims", parts[0] + "." + strings.Split(claims(map[string]any{"sub": "bob"}), ".")[1] + "." + parts[2], 0, Invalid},
		{"alg none", unsigned("none"), 0, Invalid},
		{"alg NONE", unsigned("NONE"), 0, Invalid},
		{"alg missing", unsigned(""), 0, Invalid},
		{"HS256 with the public key", sign(t, jose.HS256, public, map[string]any{"kid": "one", "typ": "at+jwt"}, goodClaims(nil)), 0, Invalid},
		{"a key of its own in the header", embedded(t, stranger), 0, Invalid},
		{"a stranger's key under a known id", sign(t, jose.ES256, stranger, map[string]any{"kid": "one", "typ": "at+jwt"}, goodClaims(nil)), 0, Invalid},
		{"a header that must be understood", header(map[string]any{"crit": []string{"x"}, "x": 1}), 0, Invalid},
		{"keys at an address of its own", sign(t, jose.ES256, stranger, map[string]any{"kid": "one", "typ": "at+jwt", "jku": "https://evil.example/keys", "x5u": "https://evil.example/x"}, goodClaims(nil)), 0, Invalid},
		{"a key id that is a path", sign(t, jose.ES256, stranger, map[string]any{"kid": "../../dev/null", "typ": "at+jwt"}, goodClaims(nil)), 0, Invalid},
		{"an unknown key", sign(t, jose.ES256, stranger, map[string]any{"kid": "?", "typ": "at+jwt"}, goodClaims(nil)), 0, Invalid},
		{"no key id", sign(t, jose.ES256, stranger, map[string]any{"typ": "at+jwt"}, goodClaims(nil)), 0, Invalid},
		{"too long", i.token(nil, map[string]any{"x": strings.Repeat("x", MaxBearer)}), 0, Invalid},

		{"of another issuer", claims(map[string]any{"iss": "https://login.example.com/other"}), 0, Invalid},
		{"of no issuer", claims(map[string]any{"iss": nil}), 0, Invalid},
		{"for another audience", claims(map[string]any{"aud": "https://tools.example.com/mcp2"}), 0, Invalid},
		{"for a part of the audience", claims(map[string]any{"aud": "https://tools.example.com"}), 0, Invalid},
		{"for nobody", claims(map[string]any{"aud": nil}), 0, Invalid},
		{"expired", claims(map[string]any{"exp": now.Add(-2 * Skew).Unix()}), 0, Expired},
		{"without an end", claims(map[string]any{"exp": nil}), 0, Invalid},
		{"an end that is no number", claims(map[string]any{"exp": "tomorrow"}), 0, Invalid},
		{"an end out of range", claims(map[string]any{"exp": 1e300}), 0, Invalid},
		{"not yet good", claims(map[string]any{"nbf": now.Add(2 * Skew).Unix()}), 0, Invalid},
		{"issued in the future", claims(map[string]any{"iat": now.Add(2 * Skew).Unix()}), 0, Invalid},

		{"an ID token by its type", header(map[string]any{"typ": "id+jwt"}), 0, Invalid},
		{"a logout token by its type", header(map[string]any{"typ": "logout+jwt"}), 0, Invalid},
		{"a type that is no text", header(map[string]any{"typ": 7}), 0, Invalid},
		{"an ID token by its nonce", claims(map[string]any{"nonce": "n"}), 0, Invalid},
		{"an ID token by its at_hash", claims(map[string]any{"at_hash": "h"}), 0, Invalid},
		{"an ID token by its claim typ", claims(map[string]any{"typ": "ID"}), 0, Invalid},
		{"a refresh token by its claim typ", claims(map[string]any{"typ": "Refresh"}), 0, Invalid},
		{"an ID token of Cognito", claims(map[string]any{"token_use": "id"}), 0, Invalid},
		{"a logout token by its events", claims(map[string]any{"events": map[string]any{}}), 0, Invalid},

		{"no subject", claims(map[string]any{"sub": nil}), 0, Invalid},
		{"a subject with a NUL", claims(map[string]any{"sub": "a\x00b"}), 0, Invalid},
		{"a subject of two lines", claims(map[string]any{"sub": "a\nb"}), 0, Invalid},
		{"a long subject", claims(map[string]any{"sub": strings.Repeat("a", maxSubject+1)}), 0, Invalid},
		{"scopes in a claim of a user's choice", claims(map[string]any{"Scope": "read write exec"}), 0, Invalid},
		{"a subject in a claim of a user's choice", claims(map[string]any{"SUB": "bob"}), 0, Invalid},
		{"an issuer in another spelling", claims(map[string]any{"iſs": "x"}), 0, Invalid},
		{"no scope", claims(map[string]any{"scope": nil}), 0, Insufficient},
		{"other scopes", claims(map[string]any{"scope": "openid READ toolhost:read read2"}), 0, Insufficient},
	}
}

func TestOAuth(t *testing.T) {
	i := newIssuer(t)
	for _, tt := range i.tokens(t) {
		t.Run(tt.name, func(t *testing.T) {
			o := i.verifier("")
			who, err := o.Verify(t.Context(), tt.token)
			switch {
			case tt.want != 0 && (err != nil || who.Rights != tt.want || who.Principal != "oauth:"+testIssuer+" alice"):
				t.Errorf("got %+v, %v", who, err)
			case tt.want == 0 && kindOf(err) != int(tt.kind):
				t.Errorf("got %+v, %v, want a refusal of the kind %d", who, err, tt.kind)
			}
			if err != nil && tt.token != "" && strings.Contains(err.Error(), tt.token) {
				t.Errorf("the refusal repeats the token: %v", err)
			}
		})
	}
}

// embedded is a token that brings the key that it is signed with.
func embedded(t *testing.T, key *ecdsa.PrivateKey) string {
	t.Helper()
	s, err := jose.NewSigner(jose.SigningKey{Algorithm: jose.ES256, Key: key}, &jose.SignerOptions{EmbedJWK: true})
	if err != nil {
		t.Fatal(err)
	}
	raw, _ := json.Marshal(goodClaims(nil))
	signed, err := s.Sign(raw)
	if err != nil {
		t.Fatal(err)
	}
	text, _ := signed.CompactSerialize()
	return text
}

func TestScopePrefix(t *testing.T) {
	i := newIssuer(t)
	o := i.verifier("toolhost:")
	if who, err := o.Verify(t.Context(), i.token(nil, map[string]any{"scope": "toolhost:read write toolhost:"})); err != nil || who.Rights != Read {
		t.Errorf("got %+v, %v", who, err)
	}
	_, err := o.Verify(t.Context(), i.token(nil, map[string]any{"scope": "read write exec"}))
	if kindOf(err) != int(Insufficient) || !strings.Contains(Challenge(err, ""), `scope="toolhost:read toolhost:write toolhost:exec"`) {
		t.Errorf("scopes without the prefix: %v, %s", err, Challenge(err, ""))
	}
}

func TestUnknownKeysDoNotFlood(t *testing.T) {
	i := newIssuer(t)
	o := i.verifier("")
	good := i.token(nil, nil)
	if _, err := o.Verify(t.Context(), good); err != nil {
		t.Fatal(err)
	}
	stranger, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	var all sync.WaitGroup
	for n := range 50 {
		token := sign(t, jose.RS256, stranger, map[string]any{"kid": fmt.Sprint("k", n), "typ": "at+jwt"}, goodClaims(nil))
		check := func() {
			if _, err := o.Verify(t.Context(), token); kindOf(err) != int(Invalid) {
				t.Errorf("an unknown key: %v", err)
			}
		}
		if n%2 == 0 {
			check()
		} else {
			all.Go(check)
		}
	}
	all.Wait()
	if n := i.fetched(); n > keysBurst {
		t.Errorf("the keys were fetched %d times, %d are the most", n, keysBurst)
	}
	if _, err := o.Verify(t.Context(), good); err != nil {
		t.Errorf("after the flood a right token is refused: %v", err)
	}
}

func TestKeyRotation(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		i := newIssuer(t)
		o := i.verifier("")
		old := i.token(nil, nil)
		if _, err := o.Verify(t.Context(), old); err != nil {
			t.Fatal(err)
		}
		synctest.Wait() // until the library has put down what it fetched: who asks before gets the same keys
		i.rotate("two")
		if _, err := o.Verify(t.Context(), i.token(map[string]any{"kid": "two"}, nil)); err != nil {
			t.Errorf("a token of the new key: %v", err)
		}
		synctest.Wait()
		if _, err := o.Verify(t.Context(), old); kindOf(err) != int(Invalid) {
			t.Errorf("a token of the key that is gone: %v", err)
		}
		// Somebody has used up the fetches: the newest key is known as soon as there is one again.
		for n := range 10 {
			i.rotate(fmt.Sprint("k", n))
			o.Verify(t.Context(), i.token(map[string]any{"kid": fmt.Sprint("k", n)}, nil))
		}
		time.Sleep(keysEvery)
		if _, err := o.Verify(t.Context(), i.token(map[string]any{"kid": "k9"}, nil)); err != nil {
			t.Errorf("%s later: %v", keysEvery, err)
		}
	})
}

func TestIssuerAway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		i := newIssuer(t)
		i.set(func() { i.away = true })
		o := i.verifier("")
		if err := o.Ready(t.Context()); kindOf(err) != int(Unavailable) {
			t.Errorf("an issuer that is away is ready: %v", err)
		}
		for range 20 {
			_, err := o.Verify(t.Context(), i.token(nil, nil))
			if kindOf(err) != int(Unavailable) || Status(err) != http.StatusServiceUnavailable || !strings.Contains(err.Error(), testIssuer) || strings.Contains(err.Error(), "502") || !strings.Contains(errors.Unwrap(err).Error(), "502") {
				t.Errorf("an issuer that is away: %v", err)
			}
		}
		i.set(func() {
			if n := i.asked["/tenant/.well-known/openid-configuration"]; n != 1 {
				t.Errorf("it was asked %d times", n)
			}
			i.away = false
		})
		if _, err := o.Verify(t.Context(), "th_ABC"); kindOf(err) != int(Invalid) {
			t.Errorf("what is no access token waits for the issuer: %v", err)
		}
		time.Sleep(fetchAgain)
		if _, err := o.Verify(t.Context(), i.token(nil, nil)); err != nil {
			t.Errorf("the issuer is back: %v", err)
		}
		i.set(func() { i.away = true })
		if _, err := o.Verify(t.Context(), i.token(nil, nil)); err != nil {
			t.Errorf("the keys are known, and the issuer is needed: %v", err)
		}
	})
}

func TestKeysAway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		i := newIssuer(t)
		o := i.verifier("")
		if err := o.Ready(t.Context()); err != nil {
			t.Fatal(err)
		}
		i.set(func() { i.away = true })
		for range 2 * keysBurst {
			if _, err := o.Verify(t.Context(), i.token(nil, nil)); kindOf(err) != int(Unavailable) {
				t.Errorf("without keys: %v", err)
			}
		}
		i.set(func() { i.away = false })
		time.Sleep(keysEvery)
		if _, err := o.Verify(t.Context(), i.token(nil, nil)); err != nil {
			t.Errorf("the keys are back: %v", err)
		}
	})
}

func TestIssuerMetadata(t *testing.T) {
	tests := []struct {
		name   string
		change func(*issuer)
		ok     bool
	}{
		{"OpenID Connect", func(*issuer) {}, true},
		{"RFC 8414 only", func(i *issuer) { i.oauth = true }, true},
		{"of another issuer", func(i *issuer) { i.claims = "https://evil.example" }, false},
		{"keys in the clear", func(i *issuer) { i.keysAt = "http://login.example.com/tenant/keys" }, false},
		{"no keys", func(i *issuer) { i.keysAt = "" }, false},
		{"keys in a file", func(i *issuer) { i.keysAt = "file:///etc/passwd" }, false},
		{"a redirect", func(i *issuer) { i.redirect = "https://evil.example/" }, false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			i := newIssuer(t)
			tt.change(i)
			if err := i.verifier("").Ready(t.Context()); (err == nil) != tt.ok {
				t.Errorf("got %v", err)
			}
		})
	}
}

func TestOAuthConfig(t *testing.T) {
	tests := []struct {
		cfg OAuthConfig
		ok  bool
	}{
		{OAuthConfig{Issuer: testIssuer, Audience: "a"}, true},
		{OAuthConfig{Issuer: "http://127.0.0.1:1", Audience: "a"}, true},
		{OAuthConfig{Issuer: "http://login.example.com", Audience: "a"}, false},
		{OAuthConfig{Issuer: "http://localhost.evil.example", Audience: "a"}, false},
		{OAuthConfig{Issuer: "login.example.com", Audience: "a"}, false},
		{OAuthConfig{Issuer: "https://u@login.example.com", Audience: "a"}, false},
		{OAuthConfig{Issuer: "https://login.example.com?x", Audience: "a"}, false},
		{OAuthConfig{Issuer: "https://login.example.com/a b", Audience: "a"}, false},
		{OAuthConfig{Issuer: testIssuer}, false},
		{OAuthConfig{Audience: "a"}, false},
		{OAuthConfig{Issuer: testIssuer, Audience: "a", ScopePrefix: "a b"}, false},
	}
	for _, tt := range tests {
		if _, err := NewOAuth(tt.cfg); (err == nil) != tt.ok {
			t.Errorf("%+v: %v", tt.cfg, err)
		}
	}
}
