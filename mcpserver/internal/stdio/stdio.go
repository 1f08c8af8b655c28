// Package stdio serves one client over standard input and output, one message per line. It reads messages in order, and
// reads the next one while calls run.
package stdio

import (
	"bufio"
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

// Grace periods at the end of the input. After SIGTERM, [transport.DrainGrace] applies instead.
const (
	// eofGrace is how long calls may run after the input has ended or the client has died.
	eofGrace = time.Second
	// eofRest is how long calls may take to end after they were cancelled because the input has ended. With eofGrace, a
	// host ends within 2 s even if its commands ignore SIGTERM.
	eofRest = 700 * time.Millisecond

	// MostEOF is how long a host whose input has ended waits for calls.
	MostEOF = eofGrace + eofRest
)

// Serve serves one client with the identity who. It returns after in has ended, after gone was closed because the
// client has died, or after ctx is done; running calls then have a grace period. name tells apart the clients of one
// host that have the same identity; it is empty for the only one. Serve does not use the stdio transport of the
// library, which does not keep the order of calls.
func Serve(ctx context.Context, h transport.Handler, who auth.Identity, name string, in io.Reader, out io.Writer,
	gone <-chan struct{}) error {
	var warm sync.WaitGroup
	defer warm.Wait()
	running, stop := context.WithCancelCause(context.WithoutCancel(ctx))
	defer stop(transport.ErrClosed)
	c := &conn{handler: h, library: h.Library(), who: who, name: name, session: newSession(),
		out: jsonrpc.NewWriter(out), overload: transport.NewRejectionLog(h), calls: map[string]*inFlight{}}
	defer c.out.Close()
	if err := c.library.RegisterSession(running, c.session); err != nil {
		return fmt.Errorf("cannot register the session of the client: %w", err)
	}
	defer c.library.UnregisterSession(running, c.session.SessionID())
	c.ctx = c.library.WithContext(running, c.session)
	warm.Go(func() { c.warm(running) })
	c.session.send = c.send
	go c.session.forward(running, c.out)

	ended := make(chan error, 1)
	go c.read(bufio.NewReaderSize(in, 64<<10), ended)
	var err error
	grace, rest := eofGrace, time.Duration(0)
	select {
	case err = <-ended:
		rest = eofRest // a client that stopped sending may still read
	case <-gone:
	case <-c.out.Broken():
	case <-ctx.Done():
		grace, rest = transport.DrainGrace, transport.DrainRest
	}
	c.drain(grace)
	c.awaitSubscriptions()
	stop(transport.ErrClosed)
	c.drain(rest) // for the responses of the cancelled calls
	return err
}

// A conn is the connection to the client.
type conn struct {
	handler  transport.Handler
	library  *server.MCPServer
	who      auth.Identity
	name     string // of the client, see Serve
	session  *session
	out      *jsonrpc.Writer
	overload *transport.RejectionLog // of requests over a limit
	ctx      context.Context         // done when the host closes

	mu            sync.Mutex
	calls         map[string]*inFlight // requests in flight, by IDKey
	started       int                  // number of requests so far
	subscriptions int                  // number of requests in flight that are subscriptions
	bytes         int                  // total length of the messages in flight
	sending       int                  // number of responses being written, whose requests are no longer in flight
	finished      chan struct{}        // closed when idle; nil unless drain waits
}

// An inFlight is a request in flight.
type inFlight struct {
	cancel       context.CancelCauseFunc
	size         int // of its message, in bytes
	subscription bool
	cancelled    bool // by the client: no response may be sent
}

// quiet is how long a client must have sent nothing before the host prepares for commands. The first calls follow right
// after initialize and need the processor. A model takes longer until its first command.
const quiet = 100 * time.Millisecond

// warm prepares for the first command after the client has become quiet.
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
		busy = len(c.calls) > c.subscriptions || c.started > before
		before = c.started
		c.mu.Unlock()
	}
	c.handler.Warm(c.who.Principal)
}

// receive handles one message. It does not wait for calls: for a request it returns a function that runs it.
func (c *conn) receive(line []byte) (run func()) {
	line = bytes.TrimPrefix(line, jsonrpc.ByteOrderMark) // some programs on Windows write one before the first message
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

// request admits a request and returns a function that runs it. Admit puts tool calls into the queue of their scope,
// in the order of arrival.
func (c *conn) request(message transport.Message, m jsonrpc.Envelope, line []byte) (run func()) {
	ctx, cancel := context.WithCancelCause(c.ctx)
	call := &inFlight{cancel: cancel, size: len(line), subscription: m.Method == string(mcp.MethodSubscriptionsListen)}
	id := jsonrpc.IDKey(m.ID)
	if err := c.admit(id, call); err != nil {
		cancel(err)
		code := mcp.INVALID_REQUEST
		if !errors.Is(err, errTaken) {
			code = transport.CodeUnavailable
			c.overload.Record(audit.Record{Principal: c.who.Principal, Scope: "stdio", Tool: transport.AdmissionTool,
				Rule: "limits", Error: err.Error()})
		}
		c.refuse(&jsonrpc.Error{ID: m.ID, Code: code, Text: err.Error()})
		return nil
	}
	// The error is ignored: Answer returns it as the result of the call.
	ctx, _, _ = message.Admit(ctx, transport.Peer{Transport: transport.Stdio, Who: c.who, Session: c.name,
		Notify: c.notify, Acknowledged: c.session.acknowledged})
	return func() {
		defer cancel(nil)
		c.answer(id, call, message.Answer(ctx))
	}
}

// errTaken means that a request has the id of a running one.
var errTaken = errors.New("a request with this id is still running, use a different id for each request")

func (c *conn) admit(id string, call *inFlight) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, ok := c.calls[id]; ok {
		return fmt.Errorf("%w: %s", errTaken, id)
	}
	if len(c.calls) >= transport.MaxInFlight {
		return fmt.Errorf("too many requests are in flight (limit: %d): try again after some have finished",
			transport.MaxInFlight)
	}
	if c.bytes+call.size > transport.MaxBytesInFlight {
		return transport.ErrNoRoom
	}
	c.calls[id] = call
	c.started++
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
	c.sending++ // the id may be reused from here on, but drain waits for the response
	c.mu.Unlock()
	if !silent {
		c.send(response)
	}
	c.sent()
}

// sent records that a response has been written.
func (c *conn) sent() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.sending--
	if c.idle() && c.finished != nil {
		close(c.finished)
		c.finished = nil
	}
}

// idle reports whether nothing is in flight except subscriptions. The caller holds the lock.
func (c *conn) idle() bool { return len(c.calls) == c.subscriptions && c.sending == 0 }

// awaitSubscriptions makes drain wait for subscriptions too. It is called before the host ends them.
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

// drain waits until the connection is idle, at most for limit.
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

// notify sends a notification that belongs to a request. If the client does not read, a notification of a task waits,
// and others are dropped.
func (c *conn) notify(_ context.Context, method string, params map[string]any) {
	if method != transport.TaskEvent && c.out.Crowded() {
		return
	}
	c.send(transport.Notification(method, params))
}

// refuse answers a message with an error. It does not wait for the client, because the reader calls it.
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
		c.handler.Log().Error("cannot encode a message", "error", err)
		return
	}
	c.out.Write(append(line, '\n'))
}
