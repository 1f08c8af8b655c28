package auth

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"maps"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
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
	i := &issuer{t: t, keys: map[string]crypto.Signer{}, asked: map[string]int{}, claims: testIssuer,
		keysAt: testIssuer + "/keys"}
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
func (i *issuer) verifier(prefix string) *oauth {
	o, err := NewOAuth(OAuthConfig{Issuer: testIssuer, Audience: testAudience, ScopePrefix: prefix,
		Client: &http.Client{Transport: i}})
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

// unsigned is a token whose header says that no one has signed it.
func unsigned(alg string) string {
	header, _ := json.Marshal(map[string]any{"alg": alg, "kid": "one", "typ": "at+jwt"})
	claims, _ := json.Marshal(goodClaims(nil))
	encode := base64.RawURLEncoding.EncodeToString
	return encode(header) + "." + encode(claims) + "."
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
		{"expired within the skew", claims(map[string]any{"exp": now.Add(-skew / 2).Unix()}), Read | Exec, 0},
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
		{"too long", i.token(nil, map[string]any{"x": strings.Repeat("x", maxBearer)}), 0, Invalid},

		{"of another issuer", claims(map[string]any{"iss": "https://login.example.com/other"}), 0, Invalid},
		{"of no issuer", claims(map[string]any{"iss": nil}), 0, Invalid},
		{"for another audience", claims(map[string]any{"aud": "https://tools.example.com/mcp2"}), 0, Invalid},
		{"for a part of the audience", claims(map[string]any{"aud": "https://tools.example.com"}), 0, Invalid},
		{"for nobody", claims(map[string]any{"aud": nil}), 0, Invalid},
		{"expired", claims(map[string]any{"exp": now.Add(-2 * skew).Unix()}), 0, expiredToken},
		{"without an end", claims(map[string]any{"exp": nil}), 0, Invalid},
		{"an end that is no number", claims(map[string]any{"exp": "tomorrow"}), 0, Invalid},
		{"an end out of range", claims(map[string]any{"exp": 1e300}), 0, Invalid},
		{"not yet good", claims(map[string]any{"nbf": now.Add(2 * skew).Unix()}), 0, Invalid},
		{"issued in the future", claims(map[string]any{"iat": now.Add(2 * skew).Unix()}), 0, Invalid},

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
