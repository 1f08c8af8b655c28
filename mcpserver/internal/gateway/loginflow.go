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
)

// Login logs the user in to a server over HTTP: open shows the page of its authorization server, which sends the browser back to a port
// of this machine. What is kept lies in the state directory, for the user alone.
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
		err = errors.New("it is a program, and only servers at a URL have a login")
	case g.cfg.Dir == "":
		err = errors.New("there is no state directory to keep it in: give --state-dir")
	}
	if err == nil {
		ctx, cancel := context.WithTimeout(ctx, loginTime)
		defer cancel()
		l := loginOf(g.cfg.Dir, s, e, localPrincipal)
		if err = l.run(ctx, open); errors.Is(err, errNoLogin) { // of its first request; others may want one
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

// Logout drops the tokens of the user for a server, and reports whether there were any. The registration stays.
func (g *Gateway) Logout(name string) (found bool, err error) {
	s, err := g.server(name)
	if err != nil {
		return false, err
	}
	e, err := s.expanded()
	if err != nil {
		return false, err
	}
	l := loginOf(g.cfg.Dir, s, e, localPrincipal)
	if _, err := os.Stat(l.file); err != nil {
		return false, nil
	}
	err = l.update(func(k *keptLogin) error {
		found, k.Token, k.Asked = k.Token != nil, nil, asked{}
		return nil
	})
	return found, err
}

var errNoLogin = errors.New("it answers without a login")

// run logs in. A registration that is not known any more is replaced once.
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

// challengeParameter is what a challenge names.
var challengeParameter = regexp.MustCompile(`(?i)\b(scope|resource_metadata|error)=(?:"([^"]*)"|([^\s",]+))`)

// challengeOf returns what the challenges of an answer name.
func challengeOf(header http.Header) map[string]string {
	all := map[string]string{}
	for _, value := range header.Values("WWW-Authenticate") {
		for _, m := range challengeParameter.FindAllStringSubmatch(value, -1) {
			all[strings.ToLower(m[1])] = cmp.Or(m[2], m[3])
		}
	}
	return all
}

// add takes in what a challenge asks for.
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

// remember keeps what a request has asked of the login.
func (l *login) remember(auth *authError) {
	if l.file == "" {
		return
	}
	_ = l.update(func(k *keptLogin) error { // what cannot be kept is asked again by the next request
		if k.Token != nil {
			k.Asked.addScopes(strings.Fields(k.Token.Scope))
		}
		k.Asked.add(l, auth)
		return nil
	})
}

// challenge asks the server what login it wants.
func (l *login) challenge(ctx context.Context) (a asked, err error) {
	none := func(context.Context) (http.Header, error) { return http.Header{}, nil }
	w := newHTTPWire(l.entry, none, nil)
	defer w.close()
	resp, err := w.post(ctx, message{ID: json.RawMessage("1"), Method: "initialize", Params: marshal(map[string]any{
		"protocolVersion": "2025-06-18", "capabilities": map[string]any{}, "clientInfo": map[string]any{"name": "toolhost", "version": "0"},
	})})
	known := l.read().Asked
	auth, asks := errors.AsType[*authError](err)
	switch {
	case asks:
		a.add(l, auth)
	case err != nil:
		return a, err
	default:
		if resp.Body.Close(); known.Scopes == nil && known.Metadata == "" { // no other request has asked for a login either
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

// try logs in as the client that is registered, or registers one.
func (l *login) try(ctx context.Context, open func(string) error, a asked) error {
	found, err := l.handler(registration{Metadata: a.Metadata}, nil, nil).GetServerMetadata(ctx)
	if err == nil {
		err = checkMetadata(found)
	}
	if err != nil {
		return withoutURL(err)
	}
	if scopes := l.supported.Load(); len(a.Scopes) == 0 && scopes != nil {
		a.Scopes = *scopes
	}
	client := l.read().Client
	own := ""
	if l.entry.OAuth != nil {
		own = l.entry.OAuth.ClientID
	}
	if client != nil && (client.Endpoint != found.TokenEndpoint || own != "" && own != client.ID) {
		client = nil
	}
	in, err := l.listen(&client)
	if err != nil {
		return err
	}
	defer in.Close()
	if client == nil {
		client = &registration{ID: own, Redirect: fmt.Sprintf("http://localhost:%d%s", in.Addr().(*net.TCPAddr).Port, callbackPath), Endpoint: found.TokenEndpoint}
	}
	client.Metadata = a.Metadata
	tokens := transport.NewMemoryTokenStore()
	h := l.handler(*client, a.Scopes, tokens)
	if client.ID == "" {
		if err := h.RegisterClient(ctx, "toolhost"); err != nil {
			return fmt.Errorf(`this host could not be registered as a client: %w: give "oauth": {"clientId": ID} in its entry if you have one`, withoutURL(err))
		}
		client.ID, client.Secret, client.Method = h.GetClientID(), h.GetClientSecret(), h.GetTokenEndpointAuthMethod()
	}
	if err := l.update(func(k *keptLogin) error { k.Client, k.Asked = client, a; return nil }); err != nil {
		return err
	}
	return l.authorize(ctx, open, h, tokens, in, found.Issuer)
}

// checkMetadata refuses authorization servers that would let others read or use what is sent.
func checkMetadata(m *transport.AuthServerMetadata) error {
	for _, address := range []string{m.AuthorizationEndpoint, m.TokenEndpoint, m.RegistrationEndpoint} {
		u, err := url.Parse(address)
		if err != nil {
			return err
		}
		ip := net.ParseIP(u.Hostname())
		if address != "" && u.Scheme != "https" && u.Hostname() != "localhost" && !ip.IsLoopback() {
			return fmt.Errorf("the authorization server is at %s: https is required", u.Host)
		}
	}
	if methods := m.CodeChallengeMethodsSupported; len(methods) > 0 && !slices.Contains(methods, "S256") {
		return fmt.Errorf("the authorization server takes the code challenges %s: S256 is required", strings.Join(methods, ", "))
	}
	return nil
}

// listen listens at the port that the browser is sent to. A client that was registered for one that is taken now is of no use.
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
		return nil, fmt.Errorf("the port of the answer cannot be opened: %w", err)
	}
	return in, nil
}

// authorize has the user log in, and keeps the token.
func (l *login) authorize(ctx context.Context, open func(string) error, h *transport.OAuthHandler, tokens transport.TokenStore, in net.Listener, issuer string) error {
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
	web := &http.Server{Handler: callback(state, issuer, l.named.Load(), answers), ReadHeaderTimeout: connectTime, MaxHeaderBytes: maxHeader}
	go web.Serve(in)
	defer func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Second) // the browser gets its page
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
			return fmt.Errorf("the authorization server refused: %s", cleanText(cmp.Or(answer.Get("error_description"), answer.Get("error"), "it sent no code"), maxErrorBody))
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

// callback takes the answer to the question of a state. Other requests are refused, and do not end the login: one that names another
// authorization server, or none where named says that this one names itself.
func callback(state, issuer string, named bool, answers chan<- url.Values) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		q := r.URL.Query()
		wrong := (named || q.Has("iss")) && q.Get("iss") != issuer
		if r.Method != http.MethodGet || r.URL.Path != callbackPath || q.Get("state") != state || wrong {
			http.Error(w, "this is no answer to the login that is open", http.StatusBadRequest)
			return
		}
		select {
		case answers <- q:
			fmt.Fprintln(w, "toolhost has the answer. You can close this page.")
		default:
			http.Error(w, "the answer has come already", http.StatusBadRequest)
		}
	})
}
