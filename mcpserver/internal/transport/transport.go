// Package transport has what the transports of a host share: the [Handler] that they bring messages to, their limits, and how long they
// wait for calls when they end.
package transport

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"

	"github.com/toolhost/toolhost/mcpserver/audit"
	"github.com/toolhost/toolhost/mcpserver/auth"
	"github.com/toolhost/toolhost/mcpserver/internal/jsonrpc"
)

// Limits of what callers may hold of a host at once, and of what comes in in one piece. What is over a limit is refused with an error that says so; what
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

// Stdio and HTTP are the transports.
const (
	Stdio = "stdio"
	HTTP  = "http"
)

// The lists of tools that a client can choose over HTTP, as the parameter "tools" of the endpoint.
const (
	// ListSearch leaves tools of other servers to a search.
	ListSearch = "search"
	// ListAll has all tools.
	ListAll = "all"
)

// A Peer is the other end of a request, as its transport knows it.
type Peer struct {
	// Transport is [Stdio] or [HTTP].
	Transport string
	// Who is the caller.
	Who auth.Identity
	// List is the list of tools that the client chose by its endpoint: [ListSearch], [ListAll], or empty.
	List string
	// Unattended says that any program of a sandbox can be the client: no person answers what it is asked.
	Unattended bool
	// Session is the id of the legacy session over HTTP; empty if there is none.
	Session string
	// Notify sends a notification that belongs to the request, in order before its response.
	Notify func(ctx context.Context, method string, params map[string]any)
	// Acknowledged waits until the acknowledgement of the subscription with this id has been written.
	Acknowledged func(ctx context.Context, id any)
}

type peerKey struct{}

// WithPeer returns the context of a request from a peer.
func WithPeer(ctx context.Context, p Peer) context.Context {
	return context.WithValue(ctx, peerKey{}, p)
}

// PeerOf returns the peer of a request. The zero Peer has no rights.
func PeerOf(ctx context.Context) Peer {
	p, _ := ctx.Value(peerKey{}).(Peer)
	return p
}

// A Handler answers the messages of all transports.
type Handler interface {
	// Open reads a message, and looks up the tool that it calls. The error is the answer to a message that cannot be handled; the
	// message has then what could be read.
	Open(text []byte) (Message, *jsonrpc.Error)
	// Library returns the MCP library. It answers what is not a call of a tool.
	Library() *server.MCPServer
	// Log returns the logger of the host.
	Log() *slog.Logger
	// Record writes a line to the audit log.
	Record(rec audit.Record) error
	// Warm starts the sandbox of a principal before its first command.
	Warm(principal string)
	// Ready returns nil when the host can serve calls, and why not otherwise.
	Ready() error
	// CountSessions is given the function that counts the sessions of a transport.
	CountSessions(count func(now time.Time) int)
	// CountUnauthorized counts a request without a valid credential.
	CountUnauthorized()
	// EndSession forgets what belongs to a session that has ended.
	EndSession(principal, session string)
	// EndTasks ends the background tasks of a principal.
	EndTasks(principal string)
}

// A Message is a message of a client. Its methods are called in the order in which they are listed.
type Message interface {
	// Content returns what was read of the message.
	Content() jsonrpc.Envelope
	// Validate returns what is wrong with the params of a request, in words for its sender. It records calls of unknown tools.
	Validate(who auth.Identity) *jsonrpc.Error
	// MissingRights returns the right to the tool of a call that a caller lacks, 0 if there is none.
	MissingRights(who auth.Identity) auth.Rights
	// Admit queues a call of a tool in its scope, in the order of arrival. The library must be called with the context that it returns,
	// and leave when it has answered. The error is that of a scope with too many calls.
	Admit(ctx context.Context, from Peer) (inside context.Context, leave func(), err error)
	// Answer answers an admitted request. It leaves.
	Answer(inside context.Context) mcp.JSONRPCMessage
}
