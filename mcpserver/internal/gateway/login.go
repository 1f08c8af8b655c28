package gateway

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"path/filepath"
	"strings"
	"sync/atomic"
	"time"

	"github.com/mark3labs/mcp-go/client/transport"

	"github.com/toolhost/toolhost/guard/privatefile"
)

// Limits of logins.
const (
	loginTime    = 5 * time.Minute // for a person to log in
	maxLogin     = 1 << 20         // bytes of the file, and of an answer of an authorization server
	callbackPath = "/callback"
)

// A login is what is kept of the login of a caller to an HTTP server, in a file of its own. It is bound to the address of the server.
type login struct {
	srv   *server
	entry *Entry // its variables are replaced
	file  string
	// named says that the authorization server names itself in its answer to a login (RFC 9207).
	named atomic.Bool
	// supported are the scopes that the server names for clients that were not told which ones they need.
	supported atomic.Pointer[[]string]
}

// A keptLogin is the content of the file of a login. The registration outlives the token.
type keptLogin struct {
	Token  *transport.Token `json:"token,omitempty"`
	Client *registration    `json:"client,omitempty"`
	Asked  asked            `json:"asked,omitzero"`
}

// asked is what the server and its calls have asked of a login so far.
type asked struct {
	Scopes   []string `json:"scopes,omitempty"`
	Metadata string   `json:"metadata,omitempty"` // see registration
}

// A registration is the client as which a host logs in.
type registration struct {
	ID       string `json:"id"`
	Secret   string `json:"secret,omitempty"`
	Method   string `json:"method,omitempty"`
	Redirect string `json:"redirect"`           // where the browser brings the answer
	Endpoint string `json:"endpoint"`           // that gives tokens: nothing of this is sent to another
	Metadata string `json:"metadata,omitempty"` // where the server names its authorization server; "": at the usual place
}

// loginOf returns the login of a caller to a server, which dir keeps; "": there is none.
func loginOf(dir string, s *server, e *Entry, principal string) *login {
	l := &login{srv: s, entry: e}
	if dir != "" {
		sum := sha256.Sum256([]byte(principal + "\x00" + e.URL))
		l.file = filepath.Join(dir, e.Name+"-"+hex.EncodeToString(sum[:8])+".login")
	}
	return l
}

// loginState tells how the login of the local user is, see [Status].
func (s *server) loginState() string {
	e, err := s.expanded()
	if err != nil || e.Type != typeHTTP || s.store.file == "" {
		return ""
	}
	switch t := loginOf(filepath.Dir(s.store.file), s, e, localPrincipal).read().Token; {
	case t == nil:
		return ""
	case t.IsExpired() && t.RefreshToken == "":
		return "login expired"
	}
	return "logged in"
}

// read returns what is kept. A file that cannot be read counts as none.
func (l *login) read() (k keptLogin) {
	text, err := privatefile.Read(l.file, maxLogin)
	if err != nil || json.Unmarshal(text, &k) != nil {
		return keptLogin{}
	}
	return k
}

// update changes what is kept under the lock of its file, also when change fails.
func (l *login) update(change func(*keptLogin) error) error {
	l.srv.login.Lock()
	defer l.srv.login.Unlock()
	if err := privatefile.MakeDir(filepath.Dir(l.file)); err != nil {
		return err
	}
	return privatefile.Locked(l.file+".lock", func() error {
		k := l.read()
		was := string(marshal(k))
		err := change(&k)
		if text := marshal(k); string(text) != was {
			err = errors.Join(err, privatefile.Replace(l.file, text))
		}
		return err
	})
}

// header returns the Authorization header of the login, which is renewed if it has expired; "": there is none.
func (l *login) header(ctx context.Context) (string, error) {
	if l.file == "" {
		return "", nil
	}
	k := l.read()
	if k.Token != nil && k.Token.IsExpired() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), connectTime) // a spent refresh token must not be lost
		defer cancel()
		err := l.update(func(now *keptLogin) error {
			err := l.renew(ctx, now)
			k = *now
			return err
		})
		if err != nil {
			return "", err
		}
	}
	if k.Token == nil {
		return "", nil
	}
	return "Bearer " + k.Token.AccessToken, nil
}

// renew renews an expired token. Only the word of the authorization server ends the login or the registration.
func (l *login) renew(ctx context.Context, k *keptLogin) error {
	if k.Token == nil || !k.Token.IsExpired() { // another process was faster
		return nil
	}
	if k.Token.RefreshToken == "" || k.Client == nil {
		k.Token = nil
		return nil
	}
	h := l.handler(*k.Client, nil, nil)
	metadata, err := h.GetServerMetadata(ctx)
	if err == nil && metadata.TokenEndpoint != k.Client.Endpoint {
		err = fmt.Errorf("its tokens are now given at %s, no longer at %s: log in again", metadata.TokenEndpoint, k.Client.Endpoint)
	}
	var token *transport.Token
	if err == nil {
		token, err = h.RefreshToken(ctx, k.Token.RefreshToken)
	}
	switch refusal(err) {
	case "invalid_grant":
		k.Token = nil
		return nil
	case "invalid_client":
		k.Token, k.Client = nil, nil
		return nil
	}
	if err != nil {
		return fmt.Errorf("its login has expired and could not be renewed now: %w", withoutURL(err))
	}
	k.Token = token
	return nil
}

// refusal is the code with which an authorization server refused; "": it did not.
func refusal(err error) string {
	refused, _ := errors.AsType[transport.OAuthError](err)
	return refused.ErrorCode
}

// refused notes that the server did not take the credentials of a request, and reports whether there may be better ones.
func (l *login) refused(auth *authError) (again bool) {
	if l.file == "" || auth.status != http.StatusUnauthorized {
		return false
	}
	_ = l.update(func(k *keptLogin) error {
		switch {
		case k.Token == nil:
		case "Bearer "+k.Token.AccessToken != auth.response.Request.Header.Get("Authorization"):
			again = true // another process has renewed it
		case k.Token.RefreshToken != "":
			k.Token.ExpiresAt, again = time.Now().Add(-time.Second), true
		}
		return nil
	})
	return again
}

// handler speaks to the authorization server of the server.
func (l *login) handler(c registration, scopes []string, tokens transport.TokenStore) *transport.OAuthHandler {
	client := httpClient(l.entry)
	client.Timeout, client.Transport = connectTime, oauthTransport{client.Transport, l}
	client.CheckRedirect = func(r *http.Request, via []*http.Request) error {
		if len(via) > maxRedirects || r.URL.Host != via[0].URL.Host || r.URL.Scheme != via[0].URL.Scheme {
			return fmt.Errorf("the authorization server redirects to %s", r.URL.Host)
		}
		return nil
	}
	h := transport.NewOAuthHandler(transport.OAuthConfig{
		ClientID: c.ID, ClientSecret: c.Secret, TokenEndpointAuthMethod: c.Method, RedirectURI: c.Redirect, Scopes: scopes, PKCEEnabled: true,
		ProtectedResourceMetadataURL: c.Metadata, HTTPClient: client, TokenStore: tokens,
	})
	base, _ := url.Parse(l.entry.URL) // checked when it was expanded
	base.RawQuery, base.Fragment, base.User = "", "", nil
	h.SetBaseURL(base.String())
	return h
}

// protectedMetadata is where a server says what authorization server it has: with its own path after it, or without (RFC 9728).
const protectedMetadata = "/.well-known/oauth-protected-resource"

// An oauthTransport bounds the answers of authorization servers, and does what the library does not.
type oauthTransport struct {
	http.RoundTripper
	login *login
}

// RoundTrip implements [http.RoundTripper].
func (t oauthTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Method == http.MethodPost && r.Header.Get("Content-Type") == "application/json" {
		r = r.Clone(r.Context())
		if err := registerNative(r); err != nil {
			return nil, err
		}
	}
	resp, err := t.RoundTripper.RoundTrip(r)
	if err == nil && resp.StatusCode == http.StatusNotFound && strings.HasPrefix(r.URL.Path, protectedMetadata+"/") {
		resp.Body.Close()
		r = r.Clone(r.Context())
		r.URL.Path, r.URL.RawPath = protectedMetadata, ""
		resp, err = t.RoundTripper.RoundTrip(r)
	}
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(io.LimitReader(resp.Body, maxLogin))
	if err != nil {
		return nil, err
	}
	var metadata struct {
		Issuer string `json:"issuer"`
		Named  bool   `json:"authorization_response_iss_parameter_supported"`
		// Of the server itself, which has no issuer:
		Resource string
		Scopes   []string `json:"scopes_supported"`
	}
	if json.Unmarshal(text, &metadata) == nil && metadata.Issuer != "" {
		t.login.named.Store(metadata.Named)
	} else if metadata.Resource != "" {
		t.login.supported.Store(&metadata.Scopes)
	}
	resp.Body = io.NopCloser(bytes.NewReader(text))
	return resp, nil
}

// registerNative says in a registration that the client is an application of this machine, as MCP requires (SEP-837): an authorization
// server may refuse the redirect to this machine to others.
func registerNative(r *http.Request) error {
	defer r.Body.Close()
	var body map[string]any
	if err := json.NewDecoder(r.Body).Decode(&body); err != nil {
		return err
	}
	body["application_type"] = "native"
	text := marshal(body)
	r.Body, r.ContentLength, r.GetBody = io.NopCloser(bytes.NewReader(text)), int64(len(text)), nil
	return nil
}
