package gateway

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/mark3labs/mcp-go/client/transport"
	"github.com/mark3labs/mcp-go/mcp"

	"github.com/toolhost/toolhost/guard/hostprogram"
)

// Limits of HTTP.
const (
	maxHeader    = 64 << 10 // bytes of the headers of an answer
	maxRedirects = 3
	maxErrorBody = 300 // characters of a response that is not a message
)

// errSession means that the server does not know the session any more. A call that gets it has not run.
var errSession = errors.New("its session has ended")

// An authError means that a server requires a login, or one with more scopes.
type authError struct {
	server   string
	status   int
	response *http.Response // its body is closed
	pinned   bool           // the entry sets the scopes of a login
}

func (e *authError) Error() string {
	if c := challengeOf(e.response.Header); e.lacksScope() {
		first := ""
		if e.pinned {
			first = `add them to the "scopes" of "oauth" in its entry, then `
		}
		return fmt.Sprintf("your login lacks a scope (HTTP %d, scopes: %s): %srun `toolhost mcp login %s` to request it",
			e.status,
			cmp.Or(cleanText(c["scope"], maxLine), "not named"), first, e.server)
	}
	return fmt.Sprintf("it requires a login (HTTP %d): run `toolhost mcp login %s`", e.status, e.server)
}

// lacksScope reports whether the login lacks a scope.
func (e *authError) lacksScope() bool {
	return e.status == http.StatusForbidden && challengeOf(e.response.Header)["error"] == "insufficient_scope"
}

// An httpWire is a wire over streamable HTTP.
type httpWire struct {
	server  string
	url     string
	client  *http.Client
	headers func(ctx context.Context) (http.Header, error)
	to      listener
	pinned  bool // see authError

	noise    noise
	expected sync.Map // id → func(message), which takes a response that arrives on another stream

	mu      sync.Mutex
	next    int64
	version string
	session string
	gone    chan struct{}
	once    sync.Once
	reason  error
	ctx     context.Context
	cancel  context.CancelFunc
}

// newHTTPWire returns a wire to the server of an expanded entry. headers are added to each request.
func newHTTPWire(e *Entry, headers func(ctx context.Context) (http.Header, error), to listener) *httpWire {
	w := &httpWire{server: e.Name, url: e.URL, client: httpClient(e), headers: headers, to: to,
		gone: make(chan struct{}), pinned: len(e.scopes()) > 0}
	w.ctx, w.cancel = context.WithCancel(context.Background())
	return w
}

// httpClient returns a client for the host of the entry. It follows redirects within the host only, and refuses
// addresses that permittedAddress refuses.
func httpClient(e *Entry) *http.Client {
	own, _ := url.Parse(e.URL) // expanded has checked it
	proxy, _ := http.ProxyFromEnvironment(&http.Request{URL: own})
	dialer := &net.Dialer{Timeout: connectTime, Control: func(_, address string, _ syscall.RawConn) error {
		if proxy != nil { // the proxy resolves the name
			return nil
		}
		return permittedAddress(address, own.Hostname(), e.Trust)
	}}
	return &http.Client{
		Transport: &http.Transport{
			Proxy: http.ProxyFromEnvironment, DialContext: dialer.DialContext, ForceAttemptHTTP2: true,
			MaxIdleConnsPerHost:    4,
			MaxResponseHeaderBytes: maxHeader, IdleConnTimeout: time.Minute, TLSHandshakeTimeout: connectTime,
		},
		CheckRedirect: func(r *http.Request, via []*http.Request) error {
			if len(via) > maxRedirects {
				return fmt.Errorf("it redirects more than %d times", maxRedirects)
			}
			if r.URL.Host != own.Host || r.URL.Scheme != own.Scheme {
				return fmt.Errorf("it redirects to %s://%s, and only %s://%s is configured", r.URL.Scheme, r.URL.Host,
					own.Scheme, own.Host)
			}
			return nil
		},
	}
}

// permittedAddress refuses names that resolve to loopback or link-local addresses, or for entries of a project, to
// private networks. A URL that contains such an address itself is allowed.
func permittedAddress(address, host string, trust Trust) error {
	addr, err := netip.ParseAddrPort(address)
	if err != nil {
		return err
	}
	ip := addr.Addr().Unmap()
	named, err := netip.ParseAddr(host)
	if err == nil && named.Unmap() == ip || host == "localhost" && ip.IsLoopback() {
		return nil
	}
	if ip.IsLoopback() || ip.IsLinkLocalUnicast() || ip.IsUnspecified() || ip.IsMulticast() || trust == Project &&
		ip.IsPrivate() {
		return fmt.Errorf("%s resolves to %s, which is a local address: use the address in the URL to allow it", host,
			ip)
	}
	return nil
}

func (w *httpWire) setVersion(version string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.version = version
}

func (w *httpWire) modern() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return mcp.IsModernProtocol(w.version)
}

// post sends a message.
func (w *httpWire) post(ctx context.Context, m message) (*http.Response, error) {
	m.JSONRPC = "2.0"
	text, err := json.Marshal(m)
	if err != nil {
		return nil, err
	}
	return w.do(ctx, http.MethodPost, text, m)
}

func (w *httpWire) do(ctx context.Context, method string, body []byte, m message) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, method, w.url, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	given, err := w.headers(ctx)
	if err != nil {
		return nil, err
	}
	for name, values := range given {
		req.Header[name] = values
	}
	w.mu.Lock()
	version, session := w.version, w.session
	w.mu.Unlock()
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "application/json, text/event-stream")
	if version != "" {
		req.Header.Set(transport.HeaderKeyProtocolVersion, version)
	}
	for name, value := range mcp.StandardHeaders(version, mcp.MCPMethod(m.Method), m.Params) {
		req.Header.Set(name, value)
	}
	if id, ok := ctx.Value(resumeKey{}).(string); ok {
		req.Header.Set("Last-Event-ID", id)
	}
	for name, value := range paramHeaders(ctx, version, m.Params) {
		req.Header.Set(name, value)
	}
	if session != "" && !mcp.IsModernProtocol(version) {
		req.Header.Set(transport.HeaderKeySessionID, session)
	}
	resp, err := w.client.Do(req)
	if err != nil {
		return nil, withoutURL(err)
	}
	return resp, w.status(resp, session)
}

// withoutURL removes the URL from an error, because it may contain a key.
func withoutURL(err error) error {
	if u, ok := errors.AsType[*url.Error](err); ok {
		return u.Err
	}
	return err
}

// status returns an error for a response with an error status, and closes it.
func (w *httpWire) status(resp *http.Response, session string) error {
	switch code := resp.StatusCode; {
	case code < 300:
		return nil
	case code == http.StatusUnauthorized, code == http.StatusForbidden:
		resp.Body.Close()
		return &authError{w.server, code, resp, w.pinned}
	case code == http.StatusNotFound && session != "":
		resp.Body.Close()
		w.end(errSession)
		return errSession
	}
	defer resp.Body.Close()
	text, _ := io.ReadAll(io.LimitReader(resp.Body, maxSchema))
	var m message
	if json.Unmarshal(text, &m) == nil && m.Error != nil && m.Error.Code != 0 {
		return m.Error
	}
	return fmt.Errorf("HTTP %d: %s", resp.StatusCode, cleanText(strings.TrimSpace(string(text)), maxErrorBody))
}

func (w *httpWire) request(ctx context.Context, method string, params json.RawMessage) (json.RawMessage, error) {
	w.mu.Lock()
	w.next++
	id := w.next
	w.mu.Unlock()
	raw, _ := json.Marshal(id)
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer context.AfterFunc(w.ctx, func() { cancel(errStopped) })()
	elsewhere := w.expect(id, cancel)
	resp, err := w.post(ctx, message{ID: raw, Method: method, Params: params})
	if err == nil {
		defer resp.Body.Close()
		if s := resp.Header.Get(transport.HeaderKeySessionID); s != "" && method == "initialize" {
			w.mu.Lock()
			w.session = s
			w.mu.Unlock()
		}
		var m message
		if m, err = w.answer(ctx, resp, id); err == nil {
			return m.outcome()
		}
	}
	if m := elsewhere(); m != nil {
		return m.outcome()
	}
	if ctx.Err() != nil {
		if !w.modern() && method != "initialize" {
			go w.notify("notifications/cancelled",
				marshal(map[string]any{"requestId": id, "reason": "the call was cancelled"}))
		}
		return nil, context.Cause(ctx)
	}
	return nil, err
}

// answer reads the response to the request with an id, and handles the messages before it. A stream that ends too
// early is resumed after its last event, if that has an id.
func (w *httpWire) answer(ctx context.Context, resp *http.Response, id int64) (message, error) {
	kind, _, _ := mime.ParseMediaType(resp.Header.Get("Content-Type"))
	var m message
	switch kind {
	case "application/json":
		text, err := io.ReadAll(io.LimitReader(resp.Body, maxMessage+1))
		if err != nil {
			return m, err
		}
		if len(text) > maxMessage {
			return m, fmt.Errorf("its answer has more than %d bytes", maxMessage)
		}
		all, _ := messagesIn(text)
		for i := range all {
			if all[i].answers(id) || len(all) == 1 && all[i].Method == "" {
				return all[i], nil
			}
			w.handle(all[i])
		}
		return m, &notMessage{text}
	case "text/event-stream":
		at := position{retry: retryUsual}
		found, err := w.find(resp.Body, &at, id)
		for found == nil && at.id != "" && !w.modern() && ctx.Err() == nil {
			if resp, err = w.resume(ctx, at); err != nil {
				return m, err
			}
			found, err = w.find(resp.Body, &at, id)
			resp.Body.Close()
		}
		if found != nil {
			return *found, nil
		}
		if err == nil || errors.Is(err, io.ErrUnexpectedEOF) {
			err = &errDied{"it ended its answer before the result"}
		}
		return m, err
	}
	return m, fmt.Errorf("its answer has the type %q: application/json or text/event-stream is expected%s",
		cleanText(kind, maxLine), beginning(resp.Body))
}

// beginning returns, for an error, the first characters of a body that arrive within probeTime.
func beginning(body io.ReadCloser) string {
	defer time.AfterFunc(probeTime, func() { body.Close() }).Stop()
	text, _ := io.ReadAll(io.LimitReader(body, 4*maxErrorBody))
	if shown := cleanText(strings.TrimSpace(string(text)), maxErrorBody); shown != "" {
		return ". It begins with: " + shown
	}
	return ""
}

// unexpected returns what the server sent besides messages, or "".
func (w *httpWire) unexpected() string { return w.noise.text() }

// words returns the same text in the form for an error message.
func (w *httpWire) words() string {
	if odd := w.unexpected(); odd != "" {
		return ". Where only messages are expected, it sent:\n" + odd
	}
	return ""
}

func (w *httpWire) notify(method string, params json.RawMessage) {
	ctx, cancel := context.WithTimeout(w.ctx, connectTime)
	defer cancel()
	if resp, err := w.post(ctx, message{Method: method, Params: params}); err == nil {
		resp.Body.Close()
	}
}

func (w *httpWire) initialized() {}

func (w *httpWire) ended() <-chan struct{} { return w.gone }

func (w *httpWire) why() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.reason
}

func (w *httpWire) end(reason error) {
	w.once.Do(func() {
		w.mu.Lock()
		w.reason = reason
		w.mu.Unlock()
		close(w.gone)
	})
}

// close ends the session and all requests.
func (w *httpWire) close() {
	w.end(errStopped)
	w.mu.Lock()
	session, modern := w.session, mcp.IsModernProtocol(w.version)
	w.mu.Unlock()
	if session != "" && !modern {
		ctx, cancel := context.WithTimeout(w.ctx, time.Second)
		if resp, err := w.do(ctx, http.MethodDelete, nil, message{}); err == nil {
			resp.Body.Close()
		}
		cancel()
	}
	w.cancel()
	w.client.CloseIdleConnections()
}

// Limits of a headersHelper.
const (
	helperTime = 10 * time.Second
	maxHelped  = 64 << 10 // bytes of its output
)

// runHelper runs the headersHelper of an entry, which prints a JSON object of strings. Errors do not contain its
// output, which may be secret.
func runHelper(ctx context.Context, cfg Config, e *Entry) (map[string]string, error) {
	if e.HeadersHelper == "" {
		return nil, nil
	}
	if e.Trust == Project {
		return nil, errors.New("its headersHelper is not run: only entries of the user or the administrator may have one")
	}
	ctx, cancel := context.WithTimeout(ctx, helperTime)
	defer cancel()
	helper := helperCommand(e, cfg.Roots)
	if err := cfg.MayRun(helper); err != nil {
		return nil, fmt.Errorf("its headersHelper is not run: %w", err)
	}
	cmd := hostprogram.Command(ctx, "sh", "-c", e.HeadersHelper)
	cmd.Dir, cmd.Env = helper.Dir, append(cmd.Env, "CLAUDE_CODE_MCP_SERVER_NAME="+e.Name,
		"CLAUDE_CODE_MCP_SERVER_URL="+e.URL)
	cmd.WaitDelay = time.Second
	var out bytes.Buffer
	cmd.Stdout = &out
	err := cmd.Run()
	headers := map[string]string{}
	switch {
	case ctx.Err() != nil:
		return nil, fmt.Errorf("its headersHelper did not end within %s", helperTime)
	case err != nil:
		return nil, fmt.Errorf("its headersHelper failed: %w", err)
	case out.Len() > maxHelped || json.Unmarshal(out.Bytes(), &headers) != nil:
		return nil, errors.New("its headersHelper did not print a JSON object of strings")
	}
	return headers, nil
}
