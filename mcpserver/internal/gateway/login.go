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
	loginTime    = 5 * time.Minute // for the user to log in
	maxLogin     = 1 << 20         // bytes of the file, and of a response of an authorization server
	callbackPath = "/callback"
)

// A login is the OAuth login of a caller to an HTTP server. It has its own file, and is bound to the URL of the server.
type login struct {
	srv   *server
	entry *Entry // expanded
	file  string
	// named means that the authorization server identifies itself in its responses (RFC 9207).
	named atomic.Bool
	// supported are the scopes_supported of the server.
	supported atomic.Pointer[[]string]
}

// A keptLogin is the content of the file of a login. The registration is kept after the token is dropped.
type keptLogin struct {
	Token  *transport.Token `json:"token,omitempty"`
	Client *registration    `json:"client,omitempty"`
	Asked  asked            `json:"asked,omitzero"`
}

// asked is what the challenges of the server have asked for so far.
type asked struct {
	Scopes   []string `json:"scopes,omitempty"`
	Metadata string   `json:"metadata,omitempty"` // see registration
}

// A registration is the registered OAuth client.
type registration struct {
	ID       string `json:"id"`
	Secret   string `json:"secret,omitempty"`
	Method   string `json:"method,omitempty"`
	Redirect string `json:"redirect"`           // redirect URI
	Endpoint string `json:"endpoint"`           // token endpoint; the registration is used with no other
	Metadata string `json:"metadata,omitempty"` // URL of the protected resource metadata; "": the default
}

// loginOf returns the login of a caller to a server, stored in dir. Without dir there are no logins.
func loginOf(dir string, s *server, e *Entry, principal string) *login {
	l := &login{srv: s, entry: e}
	if dir != "" {
		sum := sha256.Sum256([]byte(principal + "\x00" + e.URL))
		l.file = filepath.Join(dir, e.Name+"-"+hex.EncodeToString(sum[:8])+".login")
	}
	return l
}

// loginState returns the state of the login of the local user, for [Status].
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

// read reads the file. If that fails, the login is empty.
func (l *login) read() (k keptLogin) {
	text, err := privatefile.Read(l.file, maxLogin)
	if err != nil || json.Unmarshal(text, &k) != nil {
		return keptLogin{}
	}
	return k
}

// update applies change under the lock of the file. It writes the file even if change fails.
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

// header returns the Authorization header of the login, or "". It renews an expired token.
func (l *login) header(ctx context.Context) (string, error) {
	if l.file == "" {
		return "", nil
	}
	k := l.read()
	if k.Token != nil && k.Token.IsExpired() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), connectTime) // the new refresh token must not be lost
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

// renew renews an expired token. The login or the registration is dropped only if the authorization server refuses it.
func (l *login) renew(ctx context.Context, k *keptLogin) error {
	if k.Token == nil || !k.Token.IsExpired() { // another process has renewed it
		return nil
	}
	if k.Token.RefreshToken == "" || k.Client == nil {
		k.Token = nil
		return nil
	}
	h := l.handler(*k.Client, nil, nil)
	metadata, err := h.GetServerMetadata(ctx)
	if err == nil && metadata.TokenEndpoint != k.Client.Endpoint {
		err = fmt.Errorf("its token endpoint is now %s, it was %s: log in again", metadata.TokenEndpoint, k.Client.Endpoint)
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
		return fmt.Errorf("cannot renew its expired login: %w", withoutURL(err))
	}
	k.Token = token
	return nil
}

// refusal returns the error code of an authorization server, or "" for other errors.
func refusal(err error) string {
	refused, _ := errors.AsType[transport.OAuthError](err)
	return refused.ErrorCode
}

// refused records that the server refused the credentials of a request. It reports whether the request should be repeated
// with other ones.
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

// handler returns a client for the authorization server of the server.
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
	base, _ := url.Parse(l.entry.URL) // expanded has checked it
	base.RawQuery, base.Fragment, base.User = "", "", nil
	h.SetBaseURL(base.String())
	return h
}

// protectedMetadata is the path of the protected resource metadata. The path of the server may follow (RFC 9728).
const protectedMetadata = "/.well-known/oauth-protected-resource"

// An oauthTransport limits the responses of authorization servers. It also sets the application type, tries the metadata
// path without the path of the server, and reads metadata that the library ignores.
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
		// In the metadata of the server itself, which has no issuer:
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

// registerNative sets the application type of a registration to "native", as MCP requires (SEP-837). An authorization server
// may refuse loopback redirects of other types.
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
