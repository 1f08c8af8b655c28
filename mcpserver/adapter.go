package mcpserver

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"time"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"

	"github.com/toolhost/toolhost/builtin"
	"github.com/toolhost/toolhost/mcpserver/audit"
	"github.com/toolhost/toolhost/mcpserver/auth"
	"github.com/toolhost/toolhost/mcpserver/internal/approvals"
	"github.com/toolhost/toolhost/mcpserver/internal/httpserver"
	"github.com/toolhost/toolhost/mcpserver/internal/jsonrpc"
	"github.com/toolhost/toolhost/mcpserver/internal/scope"
	"github.com/toolhost/toolhost/mcpserver/internal/stdio"
	"github.com/toolhost/toolhost/mcpserver/internal/transport"
)

// ServeStdio serves one client, the user that runs the host: it reads one message per line from in and writes the
// answers to out. It returns when in ends, when gone is closed because the client died, or when ctx is done. Calls that
// are then running get a short grace period.
func (s *Server) ServeStdio(ctx context.Context, in io.Reader, out io.Writer, gone <-chan struct{}) error {
	return stdio.Serve(ctx, adapter{Server: s}, Local(), "", in, out, gone)
}

// ServeNamed is [Server.ServeStdio] for one of several clients of the user. The name tells its conversation from theirs
// until in ends.
func (s *Server) ServeNamed(ctx context.Context, name string, in io.Reader, out io.Writer) error {
	defer s.host.scopes.EndSession(LocalPrincipal, name)
	return stdio.Serve(ctx, adapter{Server: s}, Local(), name, in, out, nil)
}

// Endpoint is the path of the MCP endpoint over HTTP.
const Endpoint = httpserver.Endpoint

// CheckAddress refuses requests of web pages from other origins, see [httpserver.CheckAddress].
func CheckAddress(r *http.Request, hosts []string) error { return httpserver.CheckAddress(r, hosts) }

// HTTPConfig configures which callers HTTP accepts.
type HTTPConfig = httpserver.Config

// ServeHTTP serves clients on l until ctx is done. Calls that are then running get a short grace period.
func (s *Server) ServeHTTP(ctx context.Context, l net.Listener, cfg HTTPConfig) error {
	if l != nil { // httpserver.Serve reports a missing one
		s.host.KeepPort(l.Addr())
	}
	if cfg.Verifier != nil { // httpserver.Serve reports a missing one
		cfg.Verifier = rootVerifier{cfg.Verifier, s.host.policies}
	}
	return httpserver.Serve(ctx, adapter{Server: s}, l, cfg)
}

// Workspaces are the workspaces that a server leads its callers to, see [httpserver.Workspaces].
type Workspaces = httpserver.Workspaces

// Errors of [Workspaces].
var (
	ErrNoWorkspace    = httpserver.ErrNoWorkspace
	ErrManyWorkspaces = httpserver.ErrManyWorkspaces
)

// WorkspacePath returns the path of the MCP endpoint of a workspace.
func WorkspacePath(name string) string { return httpserver.WorkspacePath(name) }

// ServeWorkspaces serves clients of workspaces on l until ctx is done, see [httpserver.ServeWorkspaces].
func ServeWorkspaces(ctx context.Context, all Workspaces, l net.Listener, cfg HTTPConfig) error {
	return httpserver.ServeWorkspaces(ctx, all, l, cfg)
}

// An adapter is a [transport.Handler] that turns messages into calls of [Host.Call]. The library answers all other
// messages. Clients in a cell are unattended, see [transport.Peer].
type adapter struct {
	*Server
	cell bool
}

func (s adapter) Library() *server.MCPServer { return s.mcp }

func (s adapter) Log() *slog.Logger { return s.host.log }

func (s adapter) Record(rec audit.Record) error { return s.host.recorder.audit.Write(rec) }

func (s adapter) Warm(principal string) { s.host.Warm(principal) }

func (s adapter) Ready() error { return s.host.Ready() }

func (s adapter) CountSessions(count func(time.Time) int) { s.host.counts.sessions.Store(&count) }

func (s adapter) CountUnauthorized() { s.host.counts.unauthorised.Add(1) }

func (s adapter) EndSession(principal, session string) { s.host.scopes.EndSession(principal, session) }

func (s adapter) EndTasks(principal string) {
	s.host.clientTasks.drop(principal)
	s.host.runtime.StopTasks(principal)
}

// Open implements [transport.Handler].
func (s adapter) Open(text []byte) (transport.Message, *jsonrpc.Error) {
	m := &message{adapter: s, text: text}
	var wrong *jsonrpc.Error
	if m.Envelope, wrong = jsonrpc.Open(text); wrong != nil || m.Method != jsonrpc.MethodCall {
		return m, wrong
	}
	m.tool = s.host.tools.resolveCall(m.Params.Name, m.givenArguments())
	return m, m.misuse()
}

// A message is a [transport.Message]. A tool call travels in its context, because the library passes nothing else to
// handlers.
type message struct {
	adapter
	jsonrpc.Envelope
	text []byte
	tool resolved // of a call of a tool

	peer      transport.Peer
	admission *Admission // nil if the message is not a tool call
	// arguments holds the arguments of a call that bypassed the library, nil otherwise.
	arguments json.RawMessage
	created   *taskView // the task that the call has become; nil if it has its result
	passed    any       // [builtin.Result.Passed]
	code      int       // of the error of another server, see [builtin.Result]
}

type messageKey struct{}

// callOf returns the tool call that runs in ctx.
func callOf(ctx context.Context) (*message, bool) {
	m, ok := ctx.Value(messageKey{}).(*message)
	return m, ok
}

// givenArguments returns the arguments of a call as the client sent them.
func (m *message) givenArguments() json.RawMessage {
	if m.Arguments != nil || m.Params.Name != toolCallName {
		return m.Arguments
	}
	var call struct {
		Params struct {
			Arguments json.RawMessage `json:"arguments"`
		} `json:"params"`
	}
	_ = json.Unmarshal(m.Rest, &call) // the envelope was decoded
	return call.Params.Arguments
}

// Content implements [transport.Message].
func (m *message) Content() jsonrpc.Envelope { return m.Envelope }

// MissingRights implements [transport.Message].
func (m *message) MissingRights(who auth.Identity) auth.Rights {
	if m.tool.def == nil || who.Rights.Has(rightTo(m.tool.def.Permission)) {
		return 0
	}
	return rightTo(m.tool.def.Permission)
}

// Admit implements [transport.Message].
func (m *message) Admit(ctx context.Context, from transport.Peer) (inside context.Context, leave func(), err error) {
	from.Unattended = m.cell
	ctx = transport.WithPeer(ctx, from)
	if m.Method != jsonrpc.MethodCall {
		return ctx, func() {}, nil
	}
	m.nameSession()
	m.peer, m.admission = from, m.host.Admit(from.Who, m.Params.Meta, from.Session, from.Transport == transport.Stdio)
	if errors.Is(m.admission.err, scope.ErrBusy) {
		err = m.admission.err
	}
	return context.WithValue(ctx, messageKey{}, m), m.admission.Leave, err
}

// Answer implements [transport.Message]. The library decodes a message five times, so it gets only the part of a call
// that it needs.
func (m *message) Answer(inside context.Context) mcp.JSONRPCMessage {
	answer := m.answer(inside)
	if created := m.Instead(); created != nil {
		return created
	}
	return answer
}

func (m *message) answer(inside context.Context) mcp.JSONRPCMessage {
	if _, own := m.Named(); own {
		answer, _ := m.Own(inside)
		return answer
	}
	if m.admission == nil {
		return m.coded(m.mcp.HandleMessage(context.WithValue(inside, consultedKey{}, m), m.text))
	}
	defer m.admission.Leave() // the library may refuse a call before it reaches the pipeline
	if m.needsNoLibrary() {
		return m.answerCall(inside)
	}
	text := m.text
	if m.host.cfg.Extension.Options == nil && m.tool.extra == nil {
		text, m.arguments = m.Rest, m.Arguments // only this package reads them
	}
	return m.mcp.HandleMessage(inside, text)
}

// maxQuestions bounds how often people are asked about one call. A call whose plan changes with every answer cannot be
// judged.
const maxQuestions = 3

// call is the handler of every tool. When a person must be asked, a modern client gets the question as the result and
// repeats the call with the answer. A legacy client is asked here, and the call is repeated on its behalf. If the
// client cannot ask, the operator is asked in the same way.
func (s adapter) call(ctx context.Context, req mcp.CallToolRequest) (*mcp.CallToolResult, error) {
	c, ok := callOf(ctx)
	if !ok {
		return nil, fmt.Errorf("the call of %s did not come through a transport of this host", req.Params.Name)
	}
	answer, err := s.answerTo(ctx, c, req.Params.MultiRoundTripParams)
	if err != nil {
		return nil, err
	}
	if c.Method != jsonrpc.MethodCall || c.peer.Unattended || !server.IsModernRequest(ctx) ||
		!declares(&c.Envelope, tasksExtension) {
		return s.callTool(ctx, c, req, answer)
	}
	t := &clientTask{principal: c.peer.Who.Principal, tool: req.Params.Name, leave: func() { c.admission.Leave() }}
	result, created, err := s.host.clientTasks.run(ctx, t, func(ctx context.Context) (*mcp.CallToolResult, error) {
		return s.callTool(ctx, c, req, answer)
	})
	if c.created = created; created != nil {
		return &mcp.CallToolResult{}, nil // see Instead
	}
	return result, err
}

// callTool makes a call of a tool with the answer to an earlier question.
func (s adapter) callTool(ctx context.Context, c *message, req mcp.CallToolRequest,
	answer *Answer) (*mcp.CallToolResult, error) {
	tool, arguments := c.tool, c.argumentsOf(req)
	asks, put := s.canAsk(ctx), s.put
	repeats := asks && server.IsModernRequest(ctx)
	if parent := s.host.children.asker(c.peer.Who.Principal); parent != nil { // clients in cells cannot be asked
		asks, put = true, parent
	}
	program := clientOf(ctx, req)
	shown := newReporter(ctx, c.peer, req.Params.Name, req.Params.Meta)
	defer shown.stop()
	task := taskOf(ctx)
	task.beforeLeave(shown.stop)
	call := Request{
		Tool: tool.called(c.Params.Name), tool: tool, Args: s.host.tools.withoutSession(tool, arguments),
		Client: builtin.Client{Progress: shown.callback(),
			CanAsk: asks || s.host.approvals.asksOperator(c.peer.Who.Principal)},
		Answer:       answer,
		Origin:       originOf(ctx, c, req, program),
		ClientLimits: func(other int) builtin.ClientLimits { return program.passes(other, len(arguments)) },
	}
	if can := elicitation(ctx); asks && can != nil {
		call.OpensPages = can.URL != nil
	}
	if call.Repeats = repeats; asks && !repeats {
		call.AskUser = put
		if s.canAsk(ctx) {
			call.Elicit, call.PageDone = s.elicit, s.pageDone(ctx)
		}
	}
	if tool.def != nil && tool.def.NeedsForm && !showsForms(ctx) {
		call.Repeats, call.Elicit = false, s.host.approvals.formAtConsole(c.admission, call)
	}
	var own *extraRun // set for an extra tool, whose result is a type of the library
	if tool.extra != nil {
		own = &extraRun{call: ExtraCall{CallToolRequest: req, Notify: c.peer.Notify}}
		ctx = context.WithValue(ctx, extraKey{}, own)
	}
	reply := s.host.Call(ctx, c.admission, call)
	for n := 0; reply.Question != nil && !repeats && n < maxQuestions; n++ {
		shown.report(asking)
		q := reply.Question
		call.Answer = q.first(ctx, func(ctx context.Context) *Answer {
			if asks {
				return put(ctx, q)
			}
			return s.host.approvals.askOperator(ctx, c.admission, call, q)
		})
		shown.forget()
		c.admission = s.host.readmit(c.admission)
		reply = s.host.Call(ctx, c.admission, call)
	}
	for reply.Question != nil && repeats && task.isHanded() {
		var err error
		if call.Answer, err = s.askInTask(ctx, c, task, call, reply.Question); err != nil {
			s.host.approvals.abandon(ctx, reply.Question.State)
			return nil, err
		}
		reply = s.host.Call(ctx, c.admission, call)
	}
	if reply.Question != nil && repeats {
		return s.toQuestion(ctx, c.admission, call, reply.Question), nil
	}
	c.passed, c.code = reply.Passed, reply.Served.Code
	if own != nil && own.failure != nil {
		return nil, own.failure
	}
	if own != nil {
		return own.answer(reply), nil
	}
	result := toResult(s.host.tools.tellSession(reply))
	if !s.host.cfg.Structured.to(program, tool.def) {
		result.StructuredContent = nil
	}
	return result, nil
}

// argumentsOf returns the arguments of a call of a tool, also if it is called through another one.
func (m *message) argumentsOf(req mcp.CallToolRequest) json.RawMessage {
	switch {
	case m.tool.inside != nil:
		return m.tool.inside.args
	case m.arguments != nil:
		return m.arguments
	}
	return req.Params.RawArguments
}

// askInTask puts a question to the client that follows the task of a call. The call goes on with the answer in a new
// turn.
func (s adapter) askInTask(ctx context.Context, c *message, t *clientTask, call Request, q *Question) (*Answer, error) {
	asked := s.toQuestion(ctx, c.admission, call, q)
	limited, cancel := context.WithTimeout(ctx, approvals.Lifetime)
	defer cancel()
	response, err := t.ask(limited, asked.InputRequests[questionID])
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	c.admission.Leave()
	c.admission = s.host.readmit(c.admission)
	if err != nil {
		return &Answer{State: q.State, By: ByClient, late: true}, nil
	}
	return s.answerTo(ctx, c, mcp.MultiRoundTripParams{RequestState: q.State,
		InputResponses: mcp.InputResponses{questionID: response}})
}

// originOf returns the origin of a call over MCP. The trace in the message has priority over the header, which a
// proxy may have set.
func originOf(ctx context.Context, c *message, req mcp.CallToolRequest, client clientInfo) audit.Origin {
	o := audit.Origin{Transport: c.peer.Transport, Client: client.Name, ClientVersion: client.Version}
	if len(req.Header) > 0 {
		o.Protocol = req.Header.Get(mcp.HeaderProtocolVersion)
		o.TraceParent, o.TraceState = req.Header.Get("traceparent"), req.Header.Get("tracestate")
	}
	if meta := req.Params.Meta; meta != nil {
		if parent, ok := meta.AdditionalFields["traceparent"].(string); ok {
			o.TraceParent = parent
			o.TraceState, _ = meta.AdditionalFields["tracestate"].(string)
		}
		if version, ok := meta.AdditionalFields[mcp.MetaKeyProtocolVersion].(string); ok {
			o.Protocol = version
		}
	}
	if s, ok := server.ClientSessionFromContext(ctx).(interface{ ProtocolVersion() string }); ok && o.Protocol == "" {
		o.Protocol = s.ProtocolVersion()
	}
	if !mcp.IsValidProtocolVersion(o.Protocol) {
		o.Protocol = "" // not a revision of the protocol
	}
	if c.admission.scope != nil {
		o.Session = c.admission.scope.Session()
	}
	return o
}
