package gateway

import (
	"context"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/mark3labs/mcp-go/client/transport"

	"github.com/toolhost/toolhost/guard/privatefile"
)

// The grants for a server that no person logs in to, which MCP has as extensions: client credentials (RFC 6749,
// section 4.4; SEP-1046), and the token that a platform gives its workload (RFC 7523, section 2.1; SEP-1933).
const (
	grantClientCredentials = "client_credentials"
	grantAssertion         = "jwt-bearer" // in an entry
	grantAssertionType     = "urn:ietf:params:oauth:grant-type:jwt-bearer"

	// assertionLife is how long a signed assertion is valid (RFC 7523).
	assertionLife = time.Minute
	// maxKey limits the size of a file with a private key or an assertion, in bytes.
	maxKey = 64 << 10

	formType = "application/x-www-form-urlencoded"
)

// check returns an error if the entry cannot be used.
func (o *OAuthEntry) check(trust Trust) error {
	switch {
	case o == nil || o.Grant == "" && o.PrivateKeyFile == "" && o.AssertionFile == "":
		return nil
	case o.Grant != grantClientCredentials && o.Grant != grantAssertion:
		return fmt.Errorf(`its "oauth" has the "grant" %q: "client_credentials" or "jwt-bearer" is expected, for servers `+
			`that no person logs in to`, o.Grant)
	case o.Grant == grantAssertion && o.AssertionFile == "":
		return errors.New(`its "oauth" has the "grant" "jwt-bearer": set "assertionFile" to the file in which the platform ` +
			`keeps the token`)
	case o.Grant == grantAssertion && trust == Project:
		return errors.New(`its "oauth" has an "assertionFile", which is sent to the server's token endpoint: only entries ` +
			`of the user or the administrator may have one`)
	case o.Grant == grantAssertion:
		return nil
	case o.ClientID == "" || o.ClientSecret == "" && o.PrivateKeyFile == "":
		return errors.New(`its "oauth" has the "grant" "client_credentials": set "clientId", and "clientSecret" or ` +
			`"privateKeyFile"`)
	}
	return nil
}

// grantsItself reports whether a token is requested with the credentials of the entry, without a person.
func (e *Entry) grantsItself() bool { return e.OAuth != nil && e.OAuth.Grant != "" }

// credentials returns what the entry proves its identity by, for errors.
func (o *OAuthEntry) credentials() string {
	if o.Grant == grantAssertion {
		return "assertion"
	}
	return "client credentials"
}

// grant requests a token with the client credentials of the entry. They are sent to no other token endpoint than the
// first time: a server could name one that collects them.
func (l *login) grant(ctx context.Context, k *keptLogin) error {
	own := l.entry.OAuth
	h := l.handler(registration{ID: own.ClientID, Metadata: k.Asked.Metadata}, nil, nil)
	metadata, err := l.metadata(ctx, h)
	if err != nil {
		return err
	}
	if k.Client == nil || k.Client.ID != own.ClientID {
		k.Client = &registration{ID: own.ClientID, Endpoint: metadata.TokenEndpoint}
	}
	if k.Client.Endpoint != metadata.TokenEndpoint {
		return fmt.Errorf("its token endpoint is now %s, it was %s: if that is right, run `toolhost mcp logout %s`",
			metadata.TokenEndpoint, k.Client.Endpoint, l.entry.Name)
	}
	k.Token, err = l.clientToken(ctx, metadata, k.Asked.Scopes)
	return err
}

// clientToken requests a token with these scopes, or those of the entry.
func (l *login) clientToken(ctx context.Context, metadata *transport.AuthServerMetadata,
	scopes []string) (*transport.Token, error) {
	if pinned := l.entry.scopes(); len(pinned) > 0 {
		scopes = pinned
	}
	form := url.Values{"grant_type": {grantClientCredentials}, "resource": {l.resource()}}
	if len(scopes) > 0 {
		form.Set("scope", strings.Join(scopes, " "))
	}
	request, err := l.authenticated(ctx, metadata, form)
	if err != nil {
		return nil, err
	}
	resp, err := l.client().Do(request)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body) // limited by the transport
	if err != nil {
		return nil, err
	}
	return readToken(resp.StatusCode, text)
}

// readToken reads the response of a token endpoint.
func readToken(status int, text []byte) (*transport.Token, error) {
	var refused transport.OAuthError
	if json.Unmarshal(text, &refused) == nil && refused.ErrorCode != "" {
		return nil, refused
	}
	var token transport.Token
	if err := json.Unmarshal(text, &token); err != nil || token.AccessToken == "" || status/100 != 2 {
		return nil, fmt.Errorf("its authorization server answered with HTTP %d and no token", status)
	}
	if token.ExpiresIn > 0 {
		token.ExpiresAt = time.Now().Add(time.Duration(token.ExpiresIn) * time.Second)
	}
	token.RefreshToken = "" // the credentials of the entry are as good, and the grant gives none
	return &token, nil
}

// authenticated returns a token request in which the client proves its identity: by a signed assertion if the entry
// has a private key, else by its secret, in the header unless the authorization server supports only the form.
func (l *login) authenticated(ctx context.Context, m *transport.AuthServerMetadata,
	form url.Values) (*http.Request, error) {
	own, methods := l.entry.OAuth, m.TokenEndpointAuthMethodsSupported
	inHeader := own.PrivateKeyFile == "" && own.ClientSecret != "" &&
		(len(methods) == 0 || slices.Contains(methods, "client_secret_basic"))
	if own.Grant == grantAssertion {
		text, err := privatefile.Read(own.AssertionFile, maxKey)
		if err != nil {
			return nil, fmt.Errorf(`the "assertionFile" of its "oauth": %w`, err)
		}
		form.Set("grant_type", grantAssertionType)
		form.Set("assertion", strings.TrimSpace(string(text)))
	}
	switch {
	case own.PrivateKeyFile != "":
		assertion, err := assertion(own, m.Issuer)
		if err != nil {
			return nil, err
		}
		form.Set("client_assertion_type", "urn:ietf:params:oauth:client-assertion-type:jwt-bearer")
		form.Set("client_assertion", assertion)
	case !inHeader && own.ClientID != "":
		form.Set("client_id", own.ClientID)
		if own.ClientSecret != "" {
			form.Set("client_secret", own.ClientSecret)
		}
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, m.TokenEndpoint, strings.NewReader(form.Encode()))
	if err != nil {
		return nil, err
	}
	r.Header.Set("Content-Type", formType)
	r.Header.Set("Accept", "application/json")
	if inHeader {
		r.SetBasicAuth(url.QueryEscape(own.ClientID), url.QueryEscape(own.ClientSecret)) // RFC 6749, section 2.3.1
	}
	return r, nil
}

// assertion returns a token that proves to the authorization server that the client has the private key (RFC 7523,
// section 2.2).
func assertion(own *OAuthEntry, issuer string) (string, error) {
	key, algorithm, err := readKey(own.PrivateKeyFile)
	if err != nil {
		return "", fmt.Errorf(`the "privateKeyFile" of its "oauth": %w`, err)
	}
	signer, err := jose.NewSigner(jose.SigningKey{Algorithm: algorithm, Key: key},
		(&jose.SignerOptions{}).WithType("JWT"))
	if err != nil {
		return "", err
	}
	now := time.Now()
	signed, err := signer.Sign(marshal(map[string]any{
		"iss": own.ClientID, "sub": own.ClientID, "aud": issuer, "jti": rand.Text(), "iat": now.Unix(), "exp": now.Add(assertionLife).Unix(),
	}))
	if err != nil {
		return "", err
	}
	return signed.CompactSerialize()
}

// readKey reads a private key in PEM form (PKCS 8), and returns the algorithm that it signs with.
func readKey(file string) (any, jose.SignatureAlgorithm, error) {
	text, err := privatefile.Read(file, maxKey)
	if err != nil {
		return nil, "", err
	}
	block, _ := pem.Decode(text)
	if block == nil {
		return nil, "", fmt.Errorf("%s is not a PEM file", file)
	}
	key, err := x509.ParsePKCS8PrivateKey(block.Bytes)
	if err != nil {
		return nil, "", fmt.Errorf("%s has no private key in PKCS 8 form: convert it with openssl pkcs8 -topk8 -nocrypt",
			file)
	}
	switch k := key.(type) {
	case *rsa.PrivateKey:
		return k, jose.RS256, nil
	case ed25519.PrivateKey:
		return k, jose.EdDSA, nil
	case *ecdsa.PrivateKey:
		switch k.Curve.Params().BitSize {
		case 256:
			return k, jose.ES256, nil
		case 384:
			return k, jose.ES384, nil
		case 521:
			return k, jose.ES512, nil
		}
	}
	return nil, "", fmt.Errorf("%s has a key of a kind that signs no assertions: use RSA, Ed25519, P-256, P-384 or P-521",
		file)
}
