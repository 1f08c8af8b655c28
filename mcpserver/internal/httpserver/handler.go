package httpserver

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"

	"github.com/toolhost/toolhost/guard"
	"github.com/toolhost/toolhost/mcpserver/auth"
	"github.com/toolhost/toolhost/mcpserver/internal/jsonrpc"
	"github.com/toolhost/toolhost/mcpserver/internal/transport"
)

// A handler checks requests before it passes them to the library: host and origin, token, session, size, limits.
type handler struct {
	*entrance
	host     transport.Handler
	next     http.Handler
	sessions *sessionTable
	events   *eventStore
}

func (d *handler) routes() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc(Endpoint, d.serveMCP)
	d.withHealth(mux, d.host.Ready)
	if d.cfg.Relay != nil {
		mux.Handle(RelayPath, d.cfg.Relay)
	}
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		writeError(w, http.StatusNotFound, "the MCP endpoint is "+Endpoint)
	})
	return mux
}

// serveMCP passes one request to the library.
func (d *handler) serveMCP(w http.ResponseWriter, r *http.Request) {
	who, ok := d.enter(w, r)
	if !ok {
		return
	}
	if status, refused := d.sessions.check(r, who); refused != nil {
		writeRPCError(w, status, refused)
		return
	}
	held := d.admission.lease(who.Principal)
	defer held.release()
	if r.Method != http.MethodPost {
		d.serveStream(w, r, who, held)
		return
	}
	body, refused := readBody(w, r, held)
	if refused != nil {
		d.reject(w, r, who, jsonrpc.Envelope{}, refused)
		return
	}
	message, wrong := d.examine(r, who, body)
	m := message.Content()
	if wrong != nil {
		status := http.StatusBadRequest
		if wrong.Ordinary && !m.Modern(r.Header.Get(mcp.HeaderProtocolVersion)) {
			status = http.StatusOK
		} else if wrong.Code == mcp.METHOD_NOT_FOUND {
			status = http.StatusNotFound
		}
		writeRPCError(w, status, wrong)
		return
	}
	if m.Method == string(mcp.MethodInitialize) && len(body) > maxInitialize {
		(&httpError{status: http.StatusRequestEntityTooLarge,
			text: fmt.Sprintf("the initialize message has %d bytes, the limit is %d: shorten clientInfo and capabilities",
				len(body), maxInitialize)}).send(w, m)
		return
	}
	d.post(w, r, message, held, who)
}

// examine parses and validates a message.
func (d *handler) examine(r *http.Request, who auth.Identity, body []byte) (message transport.Message,
	wrong *jsonrpc.Error) {
	message, wrong = d.host.Open(body)
	m, version := message.Content(), r.Header.Get(mcp.HeaderProtocolVersion)
	if wrong == nil && m.Method != string(mcp.MethodInitialize) {
		wrong = unknownVersion(m, version)
	}
	if name, own := message.Named(); wrong == nil && own {
		wrong = checkOwn(r, m, name)
	}
	if wrong == nil && (!m.Modern(version) || checkHeaders(r, m)) {
		wrong = message.Validate(who)
	}
	return message, wrong
}

// serveStream serves the requests of legacy sessions without a message: GET opens a stream, DELETE ends the session.
func (d *handler) serveStream(w http.ResponseWriter, r *http.Request, who auth.Identity, held *lease) {
	if !checkMethod(w, r) {
		return
	}
	if r.Method == http.MethodGet {
		if refused := held.admitStream(); refused != nil {
			d.reject(w, r, who, jsonrpc.Envelope{}, refused)
			return
		}
	}
	_ = http.NewResponseController(w).SetReadDeadline(time.Time{}) // a stream has no deadline
	ctx, release := bindCredential(r.Context(), who, true)
	defer release()
	stream := newResponseStream(w, d.cfg.Limits.Write)
	defer stream.close()
	legacy := !mcp.IsModernProtocol(r.Header.Get(mcp.HeaderProtocolVersion)) // then check has validated the session
	session, event := r.Header.Get(server.HeaderKeySessionID), r.Header.Get(headerLastEvent)
	if legacy && r.Method == http.MethodGet {
		var leave context.CancelFunc
		ctx, leave = d.sessions.bindContext(ctx, session)
		defer leave()
		if event != "" {
			d.events.resume(ctx, stream, session, event)
			return
		}
	}
	ctx = transport.WithPeer(ctx, transport.Peer{Transport: transport.HTTP, Who: who})
	d.next.ServeHTTP(stream, r.WithContext(ctx))
	if legacy && r.Method == http.MethodDelete {
		d.end(who.Principal, session)
	}
}

// listParameter is the query parameter of the endpoint that selects the list of tools.
const listParameter = "tools"

// post handles a message. Admit puts tool calls into the queue of their scope, in the order of arrival.
func (d *handler) post(w http.ResponseWriter, r *http.Request, message transport.Message, held *lease,
	who auth.Identity) {
	m := message.Content()
	modern := m.Modern(r.Header.Get(mcp.HeaderProtocolVersion))
	if modern && m.Method == jsonrpc.MethodCancelled {
		// In this era a client cancels by closing the stream. The library would let any caller cancel any request.
		w.WriteHeader(http.StatusAccepted)
		return
	}
	list := r.URL.Query().Get(listParameter)
	if list != "" && list != transport.ListSearch && list != transport.ListAll {
		(&httpError{status: http.StatusBadRequest,
			text: fmt.Sprintf("the query parameter %s is %q: use %s or %s, or omit it", listParameter, list,
				transport.ListSearch, transport.ListAll)}).send(w, m)
		return
	}
	ctx := r.Context()
	if !modern && m.Method != string(mcp.MethodInitialize) && r.Header.Get(server.HeaderKeySessionID) == "" {
		(&httpError{status: http.StatusBadRequest, text: "the " + server.HeaderKeySessionID +
			" header is missing: initialize first"}).send(w, m)
		return
	}
	session := ""
	if !modern {
		session = r.Header.Get(server.HeaderKeySessionID)
		var forget func()
		ctx, forget = d.detach(ctx, session)
		defer forget()
	}
	if !modern && m.Method == jsonrpc.MethodCancelled {
		held.admission.cancel(session, m.Params.RequestID)
	}
	listens := m.Method == string(mcp.MethodSubscriptionsListen)
	ctx, release := bindCredential(ctx, who, listens)
	defer release()
	if listens { // a subscription would delay the shutdown
		var end context.CancelFunc
		ctx, end = context.WithCancel(ctx)
		defer end()
		defer context.AfterFunc(d.streams, end)()
	}
	admit := func() *httpError { return held.admitRequest(session, m) }
	if listens { // streams must not take the place of calls
		admit = held.admitStream
	}
	if refused := admit(); refused != nil {
		d.reject(w, r, who, m, refused)
		return
	}
	stream := d.newStream(w, r, who, session, message)
	stream.cancelled = held.cancelled.Load
	defer func() { stream.end(m, context.Cause(ctx)) }()
	defer held.release() // before end: the client may reuse the id after the response
	ctx, leave, err := message.Admit(ctx, transport.Peer{Transport: transport.HTTP, Who: who, List: list,
		Session: session, Notify: stream.notify, Acknowledged: stream.waitForFirstEvent})
	defer leave() // the library may refuse a call before the pipeline gets it
	if err != nil {
		d.reject(stream, r, who, m, errNoRoom(http.StatusTooManyRequests, err.Error()))
		return
	}
	if _, own := message.Named(); own {
		stream.send(message.Own(ctx))
	} else {
		stream.instead = message.Instead
		d.next.ServeHTTP(stream, r.WithContext(ctx))
	}
	if errors.Is(context.Cause(ctx), errRevoked) {
		stream.revoked(m)
	}
}

// detach returns a context that is not done when a legacy client disconnects, which does not cancel its calls. The
// end of the session or of the host still cancels them.
func (d *handler) detach(ctx context.Context, session string) (context.Context, func()) {
	ctx, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	forget := context.AfterFunc(d.base, func() { cancel(transport.ErrClosed) })
	ended := d.sessions.onEnd(session, cancel)
	return ctx, func() { forget(); ended(); cancel(nil) }
}

// newStream returns the response stream for a message. The session is empty in the modern era.
func (d *handler) newStream(w http.ResponseWriter, r *http.Request, who auth.Identity, session string,
	message transport.Message) *responseStream {
	s := newResponseStream(w, d.cfg.Limits.Write)
	if session != "" {
		s.openLog = func() *eventLog { return d.events.open(who.Principal, session) }
	}
	if s.missingRight = stepUp(who, message); s.missingRight != nil {
		s.metadataURL = d.auth.metadataURL(r)
	}
	return s
}

// CheckAddress refuses requests of web pages from other origins, and of pages that use DNS rebinding. hosts are the
// names of the server in addition to the loopback ones.
func CheckAddress(r *http.Request, hosts []string) error {
	if !knownHost(r.Host, r, hosts) {
		return fmt.Errorf("the host %q is not a name of this server: allow it with toolhost http --host NAME", r.Host)
	}
	for _, origin := range r.Header.Values("Origin") {
		if origin == "" {
			continue
		}
		u, err := url.Parse(origin)
		if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.User != nil ||
			u.Path+u.RawQuery+u.Fragment != "" || !knownHost(u.Host, r, hosts) {
			return fmt.Errorf("requests from the origin %q are refused: allow its host with toolhost http --host NAME",
				origin)
		}
	}
	return nil
}

// knownHost reports whether a host is a name of this server. Over a Unix socket every name is accepted unless one is
// configured: clients have to make one up, and a web page can reach the socket only through a proxy.
func knownHost(host string, r *http.Request, hosts []string) bool {
	name, _, err := net.SplitHostPort(host)
	if err != nil {
		name = strings.Trim(host, "[]")
	}
	if guard.IsLoopback(name) {
		return true
	}
	switch here := r.Context().Value(http.LocalAddrContextKey).(type) {
	case *net.TCPAddr:
		if here.IP.Equal(net.ParseIP(name)) {
			return true
		}
	case *net.UnixAddr:
		if len(hosts) == 0 && host == r.Host {
			return true
		}
	}
	for _, known := range hosts {
		if strings.EqualFold(name, known) {
			return true
		}
	}
	return false
}

// Paths for the health checks of a supervisor. They need no token and show no details.
const (
	// healthPath returns 200 while the process runs.
	healthPath = "/healthz"
	// readyPath returns 200 if all calls can be served, and 503 otherwise. See Host.Ready of mcpserver.
	readyPath = "/readyz"
)

func writePlain(w http.ResponseWriter, status int, text string) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	_, _ = io.WriteString(w, text) // fails if the client has disconnected
}
