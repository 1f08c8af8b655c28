package gateway

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/mark3labs/mcp-go/client/transport"
	"github.com/mark3labs/mcp-go/mcp"
)

// Login logs the user in to an HTTP server. open opens the page of its authorization server, which redirects the
// browser to a local port. The login is stored in the state directory.
func (g *Gateway) Login(ctx context.Context, name string, open func(address string) error) error {
	s, err := g.server(name)
	if err != nil {
		return err
	}
	e, err := s.expanded()
	switch {
	case err != nil:
	case s.Refused != "":
		err = errors.New(s.Refused)
	case e.Type != typeHTTP:
		err = errors.New("it is a stdio server: only HTTP servers have a login")
	case e.grantsItself():
		err = errors.New("it needs none: its entry has client credentials")
	case g.cfg.Dir == "":
		err = errors.New("there is no state directory to store it in: set --state-dir")
	}
	if err == nil {
		ctx, cancel := context.WithTimeout(ctx, loginTime)
		defer cancel()
		l := loginOf(&g.cfg, s, e, localPrincipal)
		if err = l.run(ctx, open); errors.Is(err, errNoLogin) { // initialize needs no login, but other requests may
			s.forgive()
			g.look(s, localPrincipal)
			err = l.run(ctx, open)
		}
	}
	if err != nil {
		return fmt.Errorf("the login to %s failed: %w", name, err)
	}
	s.forgive()
	g.look(s, localPrincipal)
	if now := s.status(0); now.State == StateFailed {
		return fmt.Errorf("you are logged in to %s, but it failed: %s", name, now.Reason)
	}
	return nil
}

// Logout deletes the tokens of the user for a server, and reports whether there were any. The registration is kept.
func (g *Gateway) Logout(name string) (found bool, err error) {
	s, err := g.server(name)
	if err != nil {
		return false, err
	}
	e, err := s.expanded()
	if err != nil {
		return false, err
	}
	l := loginOf(&g.cfg, s, e, localPrincipal)
	if _, err := os.Stat(l.file); err != nil {
		return false, nil
	}
	err = l.update(func(k *keptLogin) error {
		found, k.Token, k.Asked = k.Token != nil, nil, asked{}
		if e.grantsItself() {
			k.Client = nil // the credentials may go to another authorization server then
		}
		return nil
	})
	return found, err
}

var errNoLogin = errors.New("it answers without a login")

// run logs in. If the authorization server does not know the registration any more, run registers again.
func (l *login) run(ctx context.Context, open func(string) error) error {
	a, err := l.challenge(ctx)
	if err != nil {
		return err
	}
	if err = l.try(ctx, open, a); refusal(err) == "invalid_client" {
		err = l.try(ctx, open, a)
	}
	return err
}

// challengeParameter matches the used parameters of a challenge.
var challengeParameter = regexp.MustCompile(`(?i)\b(scope|resource_metadata|error)=(?:"([^"]*)"|([^\s",]+))`)

// challengeOf returns the parameters of the challenges in a header.
func challengeOf(header http.Header) map[string]string {
	all := map[string]string{}
	for _, value := range header.Values("WWW-Authenticate") {
		for _, m := range challengeParameter.FindAllStringSubmatch(value, -1) {
			all[strings.ToLower(m[1])] = cmp.Or(m[2], m[3])
		}
	}
	return all
}

// add adds what a challenge asks for.
func (a *asked) add(l *login, auth *authError) {
	c := challengeOf(auth.response.Header)
	a.addScopes(strings.Fields(c["scope"]))
	if m := c["resource_metadata"]; m != "" && sameOrigin(m, l.entry.URL) {
		a.Metadata = m
	}
}

func (a *asked) addScopes(scopes []string) {
	for _, scope := range scopes {
		if !slices.Contains(a.Scopes, scope) {
			a.Scopes = append(a.Scopes, scope)
		}
	}
}

// remember stores what the challenge to a request has asked for.
func (l *login) remember(auth *authError) {
	if l.file == "" {
		return
	}
	_ = l.update(func(k *keptLogin) error { // if this fails, the next challenge asks again
		if k.Token != nil {
			k.Asked.addScopes(strings.Fields(k.Token.Scope))
		}
		k.Asked.add(l, auth)
		return nil
	})
}

// challenge sends a request without credentials, and returns what the server asks for.
func (l *login) challenge(ctx context.Context) (a asked, err error) {
	none := func(context.Context) (http.Header, error) { return http.Header{}, nil }
	w := newHTTPWire(l.entry, none, nil)
	defer w.close()
	w.client.Transport = l.reach
	client := map[string]any{"name": "toolhost", "version": "0"}
	resp, err := w.post(ctx, message{ID: json.RawMessage("1"), Method: "initialize", Params: marshal(map[string]any{
		"protocolVersion": "2025-06-18", "capabilities": map[string]any{}, "clientInfo": client,
	})})
	auth, asks := errors.AsType[*authError](err)
	if err != nil && !asks { // a server of the modern era does not know initialize
		w.setVersion(mcp.ProtocolVersion20260728)
		resp, err = w.post(ctx, message{ID: json.RawMessage("2"), Method: string(mcp.MethodServerDiscover),
			Params: marshal(map[string]any{"_meta": map[string]any{
				mcp.MetaKeyProtocolVersion: mcp.ProtocolVersion20260728, mcp.MetaKeyClientInfo: client,
				mcp.MetaKeyClientCapabilities: map[string]any{},
			}})})
		auth, asks = errors.AsType[*authError](err)
	}
	known := l.read().Asked
	switch {
	case asks:
		a.add(l, auth)
	case err != nil:
		return a, err
	default:
		if resp.Body.Close(); known.Scopes == nil && known.Metadata == "" { // no other request was challenged either
			return a, errNoLogin
		}
	}
	a.addScopes(known.Scopes)
	a.Metadata = cmp.Or(a.Metadata, known.Metadata)
	if pinned := l.entry.scopes(); len(pinned) > 0 {
		a.Scopes = pinned
	}
	return a, nil
}

func sameOrigin(a, b string) bool {
	x, errX := url.Parse(a)
	y, errY := url.Parse(b)
	return errX == nil && errY == nil && x.Scheme == y.Scheme && strings.EqualFold(x.Host, y.Host)
}

// try logs in with the registered client, or registers one.
func (l *login) try(ctx context.Context, open func(string) error, a asked) error {
	found, err := l.metadata(ctx, l.handler(registration{Metadata: a.Metadata}, nil, nil))
	if err != nil {
		return err
	}
	if scopes := l.supported.Load(); len(a.Scopes) == 0 && scopes != nil {
		a.Scopes = *scopes
	}
	client := l.read().Client
	own, secret := l.ownClient()
	if client != nil && (client.Endpoint != found.TokenEndpoint || own != "" &&
		(own != client.ID || secret != client.Secret)) {
		client = nil
	}
	in, err := l.listen(&client)
	if err != nil {
		return err
	}
	defer in.Close()
	if client == nil {
		client = &registration{ID: own, Secret: secret,
			Redirect: fmt.Sprintf("http://localhost:%d%s", in.Addr().(*net.TCPAddr).Port,
				callbackPath), Endpoint: found.TokenEndpoint}
	}
	client.Metadata, client.Servers = a.Metadata, l.reach.addresses()
	tokens := transport.NewMemoryTokenStore()
	h := l.handler(*client, a.Scopes, tokens)
	if client.ID == "" {
		if err := h.RegisterClient(ctx, "toolhost"); err != nil {
			return fmt.Errorf(`cannot register as a client: %w: set "oauth": {"clientId": ID} in its entry if you have one`,
				withoutURL(err))
		}
		client.ID, client.Secret, client.Method = h.GetClientID(), h.GetClientSecret(), h.GetTokenEndpointAuthMethod()
	}
	if err := l.update(func(k *keptLogin) error { k.Client, k.Asked = client, a; return l.proofs.use(k) }); err != nil {
		return err
	}
	return l.authorize(ctx, open, h, tokens, in, found.Issuer)
}

// ownClient returns the registered client of the entry, or "". An ID that is the address of a page about the client
// is used if the authorization server reads such pages.
func (l *login) ownClient() (id, secret string) {
	own, about := l.entry.OAuth, l.facts.Load()
	if own == nil || strings.HasPrefix(own.ClientID, "https://") && (about == nil || !about.Pages) {
		return "", ""
	}
	return own.ClientID, own.ClientSecret
}

// names reports whether the authorization server identifies itself in its responses.
func (l *login) names() bool {
	about := l.facts.Load()
	return about != nil && about.Named
}

// checkMetadata refuses authorization servers without https, without PKCE with S256, or in networks that the server
// must not lead to. The browser connects to the authorization endpoint, so its addresses are checked here.
func (l *login) checkMetadata(ctx context.Context, m *transport.AuthServerMetadata) error {
	for _, address := range []string{m.AuthorizationEndpoint, m.TokenEndpoint, m.RegistrationEndpoint} {
		if address == "" {
			continue
		}
		u, err := url.Parse(address)
		if err != nil {
			return err
		}
		if u.Scheme != "https" && !l.reach.plain(u) {
			return fmt.Errorf("the authorization server is at %s: https is required", u.Host)
		}
		if err := l.reach.check(ctx, u); err != nil {
			return err
		}
	}
	if methods := m.CodeChallengeMethodsSupported; len(methods) > 0 && !slices.Contains(methods, "S256") {
		return fmt.Errorf("the authorization server supports the code challenges %s: S256 is required",
			strings.Join(methods, ", "))
	}
	return nil
}

// listen listens on the port of the redirect URI. If the registered port is in use, it drops the registration.
func (l *login) listen(client **registration) (net.Listener, error) {
	port := 0
	if l.entry.OAuth != nil {
		port = l.entry.OAuth.CallbackPort
	}
	if c := *client; c != nil {
		u, err := url.Parse(c.Redirect)
		if registered, _ := strconv.Atoi(u.Port()); err == nil && (port == 0 || port == registered) {
			if in, err := net.Listen("tcp", "127.0.0.1:"+u.Port()); err == nil {
				return in, nil
			}
		}
		*client = nil
	}
	in, err := net.Listen("tcp", "127.0.0.1:"+strconv.Itoa(port))
	if err != nil {
		return nil, fmt.Errorf("cannot listen for the redirect of the browser: %w", err)
	}
	return in, nil
}

// authorize lets the user log in, and stores the token.
func (l *login) authorize(ctx context.Context, open func(string) error, h *transport.OAuthHandler,
	tokens transport.TokenStore, in net.Listener, issuer string) error {
	state, err := transport.GenerateState()
	if err != nil {
		return err
	}
	verifier, err := transport.GenerateCodeVerifier()
	if err != nil {
		return err
	}
	address, err := h.GetAuthorizationURL(ctx, state, transport.GenerateCodeChallenge(verifier))
	if err != nil {
		return withoutURL(err)
	}
	answers := make(chan url.Values, 1)
	web := &http.Server{Handler: callback(state, issuer, l.names(), answers), ReadHeaderTimeout: connectTime,
		MaxHeaderBytes: maxHeader}
	go web.Serve(in)
	defer func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Second) // for the response to the browser
		defer cancel()
		_ = web.Shutdown(ctx)
		web.Close()
	}()
	if err := open(address); err != nil {
		return err
	}
	select {
	case <-ctx.Done():
		return fmt.Errorf("no answer came from the browser: %w", ctx.Err())
	case answer := <-answers:
		if answer.Get("code") == "" {
			return fmt.Errorf("the authorization server refused: %s",
				cleanText(cmp.Or(answer.Get("error_description"), answer.Get("error"), "it sent no code"),
					maxErrorBody))
		}
		return l.update(func(k *keptLogin) error {
			err := h.ProcessAuthorizationResponse(ctx, answer.Get("code"), state, verifier)
			if refusal(err) == "invalid_client" {
				k.Client = nil
			}
			if err != nil {
				return withoutURL(err)
			}
			k.Token, err = tokens.GetToken(ctx)
			return err
		})
	}
}

// callback handles the redirect with the right state. It refuses other requests, which do not end the login: those with
// another issuer, and those without one if named is set.
func callback(state, issuer string, named bool, answers chan<- url.Values) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		q := r.URL.Query()
		wrong := (named || q.Has("iss")) && q.Get("iss") != issuer
		if r.Method != http.MethodGet || r.URL.Path != callbackPath || q.Get("state") != state || wrong {
			http.Error(w, "this does not belong to the current login", http.StatusBadRequest)
			return
		}
		select {
		case answers <- q:
			fmt.Fprintln(w, "toolhost has the answer. You can close this page.")
		default:
			http.Error(w, "the answer was already received", http.StatusBadRequest)
		}
	})
}
