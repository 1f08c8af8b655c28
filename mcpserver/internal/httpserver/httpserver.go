// Package httpserver serves MCP clients of both eras over HTTP. It authenticates callers, limits the load of each, and
// keeps the streams of calls for clients that lose their connection.
package httpserver

import (
	"context"
	"errors"
	"log"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/mark3labs/mcp-go/server"

	"github.com/toolhost/toolhost/mcpserver/auth"
	"github.com/toolhost/toolhost/mcpserver/internal/transport"
)

// Endpoint is the path of the MCP endpoint.
const Endpoint = "/mcp"

// RelayPath is the path below which [Config.Relay] answers.
const RelayPath = "/relay/"

// A Config configures [Serve].
type Config struct {
	// Verifier verifies tokens. It is required.
	Verifier auth.Verifier
	// Metadata names the authorization server (RFC 9728). Nil without one.
	Metadata *auth.Metadata
	// Warm is the principal for which a sandbox is started before its first command. "" starts none.
	Warm string
	// Hosts are accepted host names in addition to the loopback ones. The IP address that a client has connected to is
	// always accepted, because DNS rebinding cannot use it.
	Hosts []string
	// Inherited means that the socket of the listener outlives the server: clients that connect during a shutdown wait
	// for the next server.
	Inherited bool
	// Connections is how many connections the listener accepts at once, or 0 if that is not known. Streams, requests,
	// and messages that are being received each may hold a quarter of them, so that some are always left.
	Connections int
	// Watch is called when a connection changes its state. It may be nil.
	Watch func(net.Conn, http.ConnState)
	// Relay is set for a server whose connections come from relays on other machines: they speak HTTP/2, and stay when
	// the link between the machines breaks. It answers what relays ask in addition.
	Relay http.Handler
	// Limits lets tests use small limits. Zero means [UsualLimits].
	Limits Limits
}

// relayWrite replaces [Limits.Write] for relays. A link may be away for that long.
const relayWrite = 10 * time.Minute

// relayWindow is how many received bytes may wait to be read on all streams of a relay's connection. A stream may have
// 1 MiB of them, such as one to a forwarded port whose program does not read: the other calls go on.
const relayWindow = 32 << 20

// Serve serves clients on l until ctx is done. Running calls then have [transport.DrainGrace] to finish.
func Serve(ctx context.Context, s transport.Handler, l net.Listener, cfg Config) error {
	e, err := newEntrance(ctx, s, cfg)
	if err != nil {
		return err
	}
	defer e.stop(transport.ErrClosed)
	sessions := newSessionTable(e.cfg.Limits.Sessions)
	s.CountSessions(sessions.count)
	library := server.NewStreamableHTTPServer(s.Library(),
		server.WithEndpointPath(Endpoint),
		server.WithSessionIdManagerResolver(sessions),
		server.WithSessionIdleTTL(SessionIdle),
		server.WithStreamableHTTPLogger(debugLog(s.Log())),
		server.WithDisableLocalhostProtection(true), // the handler checks host names
	)
	h := &handler{entrance: e, host: s, next: library, sessions: sessions, events: newEventStore()}
	sessions.ended = h.forget
	if cfg.Warm != "" {
		var warm sync.WaitGroup
		warm.Go(func() { s.Warm(cfg.Warm) })
		defer warm.Wait()
	}
	return e.serve(ctx, l, h.routes(), transport.DrainGrace,
		func(web *http.Server) error { return shutdown(web, library) })
}

// waitAtMost waits for done for at most limit, and reports whether it was closed in time.
func waitAtMost(limit time.Duration, done <-chan struct{}) bool {
	timer := time.NewTimer(limit)
	defer timer.Stop()
	select {
	case <-done:
		return true
	case <-timer.C:
		return false
	}
}

// shutdown closes idle streams and connections.
func shutdown(web *http.Server, library *server.StreamableHTTPServer) error {
	rest, cancel := context.WithTimeout(context.Background(), transport.DrainRest)
	defer cancel()
	library.CloseSessions(rest)
	if err := web.Shutdown(rest); err != nil {
		return errors.Join(web.Close(), library.Shutdown(rest)) // a client has sent only part of a request
	}
	return library.Shutdown(rest)
}

// quietLog logs the messages of net/http at debug level: they report broken connections, which are normal.
func quietLog(l *slog.Logger) *log.Logger { return slog.NewLogLogger(l.Handler(), slog.LevelDebug) }

// debugLog logs the messages of the library at debug level, except panics. The library logs mistakes of clients as
// errors, so any client could fill the log.
func debugLog(l *slog.Logger) *slog.Logger { return slog.New(debugHandler{l.Handler()}) }

type debugHandler struct{ slog.Handler }

// Enabled implements slog.Handler. Handle decides, because it needs the message.
func (h debugHandler) Enabled(context.Context, slog.Level) bool { return true }

// Handle implements slog.Handler.
func (h debugHandler) Handle(ctx context.Context, r slog.Record) error {
	if !strings.HasPrefix(r.Message, "panic") {
		r.Level = slog.LevelDebug
	}
	if !h.Handler.Enabled(ctx, r.Level) {
		return nil
	}
	return h.Handler.Handle(ctx, r)
}

// WithAttrs implements slog.Handler.
func (h debugHandler) WithAttrs(attrs []slog.Attr) slog.Handler {
	return debugHandler{h.Handler.WithAttrs(attrs)}
}

// WithGroup implements slog.Handler.
func (h debugHandler) WithGroup(name string) slog.Handler {
	return debugHandler{h.Handler.WithGroup(name)}
}
