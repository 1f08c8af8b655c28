package httpserver

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"

	"github.com/toolhost/toolhost/mcpserver/audit"
	"github.com/toolhost/toolhost/mcpserver/auth"
	"github.com/toolhost/toolhost/mcpserver/internal/jsonrpc"
	"github.com/toolhost/toolhost/mcpserver/internal/transport"
)

// An entrance lets the requests of known callers in, within limits. The server of a host and that of workspaces have
// one.
type entrance struct {
	cfg       Config
	to        transport.Recorder
	auth      *authenticator
	admission *admission
	overload  *transport.RejectionLog // of requests over a limit
	base      context.Context         // done when the server cancels what still runs
	stop      context.CancelCauseFunc // of base
	// streams is done when the server starts to shut down. It ends subscriptions.
	streams      context.Context
	closeStreams context.CancelFunc
}

func newEntrance(ctx context.Context, to transport.Recorder, cfg Config) (*entrance, error) {
	if cfg.Verifier == nil {
		return nil, errors.New("the HTTP server has no token verifier: it is required, because any web page can reach a port")
	}
	if cfg.Limits == (Limits{}) {
		cfg.Limits = UsualLimits().within(cfg.Connections)
	}
	if cfg.Relay != nil {
		cfg.Limits.Idle, cfg.Limits.Write = 0, relayWrite
	}
	e := &entrance{
		cfg: cfg, to: to, auth: newAuthenticator(to, cfg), admission: newAdmission(cfg.Limits),
		overload: transport.NewRejectionLog(to),
	}
	e.base, e.stop = context.WithCancelCause(context.WithoutCancel(ctx))
	e.streams, e.closeStreams = context.WithCancel(e.base)
	return e, nil
}

// serve serves requests on l until ctx is done. Those that run have grace to finish; end ends the rest.
func (e *entrance) serve(ctx context.Context, l net.Listener, routes http.Handler, grace time.Duration,
	end func(*http.Server) error) error {
	web := &http.Server{
		Handler:           e.withDeadlines(routes),
		BaseContext:       func(net.Listener) context.Context { return e.base },
		ConnState:         e.cfg.Watch,
		ReadHeaderTimeout: e.cfg.Limits.Header, IdleTimeout: e.cfg.Limits.Idle, MaxHeaderBytes: maxHeader,
		ErrorLog: quietLog(e.to.Log()),
	}
	if e.cfg.Relay != nil {
		web.Protocols, web.HTTP2 = new(http.Protocols), &http.HTTP2Config{
			MaxConcurrentStreams:          e.cfg.Limits.InFlight + e.cfg.Limits.Streams,
			MaxReceiveBufferPerConnection: relayWindow,
		}
		web.Protocols.SetUnencryptedHTTP2(true)
	}
	failed := make(chan error, 1)
	go func() { failed <- web.Serve(l) }()
	select {
	case err := <-failed: // the listener has failed
		e.stop(transport.ErrClosed)
		return errors.Join(err, end(web))
	case <-ctx.Done():
	}
	e.drain(l, grace)
	return end(web)
}

// drain stops admitting requests and waits for those in flight. After the grace period it cancels them.
func (e *entrance) drain(l net.Listener, grace time.Duration) {
	empty := e.admission.drain()
	e.closeStreams()
	if e.cfg.Inherited {
		l.Close() // new connections wait in the socket for the next server
	}
	if !waitAtMost(grace, empty) {
		e.stop(transport.ErrClosed)
		waitAtMost(transport.DrainRest, empty)
	}
}

// withDeadlines sets the deadlines of refused requests: without them net/http would wait for clients that do not send
// the body or do not read the response. Other requests set their own, and a [responseStream] those of its writes.
func (e *entrance) withDeadlines(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		now, rc := time.Now(), http.NewResponseController(w)
		_ = rc.SetReadDeadline(now.Add(e.cfg.Limits.Header)) // fails only without a connection
		// net/http reads the body before it responds
		_ = rc.SetWriteDeadline(now.Add(e.cfg.Limits.Header + e.cfg.Limits.Write))
		next.ServeHTTP(w, r)
	})
}

// enter identifies the caller of a request. If it reports false, it has answered the request.
func (e *entrance) enter(w http.ResponseWriter, r *http.Request) (who auth.Identity, ok bool) {
	w.Header().Set("X-Accel-Buffering", "no") // nginx must not buffer a stream
	w.Header().Set("Cache-Control", "no-store")
	if err := CheckAddress(r, e.cfg.Hosts); err != nil {
		writeError(w, http.StatusForbidden, err.Error())
		return who, false
	}
	if name := repeatedHeader(r.Header); name != "" {
		writeError(w, http.StatusBadRequest, fmt.Sprintf("the header %s occurs more than once: send it once", name))
		return who, false
	}
	return e.auth.identify(w, r)
}

// checkMethod answers a request that is neither a message nor one of a stream, and reports whether it is one of them.
func checkMethod(w http.ResponseWriter, r *http.Request) bool {
	switch {
	case r.Method == http.MethodPost:
	case r.Method != http.MethodGet && r.Method != http.MethodDelete:
		w.Header().Set("Allow", "GET, POST, DELETE")
		writeError(w, http.StatusMethodNotAllowed,
			fmt.Sprintf("%s is not a method of this endpoint: send messages by POST", r.Method))
		return false
	case !isEmpty(r.Body):
		// net/http detects that the client disconnects only after it has read the body.
		writeError(w, http.StatusBadRequest, fmt.Sprintf("a %s request must have no body: send messages by POST", r.Method))
		return false
	}
	return true
}

// reject answers a refused request. It writes an audit record if a limit was reached, so that the operator sees which
// callers reach it, and how often.
func (e *entrance) reject(w http.ResponseWriter, r *http.Request, who auth.Identity, m jsonrpc.Envelope,
	refused *httpError) {
	if refused.full {
		e.overload.FromPeer(r, audit.Record{Principal: who.Principal, Tool: transport.AdmissionTool, Rule: "limits",
			Error: refused.text})
	}
	refused.send(w, m)
}

// withHealth adds what is answered without a token: health checks, and the metadata of the authorization server.
func (e *entrance) withHealth(mux *http.ServeMux, ready func() error) {
	mux.HandleFunc("GET "+healthPath,
		func(w http.ResponseWriter, _ *http.Request) { writePlain(w, http.StatusOK, "ok\n") })
	// It does not tell why the server is not ready, because anyone may ask. The reason is in the log.
	mux.HandleFunc("GET "+readyPath, func(w http.ResponseWriter, _ *http.Request) {
		if e.admission.closing() || ready() != nil {
			writePlain(w, http.StatusServiceUnavailable, "not ready\n")
			return
		}
		writePlain(w, http.StatusOK, "ready\n")
	})
	if e.cfg.Metadata != nil {
		mux.HandleFunc("GET "+auth.MetadataPath, e.serveMetadata)
		mux.HandleFunc("GET "+auth.MetadataPath+"/", e.serveMetadata) // followed by the path of the resource
	}
}
