package gateway

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"net/http"
	"net/netip"
	"net/url"
	"path/filepath"
	"strings"
	"sync/atomic"
	"time"

	"github.com/mark3labs/mcp-go/client/transport"

	"github.com/toolhost/toolhost/guard/privatefile"
	"github.com/toolhost/toolhost/guard/statedir"
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
	reach *reach
	// facts are the facts about the authorization server; nil before its metadata was read.
	facts atomic.Pointer[facts]
	// fault is what was wrong with the metadata that was read last; nil if it was usable.
	fault  atomic.Pointer[string]
	proofs proofs
	// supported are the scopes_supported of the server.
	supported atomic.Pointer[[]string]
}

// A keptLogin is the content of the file of a login. The registration is kept after the token is dropped.
type keptLogin struct {
	Token  *transport.Token `json:"token,omitempty"`
	Client *registration    `json:"client,omitempty"`
	Asked  asked            `json:"asked,omitzero"`
	Key    []byte           `json:"key,omitempty"` // see proofs; PKCS 8
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
	// Servers are the addresses of the server at the login, see [reach].
	Servers []netip.Addr `json:"servers,omitempty"`
}

// loginOf returns the login of a caller to a server, stored in the directory of the configuration. Without one there
// are no logins.
func loginOf(cfg *Config, s *server, e *Entry, principal string) *login {
	l := &login{srv: s, entry: e, reach: newReach(e, cfg.Web)}
	if dir := cfg.Dir; dir != "" {
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
	switch t := loginOf(&Config{Dir: filepath.Dir(s.store.file)}, s, e, localPrincipal).read().Token; {
	case t == nil, e.grantsItself():
		return ""
	case t.IsExpired() && t.RefreshToken == "":
		return "login expired"
	}
	return "logged in"
}

// read reads the file. If that fails, the login is empty.
func (l *login) read() (k keptLogin) {
	if statedir.Load(l.file, maxLogin, &k) != nil {
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
		if string(marshal(k)) != was {
			err = errors.Join(err, statedir.Save(l.file, k))
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
	header := authorization(k.Token)
	if strings.HasPrefix(header, proofScheme) {
		return header, l.proofs.use(&k)
	}
	return header, nil
}

// renew renews an expired token. The login or the registration is dropped only if the authorization server refuses it.
func (l *login) renew(ctx context.Context, k *keptLogin) error {
	if k.Token == nil || !k.Token.IsExpired() { // another process has renewed it
		return nil
	}
	if err := l.proofs.use(k); err != nil {
		return err
	}
	if l.entry.grantsItself() {
		err := l.grant(ctx, k)
		if err != nil {
			return fmt.Errorf("cannot get a token with the %s of its entry: %w", l.entry.OAuth.credentials(),
				withoutURL(err))
		}
		return nil
	}
	if k.Token.RefreshToken == "" || k.Client == nil {
		k.Token = nil
		return nil
	}
	l.reach.add(k.Client.Servers...)
	h := l.handler(*k.Client, nil, nil)
	metadata, err := l.metadata(ctx, h)
	if err == nil && metadata.TokenEndpoint != k.Client.Endpoint {
		err = fmt.Errorf("its token endpoint is now %s, it was %s: log in again", metadata.TokenEndpoint,
			k.Client.Endpoint)
	}
	if err == nil { // the refresh token may be used up: if the next one cannot be stored, the login is lost
		err = statedir.Save(l.file, *k)
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

// refused records that the server refused the credentials of a request. It reports whether the request should be
// repeated with other ones.
func (l *login) refused(auth *authError) (again bool) {
	if l.file == "" || auth.status != http.StatusUnauthorized {
		return false
	}
	_ = l.update(func(k *keptLogin) error {
		sent := auth.response.Request.Header.Get("Authorization")
		switch {
		case l.entry.grantsItself():
			if again = true; k.Token == nil || authorization(k.Token) == sent {
				k.Asked.add(l, auth)
				k.Token = &transport.Token{ExpiresAt: time.Now().Add(-time.Second)} // the next request gets one
			}
		case k.Token == nil:
		case authorization(k.Token) != sent:
			again = true // another process has renewed it
		case k.Token.RefreshToken != "":
			k.Token.ExpiresAt, again = time.Now().Add(-time.Second), true
		}
		return nil
	})
	return again
}

// client returns a client for requests to the authorization server.
func (l *login) client() *http.Client {
	client := &http.Client{Timeout: connectTime, Transport: oauthTransport{prover{l.reach, l}, l}}
	client.CheckRedirect = func(r *http.Request, via []*http.Request) error {
		downgrade := r.URL.Scheme != via[0].URL.Scheme && r.URL.Scheme != "https"
		if len(via) > maxRedirects || r.URL.Host != via[0].URL.Host || downgrade {
			return fmt.Errorf("the authorization server redirects to %s", r.URL.Host)
		}
		return nil
	}
	return client
}

// resource returns the URL of the server as authorization servers name it (RFC 8707).
func (l *login) resource() string {
	base, _ := url.Parse(l.entry.URL) // expanded has checked it
	base.RawQuery, base.Fragment, base.User = "", "", nil
	return base.String()
}

// handler returns the library's handler for the authorization server of the server.
func (l *login) handler(c registration, scopes []string, tokens transport.TokenStore) *transport.OAuthHandler {
	h := transport.NewOAuthHandler(transport.OAuthConfig{
		ClientID: c.ID, ClientSecret: c.Secret, TokenEndpointAuthMethod: c.Method, RedirectURI: c.Redirect,
		Scopes: scopes, PKCEEnabled: true,
		ProtectedResourceMetadataURL: c.Metadata, HTTPClient: l.client(), TokenStore: tokens,
	})
	h.SetBaseURL(l.resource())
	return h
}
