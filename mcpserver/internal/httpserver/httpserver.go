// Package httpserver serves MCP clients of both eras over HTTP. It authenticates callers, limits what each may use, and keeps the
// streams of calls for clients that lose their connection.
package httpserver

import (
	"context"
	"errors"
	"net"
	"net/http"
	"sync"

	"github.com/mark3labs/mcp-go/server"

	"github.com/toolhost/toolhost/mcpserver/auth"
	"github.com/toolhost/toolhost/mcpserver/internal/transport"
)

// Endpoint is the path of the MCP endpoint.
const Endpoint = "/mcp"

// A Config says who may call over HTTP.
type Config struct {
	// Verifier knows the callers by their tokens. Nil is refused.
	Verifier auth.Verifier
	// Metadata tells clients where tokens are issued (RFC 9728). Nil: nowhere but here.
	Metadata *auth.Metadata
	// Warm is the principal whose sandbox is started ahead of its first command; "": none is.
	Warm string
	// Hosts are names beyond the loopback ones under which the server may be addressed. The address that a client
	// has connected to always counts: no name can be rebound to it.
	Hosts []string
	// Inherited says that the listener's socket outlives the server, so that clients who come while it closes
	// wait for the next one.
	Inherited bool
	// Watch is told what connections do, so that one that rests can be closed for a new one. Nil: it is not called.
	Watch func(net.Conn, http.ConnState)
	// Limits are for tests, which make them small. Zero: [UsualLimits].
	Limits Limits
}

// Serve serves clients on l until ctx is done; then running calls have a short grace.
func Serve(ctx context.Context, s transport.Handler, l net.Listener, cfg Config) error {
	if cfg.Verifier == nil {
		return errors.New("a server on a port must know its callers: any page in a browser can reach it")
	}
	if cfg.Limits == (Limits{}) {
		cfg.Limits = UsualLimits()
	}
	base, stop := context.WithCancelCause(context.WithoutCancel(ctx))
	defer stop(transport.ErrClosed)
	sessions := newSessionTable(cfg.Limits.Sessions)
	s.CountSessions(sessions.count)
	library := server.NewStreamableHTTPServer(s.Library(),
		server.WithEndpointPath(Endpoint),
		server.WithSessionIdManagerResolver(sessions),
		server.WithSessionIdleTTL(SessionIdle),
		server.WithStreamableHTTPLogger(debugLog(s.Log())),
		server.WithDisableLocalhostProtection(true), // the handler checks host names
	)
	h := &handler{host: s, cfg: cfg, next: library, auth: newAuthenticator(s, cfg), sessions: sessions, admission: newAdmission(cfg.Limits), events: newEventStore(), overload: transport.NewRejectionLog(s), base: base}
	sessions.ended = h.forget
	h.streams, h.closeStreams = context.WithCancel(base)
	defer h.closeStreams()
	web := &http.Server{
		Handler:           h.withDeadlines(h.routes()),
		BaseContext:       func(net.Listener) context.Context { return base },
		ConnState:         cfg.Watch,
		ReadHeaderTimeout: cfg.Limits.Header, IdleTimeout: cfg.Limits.Idle, MaxHeaderBytes: maxHeader,
		ErrorLog: quietLog(s.Log()),
	}
	if cfg.Warm != "" {
		var warm sync.WaitGroup
		warm.Go(func() { s.Warm(cfg.Warm) })
		defer warm.Wait() // nothing is made ready any more when this has ended
	}
	failed := make(chan error, 1)
	go func() { failed <- web.Serve(l) }()
	select {
	case err := <-failed: // the listener is broken: no one can connect any more
		stop(transport.ErrClosed)
		return errors.Join(err, shutdown(web, library))
	case <-ctx.Done():
	}
	h.drain(l, stop)
	return shutdown(web, library)
}
