// Package stdio serves one client, a message a line: it reads them in their order, and never waits for a call to read the next.
package stdio

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"

	"github.com/toolhost/toolhost/mcpserver/audit"
	"github.com/toolhost/toolhost/mcpserver/auth"
	"github.com/toolhost/toolhost/mcpserver/internal/jsonrpc"
	"github.com/toolhost/toolhost/mcpserver/internal/transport"
)

// How long calls may finish when no more messages come. When the host is told to end, it is [transport.DrainGrace].
const (
	// eofGrace follows the end of the input or the death of the client. After the former, what still runs is ended and has
	// [eofRest] to say so: the two together leave a host that ends within 2 s, whatever its commands do with a SIGTERM.
	eofGrace = time.Second
	eofRest  = 700 * time.Millisecond

	// MostEOF is how long a host whose input has ended waits for calls.
	MostEOF = eofGrace + eofRest
)

// Serve serves one client, which calls as who: a message a line on in, answers on out. It returns when in has ended, when gone is closed
// because the client died, or when ctx is done; calls that run then have a short grace. We read the lines ourselves, because their order
// must reach the gate and the reader must never block.
func Serve(ctx context.Context, h transport.Handler, who auth.Identity, in io.Reader, out io.Writer, gone <-chan struct{}) error {
	var warm sync.WaitGroup
	defer warm.Wait() // nothing is made ready any more when this has ended
	running, stop := context.WithCancelCause(context.WithoutCancel(ctx))
	defer stop(transport.ErrClosed)
	c := &conn{handler: h, library: h.Library(), who: who, session: newSession(), out: jsonrpc.NewWriter(out), overload: transport.NewRejectionLog(h), calls: map[string]*inFlight{}}
	defer c.out.Close()
	if err := c.library.RegisterSession(running, c.session); err != nil {
		return fmt.Errorf("the session of the client: %w", err)
	}
	defer c.library.UnregisterSession(running, c.session.SessionID())
	c.ctx = c.library.WithContext(running, c.session)
	warm.Go(func() { c.warm(running) })
	c.session.send = c.send
	go c.session.forward(running, c.out)

	reader := newReader(c, in)
	defer reader.slow.Stop()
	go reader.worker(roleRead)
	var err error
	grace, rest := eofGrace, time.Duration(0)
	select {
	case err = <-reader.ended:
		rest = eofRest // a client that stopped sending may still read
	case <-gone:
	case <-c.out.Broken():
	case <-ctx.Done():
		grace, rest = transport.DrainGrace, transport.DrainRest
	}
	c.drain(grace)
	c.awaitSubscriptions()
	stop(transport.ErrClosed)
	c.drain(rest) // the calls that were ended say so
	return err
}

// A conn is the one client of a stdio host.
type conn struct {
	handler  transport.Handler
	library  *server.MCPServer
	who      auth.Identity
	session  *session
	out      *jsonrpc.Writer
	overload *transport.RejectionLog // for want of room
	ctx      context.Context         // done when the host closes

	mu            sync.Mutex
	calls         map[string]*inFlight // requests in flight, by the key of their id
	begun         int                  // how many there were
	subscriptions int                  // how many of those in flight are subscriptions, which end with the host
	bytes         int                  // the length of their messages
	sending       int                  // responses on their way to the client, whose requests are in flight no more
	finished      chan struct{}        // closed when there are neither; nil when none waits
}

// An inFlight is a request in flight.
type inFlight struct {
	cancel       context.CancelCauseFunc
	size         int  // of its message, in bytes
	subscription bool // it is a subscription
	cancelled    bool // by its client: no response may be sent
}

// quiet is how long there must have been nothing to do before the host prepares for commands. A client's first calls come
// right after its initialize, and the processor is theirs; a model thinks for longer than that before it runs anything.
const quiet = 100 * time.Millisecond

// warm prepares for the first command when the client has become quiet.
func (c *conn) warm(ctx context.Context) {
	tick := time.NewTicker(quiet)
	defer tick.Stop()
	for before, busy := 0, true; busy; {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		c.mu.Lock()
		busy = len(c.calls) > c.subscriptions || c.begun > before
		before = c.begun
		c.mu.Unlock()
	}
	c.handler.Warm(c.who.Principal)
}

// receive takes one message. It never waits for a call; what is to be run for a request is returned.
func (c *conn) receive(line []byte) (run func()) {
	line = bytes.TrimPrefix(line, jsonrpc.ByteOrderMark) // which Windows puts before the first one
	message, wrong := c.handler.Open(line)
	if wrong == nil {
		wrong = message.Validate(c.who)
	}
	switch m := message.Content(); {
	case wrong != nil:
		c.refuse(wrong)
	case m.Method == jsonrpc.MethodCancelled && m.ID == nil:
		c.cancel(m.Params.RequestID)
	case m.Method == "":
		c.session.answered(m)
	case m.ID == nil:
		c.library.HandleMessage(c.ctx, line)
	default:
		return c.request(message, m, line)
	}
	return nil
}

// request admits a request, to be run. A call of a tool takes its place in line here, in the order of arrival.
func (c *conn) request(message transport.Message, m jsonrpc.Envelope, line []byte) (run func()) {
	ctx, cancel := context.WithCancelCause(c.ctx)
	call := &inFlight{cancel: cancel, size: len(line), subscription: m.Method == string(mcp.MethodSubscriptionsListen)}
	id := jsonrpc.IDKey(m.ID)
	if err := c.admit(id, call); err != nil {
		cancel(err)
		code := mcp.INVALID_REQUEST
		if !errors.Is(err, errTaken) {
			code = transport.CodeUnavailable
			c.overload.Record(audit.Record{Principal: c.who.Principal, Scope: "stdio", Tool: transport.AdmissionTool, Rule: "limits", Error: err.Error()})
		}
		c.refuse(&jsonrpc.Error{ID: m.ID, Code: code, Text: err.Error()})
		return nil
	}
	// a scope that has too many calls says so in the result
	ctx, _, _ = message.Admit(ctx, transport.Peer{Transport: transport.Stdio, Who: c.who, Notify: c.notify, Acknowledged: c.session.acknowledged})
	return func() {
		defer cancel(nil)
		c.answer(id, call, message.Answer(ctx))
	}
}

// errTaken refuses a request whose id another request already has.
var errTaken = errors.New("a request with this id is still running, give each request an id of its own")

func (c *conn) admit(id string, call *inFlight) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, ok := c.calls[id]; ok {
		return fmt.Errorf("%w: %s", errTaken, id)
	}
	if len(c.calls) >= transport.MaxInFlight {
		return fmt.Errorf("%d requests are in flight, no more are taken until some are answered", transport.MaxInFlight)
	}
	if c.bytes+call.size > transport.MaxBytesInFlight {
		return transport.ErrNoRoom
	}
	c.calls[id] = call
	c.begun++
	if call.subscription {
		c.subscriptions++
	}
	c.bytes += call.size
	return nil
}

// answer sends a response, unless the client has cancelled its request.
func (c *conn) answer(id string, call *inFlight, response mcp.JSONRPCMessage) {
	c.mu.Lock()
	delete(c.calls, id)
	if call.subscription {
		c.subscriptions--
	}
	c.bytes -= call.size
	silent := call.cancelled || response == nil
	c.sending++ // whose id may be given again from here on: what ends waits for the response all the same
	c.mu.Unlock()
	if !silent {
		c.send(response)
	}
	c.sent()
}

// sent notes that a response has been written.
func (c *conn) sent() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.sending--
	if c.idle() && c.finished != nil {
		close(c.finished)
		c.finished = nil
	}
}

// idle reports whether nothing is in flight that ends by itself. The caller holds the lock.
func (c *conn) idle() bool { return len(c.calls) == c.subscriptions && c.sending == 0 }

// awaitSubscriptions has drain wait for subscriptions too: the host ends them.
func (c *conn) awaitSubscriptions() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.subscriptions = 0
	for _, call := range c.calls {
		call.subscription = false
	}
}

func (c *conn) cancel(id json.RawMessage) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if call, ok := c.calls[jsonrpc.IDKey(bytes.TrimSpace(id))]; ok {
		call.cancelled = true
		call.cancel(context.Canceled)
	}
}

// drain waits until no request is in flight and all are answered, but no longer than limit.
func (c *conn) drain(limit time.Duration) {
	c.mu.Lock()
	if c.idle() {
		c.mu.Unlock()
		return
	}
	if c.finished == nil {
		c.finished = make(chan struct{})
	}
	finished := c.finished
	c.mu.Unlock()
	timer := time.NewTimer(limit)
	defer timer.Stop()
	select {
	case <-finished:
	case <-timer.C:
	}
}

// notify sends a notification that belongs to a request, unless so much waits for the client already.
func (c *conn) notify(_ context.Context, method string, params map[string]any) {
	if c.out.Crowded() {
		return
	}
	c.send(mcp.JSONRPCNotification{
		JSONRPC:      mcp.JSONRPC_VERSION,
		Notification: mcp.Notification{Method: method, Params: mcp.NotificationParams{AdditionalFields: params}},
	})
}

// refuse answers a message that the library never sees. It does not wait for the client, because the reader
// calls it.
func (c *conn) refuse(f *jsonrpc.Error) {
	c.mu.Lock()
	c.sending++
	c.mu.Unlock()
	go func() {
		defer c.sent()
		c.send(f.Response())
	}()
}

func (c *conn) send(message any) {
	line, err := jsonrpc.Encode(message)
	if err != nil {
		c.handler.Log().Error("a message could not be encoded", "error", err)
		return
	}
	c.out.Write(append(line, '\n'))
}
