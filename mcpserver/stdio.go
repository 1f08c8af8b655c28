package mcpserver

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

	"toolhost/mcpserver/audit"
	"toolhost/mcpserver/internal/wire"
)

// How long a stdio host lets calls finish before it ends them.
const (
	// EOFGrace follows the end of the input or the death of the client. After the former, what still runs is ended and has
	// [eofRest] to say so: the two together leave a host that ends within 2 s, whatever its commands do with a SIGTERM.
	EOFGrace = time.Second
	eofRest  = 700 * time.Millisecond
	// DrainGrace follows SIGTERM. What still runs then gets its own SIGTERM and [drainRest].
	DrainGrace = 3 * time.Second
	drainRest  = 2 * time.Second
)

// ServeStdio serves one client: a message a line on in, answers on out. It returns when in has ended, when
// gone is closed because the client died, or when ctx is done; calls that run then have a short grace. We
// read the lines ourselves, because their order must reach the gate and the reader must never block.
func (s *Server) ServeStdio(ctx context.Context, in io.Reader, out io.Writer, gone <-chan struct{}) error {
	running, stop := context.WithCancelCause(context.WithoutCancel(ctx))
	defer stop(errClosed)
	c := &stdioConn{server: s, session: newStdioSession(), out: wire.NewWriter(out), crowded: newRefusals(s.host), calls: map[string]*stdioCall{}}
	defer c.out.Close()
	if err := s.mcp.RegisterSession(running, c.session); err != nil {
		return fmt.Errorf("stdio is served already: %w", err)
	}
	defer s.mcp.UnregisterSession(running, c.session.SessionID())
	c.ctx = s.mcp.WithContext(running, c.session)
	go c.warm(running)
	c.session.send = c.send
	go c.session.forward(running, c.out)

	reader := newStdioReader(c, in)
	defer reader.long.Close()
	go reader.follow(leading)
	var err error
	grace, rest := EOFGrace, time.Duration(0)
	select {
	case err = <-reader.ended:
		rest = eofRest // who only sends no more may still read
	case <-gone:
	case <-c.out.Broken():
	case <-ctx.Done():
		grace, rest = DrainGrace, drainRest
	}
	c.drain(grace)
	stop(errClosed)
	c.drain(rest) // the calls that were ended say so
	return err
}

// errClosed is why a call was cancelled when its transport ends.
var errClosed = errors.New("the host is closing, the call was ended")

// A stdioConn is the one client of a stdio host.
type stdioConn struct {
	server  *Server
	session *stdioSession
	out     *wire.Writer
	crowded *refusals       // for want of room
	ctx     context.Context // done when the host closes

	mu       sync.Mutex
	calls    map[string]*stdioCall // requests in flight, by the key of their id
	begun    int                   // how many there were
	bytes    int                   // the length of their messages
	finished chan struct{}         // closed when calls becomes empty; nil when nobody waits
}

// A stdioCall is a request in flight.
type stdioCall struct {
	cancel    context.CancelCauseFunc
	size      int  // of its message, in bytes
	cancelled bool // by its client: no response may be sent
}

// quiet is how long there must have been nothing to do before the host prepares for commands. A client's first calls come
// right behind its initialize, and the processor is theirs; a model thinks for longer than that before it runs anything.
const quiet = 100 * time.Millisecond

// warm prepares for the first command when the client has become quiet.
func (c *stdioConn) warm(ctx context.Context) {
	tick := time.NewTicker(quiet)
	defer tick.Stop()
	for before, busy := 0, true; busy; {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		c.mu.Lock()
		busy = len(c.calls) > 0 || c.begun > before
		before = c.begun
		c.mu.Unlock()
	}
	c.server.host.Warm(LocalPrincipal)
}

// receive takes one message. It never waits for a call; what is to be run for a request is returned.
func (c *stdioConn) receive(line []byte) (run func()) {
	line = bytes.TrimPrefix(line, wire.ByteOrderMark) // which Windows puts before the first one
	m, wrong := wire.Open(line)
	if wrong == nil {
		wrong = c.server.misuse(m)
	}
	if wrong == nil {
		wrong = c.server.malformed(m)
	}
	switch {
	case wrong != nil:
		c.refuse(wrong)
	case m.Method == wire.MethodCancelled && m.ID == nil:
		c.cancel(m.Params.RequestID)
	case m.Method == "":
		c.session.answered(m)
	case m.ID == nil:
		c.server.mcp.HandleMessage(c.ctx, line)
	default:
		return c.request(m, line)
	}
	return nil
}

// request admits a request, to be run. A call of a tool takes its place in line here, in the order of arrival.
func (c *stdioConn) request(m wire.Envelope, line []byte) (run func()) {
	ctx, cancel := context.WithCancelCause(c.ctx)
	call := &stdioCall{cancel: cancel, size: len(line)}
	id := wire.IDKey(m.ID)
	if err := c.admit(id, call); err != nil {
		cancel(err)
		if !errors.Is(err, errTaken) {
			c.crowded.record(audit.Record{Principal: LocalPrincipal, Scope: "stdio", Tool: admissionTool, Rule: "limits", Error: err.Error()})
		}
		c.refuse(&wire.Fault{ID: m.ID, Code: mcp.INVALID_REQUEST, Text: err.Error()})
		return nil
	}
	cl := &client{who: Local(), notify: c.notify, acknowledged: c.session.acknowledged}
	if m.Method == wire.MethodCall {
		c.server.host.nameSession(&m, line)
		cl.arrival = c.server.host.Arrive(Local(), m.Params.Meta, "", true)
		if c.server.answersPlain(m) {
			return func() {
				defer cancel(nil)
				response := c.server.callPlain(withClient(ctx, cl), m)
				cl.arrival.Leave()
				c.answer(id, call, response)
			}
		}
		if c.server.host.cfg.Extension.Options == nil && c.server.host.extra(m.Params.Name) == nil {
			line, cl.arguments = m.Rest, m.Arguments // nobody but us reads them
		}
	}
	return func() {
		defer cancel(nil)
		response := c.server.mcp.HandleMessage(withClient(ctx, cl), line)
		if cl.arrival != nil {
			cl.arrival.Leave() // the library may have refused the call before it came to us
		}
		c.answer(id, call, response)
	}
}

// errTaken refuses a request whose id could not be told from another's.
var errTaken = errors.New("a request with this id is still running, give each request an id of its own")

func (c *stdioConn) admit(id string, call *stdioCall) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, ok := c.calls[id]; ok {
		return fmt.Errorf("%w: %s", errTaken, id)
	}
	if len(c.calls) >= MaxInFlight {
		return fmt.Errorf("%d requests are in flight, no more are taken until some are answered", MaxInFlight)
	}
	if c.bytes+call.size > MaxBytesInFlight {
		return errNoRoom
	}
	c.calls[id] = call
	c.begun++
	c.bytes += call.size
	return nil
}

// answer sends a response, unless the client has cancelled its request.
func (c *stdioConn) answer(id string, call *stdioCall, response mcp.JSONRPCMessage) {
	c.mu.Lock()
	delete(c.calls, id)
	c.bytes -= call.size
	silent := call.cancelled || response == nil
	c.mu.Unlock()
	if !silent {
		c.send(response)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.calls) == 0 && c.finished != nil {
		close(c.finished)
		c.finished = nil
	}
}

func (c *stdioConn) cancel(id json.RawMessage) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if call, ok := c.calls[wire.IDKey(bytes.TrimSpace(id))]; ok {
		call.cancelled = true
		call.cancel(context.Canceled)
	}
}

// drain waits until no request is in flight, but no longer than limit.
func (c *stdioConn) drain(limit time.Duration) {
	c.mu.Lock()
	if len(c.calls) == 0 {
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
func (c *stdioConn) notify(_ context.Context, method string, params map[string]any) {
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
func (c *stdioConn) refuse(f *wire.Fault) { go c.send(f.Response()) }

func (c *stdioConn) send(message any) {
	line, err := wire.Encode(message)
	if err != nil {
		c.server.host.log.Error("a message could not be encoded", "error", err)
		return
	}
	c.out.Write(append(line, '\n'))
}
