// Package transport is what the transports of a host have in common: how much they let in, how long they wait for calls when they end,
// and what they know of the server behind them.
package transport

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/mark3labs/mcp-go/server"

	"github.com/toolhost/toolhost/mcpserver/audit"
	"github.com/toolhost/toolhost/mcpserver/auth"
	"github.com/toolhost/toolhost/mcpserver/internal/jsonrpc"
)

// Limits of what callers may hold of a host at once, and of what comes in in one piece. What is over a limit is refused and told so; what
// is under way goes on.
const (
	// MaxMessage is the longest JSON-RPC message, in bytes: a line on stdio, a body over HTTP.
	MaxMessage = 32 << 20
	// MaxInFlight is how many requests may be queued or running: of the one client of stdio, of all over HTTP.
	MaxInFlight = 2048
	// MaxBytesInFlight bounds the sum of the messages of requests in flight, in bytes. Handling a message takes
	// some times its length.
	MaxBytesInFlight = 128 << 20
)

// CodeUnavailable is the JSON-RPC error code of a request that was not taken for want of room, or because the host is closing: the
// same request may succeed later. The specification leaves -32000 to -32019 to servers; official SDKs use the first ones.
const CodeUnavailable = -32010

// How long a host lets calls finish when it is told to end.
const (
	// DrainGrace follows SIGTERM. What still runs then gets its own SIGTERM and [DrainRest].
	DrainGrace = 3 * time.Second
	DrainRest  = 2 * time.Second
)

// ErrClosed is why a call was cancelled when its transport ends.
var ErrClosed = errors.New("the host is closing, the call was ended")

// ErrNoRoom answers a message when those in flight are as long as they may be together.
var ErrNoRoom = errors.New("the messages in flight are too long together: try again when some are answered")

// A Peer is the other end of a request, as its transport knows it.
type Peer struct {
	// Transport is stdio or http.
	Transport string
	// Who is who calls.
	Who auth.Identity
	// Notify sends a notification that belongs to the request, in order before its response.
	Notify func(ctx context.Context, method string, params map[string]any)
	// Acknowledged waits until the acknowledgement of the subscription with this id has been written.
	Acknowledged func(ctx context.Context, id any)
}

// A Server is what every transport brings requests to.
type Server interface {
	// Library is the MCP library, which answers what is no plain call of a tool.
	Library() *server.MCPServer
	// Misuse finds what is wrong with a call of a tool that the library would let pass, or could answer with no fitting error.
	Misuse(m jsonrpc.Envelope) *jsonrpc.Error
	// Malformed finds what is wrong with the params of a request, in words for who sent it. A call of a tool that there is not is on
	// record then.
	Malformed(who auth.Identity, m jsonrpc.Envelope) *jsonrpc.Error
	// Warm starts ahead what the commands of a principal run in.
	Warm(principal string)
	// Record writes a line into the audit log.
	Record(rec audit.Record) error
	// Log receives the host's own messages.
	Log() *slog.Logger
}
