package gateway

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/mark3labs/mcp-go/client/transport"
)

// proofScheme is the authorization scheme of tokens that are bound to a key (DPoP, RFC 9449).
const proofScheme = "DPoP"

// proofs sign the requests of a login with its key, so that a stolen token is worth nothing.
type proofs struct {
	mu     sync.Mutex
	kept   []byte // the key as kept
	key    *ecdsa.PrivateKey
	nonces map[string]string // by host
}

// use sets the key to the one of the login. It creates one for a login that has none.
func (p *proofs) use(k *keptLogin) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.key != nil && bytes.Equal(k.Key, p.kept) {
		return nil
	}
	known, err := x509.ParsePKCS8PrivateKey(k.Key)
	key, ok := known.(*ecdsa.PrivateKey)
	if err != nil || !ok {
		if key, err = ecdsa.GenerateKey(elliptic.P256(), rand.Reader); err != nil {
			return err
		}
		if k.Key, err = x509.MarshalPKCS8PrivateKey(key); err != nil {
			return err
		}
	}
	p.key, p.kept = key, k.Key
	return nil
}

// sign returns the proof for one request. token is the token that the request carries, "" for a request to a token
// endpoint.
func (p *proofs) sign(method string, to *url.URL, token, nonce string) (string, error) {
	p.mu.Lock()
	key := p.key
	p.mu.Unlock()
	options := (&jose.SignerOptions{EmbedJWK: true}).WithType("dpop+jwt")
	signer, err := jose.NewSigner(jose.SigningKey{Algorithm: jose.ES256, Key: key}, options)
	if err != nil {
		return "", err
	}
	claims := map[string]any{
		"jti": rand.Text(), "iat": time.Now().Unix(), "htm": method,
		"htu": (&url.URL{Scheme: to.Scheme, Host: to.Host, Path: to.Path, RawPath: to.RawPath}).String(),
	}
	if token != "" {
		sum := sha256.Sum256([]byte(token))
		claims["ath"] = base64.RawURLEncoding.EncodeToString(sum[:])
	}
	if nonce != "" {
		claims["nonce"] = nonce
	}
	signed, err := signer.Sign(marshal(claims))
	if err != nil {
		return "", err
	}
	return signed.CompactSerialize()
}

// nonce returns the nonce that a host has set last. It stores the one of resp, unless that is nil.
func (p *proofs) nonce(host string, resp *http.Response) string {
	p.mu.Lock()
	defer p.mu.Unlock()
	if resp != nil {
		if set := resp.Header.Get("DPoP-Nonce"); set != "" {
			if p.nonces == nil {
				p.nonces = map[string]string{}
			}
			p.nonces[host] = set
		}
	}
	return p.nonces[host]
}

// A prover is a transport that adds proofs to requests with a bound token, and to requests for a token from an
// authorization server that binds tokens.
type prover struct {
	http.RoundTripper
	login *login
}

// RoundTrip implements [http.RoundTripper]. A request that lacks a nonce is repeated with it.
func (t prover) RoundTrip(r *http.Request) (*http.Response, error) {
	token, bound := strings.CutPrefix(r.Header.Get("Authorization"), proofScheme+" ")
	if !bound {
		token = ""
		about := t.login.facts.Load()
		if r.Header.Get("Content-Type") != formType || about == nil ||
			!slices.Contains(about.Proofs, string(jose.ES256)) {
			return t.RoundTripper.RoundTrip(r)
		}
	}
	proofs := &t.login.proofs
	nonce := proofs.nonce(r.URL.Host, nil)
	for first := true; ; first = false {
		proof, err := proofs.sign(r.Method, r.URL, token, nonce)
		if err != nil {
			return nil, err
		}
		r = r.Clone(r.Context())
		r.Header.Set(proofScheme, proof)
		resp, err := t.RoundTripper.RoundTrip(r)
		if err != nil {
			return nil, err
		}
		next := proofs.nonce(r.URL.Host, resp)
		lacks := resp.StatusCode == http.StatusBadRequest || resp.StatusCode == http.StatusUnauthorized
		if !first || !lacks || next == nonce || r.GetBody == nil {
			return resp, nil
		}
		resp.Body.Close()
		if nonce = next; r.Body != nil {
			if r.Body, err = r.GetBody(); err != nil {
				return nil, err
			}
		}
	}
}

// CloseIdleConnections is called by [http.Client.CloseIdleConnections].
func (t prover) CloseIdleConnections() {
	if c, ok := t.RoundTripper.(interface{ CloseIdleConnections() }); ok {
		c.CloseIdleConnections()
	}
}

// authorization returns the Authorization header with a token.
func authorization(t *transport.Token) string {
	if strings.EqualFold(t.TokenType, proofScheme) {
		return proofScheme + " " + t.AccessToken
	}
	return "Bearer " + t.AccessToken
}
