package httpserver

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"

	"github.com/toolhost/toolhost/mcpserver/auth"
	"github.com/toolhost/toolhost/mcpserver/internal/jsonrpc"
	"github.com/toolhost/toolhost/mcpserver/internal/transport"
)

// A handler checks requests before the library gets them: the right host and origin, a known
// bearer, a body of bounded size, a session of the same principal.
type handler struct {
	host      transport.Handler
	cfg       Config
	next      http.Handler
	auth      *authenticator
	sessions  *sessionTable
	admission *admission
	events    *eventStore
	overload  *transport.RejectionLog // for want of room
	base      context.Context
	// streams is done when the server begins to shut down, through endListening: it ends subscriptions.
	streams      context.Context
	closeStreams context.CancelFunc
}

func (d *handler) routes() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc(Endpoint, d.serveMCP)
	mux.HandleFunc("GET "+healthPath, d.healthy)
	mux.HandleFunc("GET "+readyPath, d.ready)
	if d.cfg.Metadata != nil {
		mux.HandleFunc("GET "+auth.MetadataPath, d.describe)
		mux.HandleFunc("GET "+auth.MetadataPath+"/", d.describe) // the path of the resource follows
	}
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		writeError(w, http.StatusNotFound, "the MCP endpoint is "+Endpoint)
	})
	return mux
}

// withDeadlines sets deadlines for requests. Otherwise net/http would read the bodies of refused requests at the pace
// of their clients, and wait for clients that leave their answers unread. Handlers that read a body, or have none to
// read, set other deadlines; so does a [responseStream] for its writes.
func (d *handler) withDeadlines(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		now, rc := time.Now(), http.NewResponseController(w)
		_ = rc.SetReadDeadline(now.Add(d.cfg.Limits.Header))                       // what has no connection to bound has none to hold
		_ = rc.SetWriteDeadline(now.Add(d.cfg.Limits.Header + d.cfg.Limits.Write)) // net/http reads before it answers
		next.ServeHTTP(w, r)
	})
}

// serveMCP passes one request to the library.
func (d *handler) serveMCP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("X-Accel-Buffering", "no") // a proxy must not hold back a stream
	w.Header().Set("Cache-Control", "no-store")
	if err := d.checkAddress(r); err != nil {
		writeError(w, http.StatusForbidden, err.Error())
		return
	}
	if name := repeatedHeader(r.Header); name != "" {
		writeError(w, http.StatusBadRequest, fmt.Sprintf("the header %s is there more than once: a proxy could have obeyed another one", name))
		return
	}
	who, ok := d.auth.identify(w, r)
	if !ok {
		return
	}
	if status, no := d.sessions.check(r, who); no != nil {
		writeFault(w, status, no)
		return
	}
	held := d.admission.lease(who.Principal)
	defer held.release()
	if r.Method != http.MethodPost {
		d.serveStream(w, r, who, held)
		return
	}
	body, no := readBody(w, r, held)
	if no != nil {
		d.reject(w, r, who, jsonrpc.Envelope{}, no)
		return
	}
	message, wrong := d.examine(r, who, body)
	m := message.Content()
	if wrong != nil {
		status := http.StatusBadRequest
		if wrong.Ordinary && !m.Modern(r.Header.Get(mcp.HeaderProtocolVersion)) {
			status = http.StatusOK
		}
		writeFault(w, status, wrong)
		return
	}
	if m.Method == string(mcp.MethodInitialize) && len(body) > maxInitialize {
		(&httpError{status: http.StatusRequestEntityTooLarge, text: fmt.Sprintf("an initialize message is at most %d bytes long", maxInitialize)}).send(w, m)
		return
	}
	d.post(w, r, message, held, who)
}

// examine opens a message, and returns an error if it must not be admitted.
func (d *handler) examine(r *http.Request, who auth.Identity, body []byte) (message transport.Message, wrong *jsonrpc.Error) {
	message, wrong = d.host.Open(body)
	m, version := message.Content(), r.Header.Get(mcp.HeaderProtocolVersion)
	if wrong == nil && m.Method != string(mcp.MethodInitialize) {
		wrong = unknownVersion(m, version)
	}
	if wrong == nil && (!m.Modern(version) || checkHeaders(r, m)) {
		wrong = message.Validate(who)
	}
	return message, wrong
}

// serveStream serves requests without a message: the streams of legacy sessions, and the end of sessions.
func (d *handler) serveStream(w http.ResponseWriter, r *http.Request, who auth.Identity, held *lease) {
	switch {
	case r.Method != http.MethodGet && r.Method != http.MethodDelete:
		w.Header().Set("Allow", "GET, POST, DELETE")
		writeError(w, http.StatusMethodNotAllowed, fmt.Sprintf("%s is not a method of this endpoint: send messages by POST", r.Method))
		return
	case !isEmpty(r.Body):
		// net/http notices that the client is gone only after the end of the body.
		writeError(w, http.StatusBadRequest, fmt.Sprintf("a %s carries no body: send messages by POST", r.Method))
		return
	}
	if r.Method == http.MethodGet {
		if no := held.admitStream(); no != nil {
			d.reject(w, r, who, jsonrpc.Envelope{}, no)
			return
		}
	}
	_ = http.NewResponseController(w).SetReadDeadline(time.Time{}) // a stream lasts
	ctx, release := bindCredential(r.Context(), who, true)
	defer release()
	stream := newCallStream(w, d.cfg.Limits.Write)
	defer stream.close()
	legacy := !mcp.IsModernProtocol(r.Header.Get(mcp.HeaderProtocolVersion)) // so the session was found to be the caller's
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

// listParameter is the parameter of the endpoint with which a client chooses its list of tools.
const listParameter = "tools"

// post handles a message. A tool call takes its place in its scope here, in the order of arrival.
func (d *handler) post(w http.ResponseWriter, r *http.Request, message transport.Message, held *lease, who auth.Identity) {
	m := message.Content()
	modern := m.Modern(r.Header.Get(mcp.HeaderProtocolVersion))
	if modern && m.Method == jsonrpc.MethodCancelled {
		// In this era closing the stream cancels. The library would let any caller cancel any request.
		w.WriteHeader(http.StatusAccepted)
		return
	}
	list := r.URL.Query().Get(listParameter)
	if list != "" && list != transport.ListSearch && list != transport.ListAll {
		(&httpError{status: http.StatusBadRequest, text: fmt.Sprintf("the parameter %s of the endpoint is %q: give %s or %s, or leave it out", listParameter, list, transport.ListSearch, transport.ListAll)}).send(w, m)
		return
	}
	ctx := r.Context()
	if !modern && m.Method != string(mcp.MethodInitialize) && r.Header.Get(server.HeaderKeySessionID) == "" {
		(&httpError{status: http.StatusBadRequest, text: "the " + server.HeaderKeySessionID + " header is missing: initialize first"}).send(w, m)
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
	if listens { // it would hold up the end of the host
		var end context.CancelFunc
		ctx, end = context.WithCancel(ctx)
		defer end()
		defer context.AfterFunc(d.streams, end)()
	}
	if no := held.admitRequest(session, m); no != nil {
		d.reject(w, r, who, m, no)
		return
	}
	stream := d.stream(w, r, who, session, message)
	stream.cancelled = held.cancelled.Load
	defer func() { stream.end(m, context.Cause(ctx)) }()
	defer held.release() // first: the client may reuse the id once answered
	ctx, leave, err := message.Admit(ctx, transport.Peer{Transport: transport.HTTP, Who: who, List: list, Session: session, Notify: stream.notify, Acknowledged: stream.acknowledged})
	defer leave() // the library may refuse a call before it comes to the pipeline
	if err != nil {
		d.reject(stream, r, who, m, errNoRoom(http.StatusTooManyRequests, err.Error()))
		return
	}
	d.next.ServeHTTP(stream, r.WithContext(ctx))
	if errors.Is(context.Cause(ctx), errRevoked) {
		stream.revoked(m)
	}
}

// detach lets a legacy call continue when its client disconnects, which does not cancel it. The end of the session or
// the host still ends it.
func (d *handler) detach(ctx context.Context, session string) (context.Context, func()) {
	ctx, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	forget := context.AfterFunc(d.base, func() { cancel(transport.ErrClosed) })
	ended := d.sessions.onEnd(session, cancel)
	return ctx, func() { forget(); ended(); cancel(nil) }
}

// stream is the response to a message, in a session or in none.
func (d *handler) stream(w http.ResponseWriter, r *http.Request, who auth.Identity, session string, message transport.Message) *responseStream {
	s := newCallStream(w, d.cfg.Limits.Write)
	if session != "" {
		s.keep = func() *eventLog { return d.events.open(who.Principal, session) }
	}
	if s.lacks = stepUp(who, message); s.lacks != nil {
		s.about = d.auth.metadataURL(r)
	}
	return s
}

// checkAddress refuses requests of web pages: those from another origin, or for a name that was rebound to this server.
func (d *handler) checkAddress(r *http.Request) error {
	if !d.knownHost(r.Host, r) {
		return fmt.Errorf("this server is not addressed as %q", r.Host)
	}
	for _, origin := range r.Header.Values("Origin") {
		if origin == "" {
			continue
		}
		u, err := url.Parse(origin)
		if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.User != nil || u.Path+u.RawQuery+u.Fragment != "" || !d.knownHost(u.Host, r) {
			return fmt.Errorf("requests from the origin %q are not taken", origin)
		}
	}
	return nil
}

// knownHost reports whether a host is a name of this server. Over a Unix socket a client has to invent a name unless
// one was configured, and a page in a browser can reach the socket only through a proxy.
func (d *handler) knownHost(host string, r *http.Request) bool {
	name, _, err := net.SplitHostPort(host)
	if err != nil {
		name = strings.Trim(host, "[]")
	}
	if ip := net.ParseIP(name); ip != nil && ip.IsLoopback() || strings.EqualFold(name, "localhost") {
		return true
	}
	switch here := r.Context().Value(http.LocalAddrContextKey).(type) {
	case *net.TCPAddr:
		if here.IP.Equal(net.ParseIP(name)) {
			return true
		}
	case *net.UnixAddr:
		if len(d.cfg.Hosts) == 0 && host == r.Host {
			return true
		}
	}
	for _, known := range d.cfg.Hosts {
		if strings.EqualFold(name, known) {
			return true
		}
	}
	return false
}
