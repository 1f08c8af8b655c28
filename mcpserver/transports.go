package mcpserver

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"time"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"

	"github.com/toolhost/toolhost/mcpserver/audit"
	"github.com/toolhost/toolhost/mcpserver/auth"
	"github.com/toolhost/toolhost/mcpserver/httpserver"
	"github.com/toolhost/toolhost/mcpserver/internal/jsonrpc"
	"github.com/toolhost/toolhost/mcpserver/internal/stdio"
	"github.com/toolhost/toolhost/mcpserver/internal/transport"
	"github.com/toolhost/toolhost/mcpserver/scope"
)

// ServeStdio serves one client, the user the host runs as: a message a line on in, answers on out. It returns when in has ended, when
// gone is closed because the client died, or when ctx is done; calls that run then have a short grace.
func (s *Server) ServeStdio(ctx context.Context, in io.Reader, out io.Writer, gone <-chan struct{}) error {
	return stdio.Serve(ctx, front{s}, Local(), in, out, gone)
}

// ServeHTTP serves clients on l until ctx is done; then running calls have a short grace.
func (s *Server) ServeHTTP(ctx context.Context, l net.Listener, cfg httpserver.Config) error {
	if l != nil { // else there is nothing to serve, which web.Serve says
		s.host.KeepPort(l.Addr())
	}
	return httpserver.Serve(ctx, front{s}, l, cfg)
}

// A front is a server as its transports know it.
type front struct{ *Server }

// Library implements transport.Server.
func (f front) Library() *server.MCPServer { return f.mcp }

// Warm implements transport.Server.
func (f front) Warm(principal string) { f.host.Warm(principal) }

// Record implements transport.Server.
func (f front) Record(rec audit.Record) error { return f.host.recorder.audit.Write(rec) }

// Log implements transport.Server.
func (f front) Log() *slog.Logger { return f.host.log }

// Take implements stdio.Server. The library decodes each message five times, so it is not shown more of a call than it needs.
func (f front) Take(ctx context.Context, from transport.Peer, m jsonrpc.Envelope, message []byte) func() mcp.JSONRPCMessage {
	c := &client{Peer: from}
	if m.Method != jsonrpc.MethodCall {
		return func() mcp.JSONRPCMessage { return f.mcp.HandleMessage(withClient(ctx, c), message) }
	}
	f.host.tools.nameSession(&m, message)
	c.admission = f.host.Admit(from.Who, m.Params.Meta, "", true)
	c.name, c.tool = m.Params.Name, f.host.tools.resolve(m.Params.Name)
	if f.answersPlain(m, c.tool) {
		return func() mcp.JSONRPCMessage {
			defer c.admission.Leave()
			return f.callPlain(withClient(ctx, c), m, c.tool)
		}
	}
	if f.host.cfg.Extension.Options == nil && c.tool.extra == nil {
		message, c.arguments = m.Rest, m.Arguments // nobody but us reads them
	}
	return func() mcp.JSONRPCMessage {
		defer c.admission.Leave() // the library may refuse the call before it comes to us
		return f.mcp.HandleMessage(withClient(ctx, c), message)
	}
}

// Caller implements web.Server.
func (f front) Caller(ctx context.Context) auth.Identity { return callerOf(ctx) }

// NameSession implements web.Server.
func (f front) NameSession(m *jsonrpc.Envelope, message []byte) { f.host.tools.nameSession(m, message) }

// Enter implements web.Server.
func (f front) Enter(ctx context.Context, from transport.Peer, m jsonrpc.Envelope, session string) (context.Context, func(), error) {
	c := &client{Peer: from}
	ctx = withClient(ctx, c)
	if m.Method != jsonrpc.MethodCall {
		return ctx, func() {}, nil
	}
	c.name, c.tool = m.Params.Name, f.host.tools.resolve(m.Params.Name)
	c.admission = f.host.Admit(from.Who, m.Params.Meta, session, false)
	if errors.Is(c.admission.err, scope.ErrBusy) {
		return ctx, c.admission.Leave, c.admission.err
	}
	return ctx, c.admission.Leave, nil
}

// Lacks implements web.Server.
func (f front) Lacks(who auth.Identity, tool string) auth.Rights {
	r := f.host.tools.resolve(tool)
	if r.err != nil || who.Rights.Has(rightTo(r.def.Permission)) {
		return 0
	}
	return rightTo(r.def.Permission)
}

// Ready implements web.Server.
func (f front) Ready() error { return f.host.Ready() }

// Count implements web.Server.
func (f front) Count(sessions func(time.Time) int) { f.host.counts.sessions.Store(&sessions) }

// Unauthorised implements web.Server.
func (f front) Unauthorised() { f.host.counts.unauthorised.Add(1) }

// EndSession implements web.Server.
func (f front) EndSession(principal, session string) { f.host.scopes.EndSession(principal, session) }

// EndTasks implements web.Server.
func (f front) EndTasks(principal string) { f.host.endTasks(principal) }
