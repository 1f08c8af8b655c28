// Package transport has what the transports of a host share: the [Handler] of messages, the limits, and the grace
// periods of a shutdown.
package transport

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"
	"golang.org/x/time/rate"

	"github.com/toolhost/toolhost/guard"
	"github.com/toolhost/toolhost/mcpserver/audit"
	"github.com/toolhost/toolhost/mcpserver/auth"
	"github.com/toolhost/toolhost/mcpserver/internal/jsonrpc"
)

// Limits of one host. A message over a limit is refused; running requests continue.
const (
	// MaxMessage is the longest JSON-RPC message, in bytes: a line over stdio, a body over HTTP.
	MaxMessage = 32 << 20
	// MaxInFlight limits the requests that are queued or running, of one stdio client or of all HTTP clients.
	MaxInFlight = 2048
	// MaxBytesInFlight limits the total length of the messages in flight, in bytes. Handling a message takes several
	// times its length in memory.
	MaxBytesInFlight = 128 << 20
)

// CodeUnavailable is the JSON-RPC error code of a request that was refused because of a limit or a shutdown. The same
// request may succeed later. The specification leaves -32000 to -32019 to servers; official SDKs use the first ones.
const CodeUnavailable = -32010

// Grace periods of a shutdown.
const (
	// DrainGrace is how long calls may run after SIGTERM. Then they are cancelled.
	DrainGrace = 3 * time.Second
	// DrainRest is how long cancelled calls may take to end.
	DrainRest = 2 * time.Second
)

// ErrClosed is the cause of cancelling a call when its transport ends.
var ErrClosed = errors.New("the host is closing, the call was ended")

// ErrNoRoom means that a message exceeds [MaxBytesInFlight].
var ErrNoRoom = errors.New("the messages in flight are too long in total: try again after some have finished")

// Values of [Peer].Transport.
const (
	Stdio = "stdio"
	HTTP  = "http"
)

// The lists of tools that a client can choose over HTTP, by the query parameter "tools" of the endpoint.
const (
	// ListSearch leaves out the tools of other servers; ToolSearch finds them.
	ListSearch = "search"
	// ListAll has all tools.
	ListAll = "all"
)

// A Peer is the sender of a request.
type Peer struct {
	// Transport is [Stdio] or [HTTP].
	Transport string
	// Who is the caller.
	Who auth.Identity
	// List is the list of tools that the client has chosen: [ListSearch], [ListAll], or empty.
	List string
	// Unattended means that no person can answer questions: the client may be any program in a sandbox.
	Unattended bool
	// Session is the id of the legacy session over HTTP, or the name of one of several clients over stdio; empty if there
	// is none.
	Session string
	// Notify sends a notification that belongs to the request. It is sent before the response.
	Notify func(ctx context.Context, method string, params map[string]any)
	// Acknowledged waits until the acknowledgement of the subscription with this id has been written.
	Acknowledged func(ctx context.Context, id any)
}

// TaskEvent is the method of the notifications of the changes of tasks. Transports drop none of them.
const TaskEvent = "notifications/tasks"

// Notification returns a notification. The member "_meta" of params becomes its metadata.
func Notification(method string, params map[string]any) mcp.JSONRPCNotification {
	meta, _ := params["_meta"].(map[string]any)
	return mcp.JSONRPCNotification{
		JSONRPC: mcp.JSONRPC_VERSION,
		Notification: mcp.Notification{Method: method,
			Params: mcp.NotificationParams{Meta: meta, AdditionalFields: params}},
	}
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

// A Recorder keeps what happens to requests before they become calls.
type Recorder interface {
	// Log returns the logger.
	Log() *slog.Logger
	// Record writes a record to the audit log.
	Record(rec audit.Record) error
	// CountUnauthorized counts a request without a valid credential.
	CountUnauthorized()
	// EndTasks ends the background tasks of a principal.
	EndTasks(principal string)
}

// A Handler answers the messages of all transports.
type Handler interface {
	Recorder
	// Open parses a message, and looks up the tool that it calls. If it returns an error, the message has the parts that
	// could be parsed.
	Open(text []byte) (Message, *jsonrpc.Error)
	// Library returns the server of the MCP library, which handles all messages except tool calls.
	Library() *server.MCPServer
	// Warm starts the sandbox of a principal before its first command.
	Warm(principal string)
	// Ready returns nil if the host can serve calls, and otherwise the reason.
	Ready() error
	// CountSessions registers the function that counts the sessions of a transport.
	CountSessions(count func(now time.Time) int)
	// EndSession releases what belongs to a session that has ended.
	EndSession(principal, session string)
}

// A Message is a message of a client. Its methods are called in the order in which they are listed.
type Message interface {
	// Content returns the parsed message.
	Content() jsonrpc.Envelope
	// Named reports whether the host handles the request itself by Own, and the name in it that the header Mcp-Name
	// repeats, if any. It is called again before Own.
	Named() (name string, own bool)
	// Validate returns an error if the params of a request are invalid. It records calls of unknown tools.
	Validate(who auth.Identity) *jsonrpc.Error
	// MissingRights returns the right to the called tool that the caller lacks, or 0.
	MissingRights(who auth.Identity) auth.Rights
	// Admit puts a tool call into the queue of its scope, in the order of arrival. It returns the context of the call.
	// The caller must call leave after the library has returned. Admit fails if the scope has too many calls.
	Admit(ctx context.Context, from Peer) (callCtx context.Context, leave func(), err error)
	// Own handles a request for which Named has reported own. It also returns the HTTP status.
	Own(ctx context.Context) (answer mcp.JSONRPCMessage, status int)
	// Instead returns a message that replaces the answer of the library to a tool call, or nil.
	Instead() mcp.JSONRPCMessage
	// Answer handles an admitted request and leaves the queue.
	Answer(callCtx context.Context) mcp.JSONRPCMessage
}

// Limits of the audit records of refused requests: callers without a token must not be able to fill the log.
const (
	RefusalsBurst = 20          // at once
	RefusalsEvery = time.Second // for each one after that
)

// A RejectionLog records requests that were refused before they became calls. It limits the rate of the records.
type RejectionLog struct {
	to    Recorder
	lines *rate.Limiter

	mu      sync.Mutex
	skipped int // refusals since the last record
}

// NewRejectionLog returns a log that writes to the audit log of to.
func NewRejectionLog(to Recorder) *RejectionLog {
	return &RejectionLog{to: to, lines: rate.NewLimiter(rate.Every(RefusalsEvery), RefusalsBurst)}
}

// AdmissionTool stands for the tool in the record of a request that was refused because a limit was reached.
const AdmissionTool = "(admission)"

// FromPeer records a refused HTTP request with its address.
func (c *RejectionLog) FromPeer(r *http.Request, rec audit.Record) {
	from, _, err := net.SplitHostPort(r.RemoteAddr)
	if err != nil {
		from = r.RemoteAddr
	}
	rec.Scope, rec.Source = "http", from
	c.Record(rec)
}

// Record completes and writes the record of a refused request. If records were skipped before, it says how many.
func (c *RejectionLog) Record(rec audit.Record) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.lines.Allow() {
		c.skipped++
		return
	}
	if c.skipped > 0 {
		rec.Error = fmt.Sprintf("%s (and %d refusals before it that were not recorded)", rec.Error, c.skipped)
	}
	c.skipped = 0
	rec.Time, rec.Verdict = time.Now(), guard.Deny.String()
	if err := c.to.Record(rec); err != nil {
		c.to.Log().Error("cannot record a refused request", "error", err)
	}
}
