package mcpserver

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"

	"github.com/toolhost/toolhost/builtin"
	"github.com/toolhost/toolhost/guard"
	"github.com/toolhost/toolhost/mcpserver/auth"
	"github.com/toolhost/toolhost/mcpserver/clientinfo"
	"github.com/toolhost/toolhost/mcpserver/internal/transport"
)

// LocalPrincipal is who calls over stdio and from the command line: the user the host runs as.
const LocalPrincipal = "local"

// Local is the user the host runs as, who has every right.
func Local() auth.Identity { return auth.Identity{Principal: LocalPrincipal, Rights: auth.All} }

// A Server speaks MCP for a [Host]. One server may serve several transports.
type Server struct {
	host  *Host
	mcp   *server.MCPServer
	tools map[string]bool // those of ours that it has

	subscriptions subscriptions
}

// NewServer makes the MCP face of a host.
func NewServer(h *Host) (*Server, error) {
	s := &Server{host: h, tools: map[string]bool{}, subscriptions: subscriptions{tell: map[*mcp.SubscriptionsListenRequest]func(){}}}
	hooks := &server.Hooks{}
	hooks.AddAfterListTools(s.filterTools)
	hooks.AddAfterInitialize(func(ctx context.Context, _ any, _ *mcp.InitializeRequest, r *mcp.InitializeResult) {
		r.Instructions = s.instructions(ctx)
	})
	hooks.AddAfterDiscover(func(ctx context.Context, _ any, _ *mcp.DiscoverRequest, r *mcp.DiscoverResult) {
		r.Instructions = s.instructions(ctx)
	})
	hooks.AddBeforeCallTool(func(_ context.Context, _ any, req *mcp.CallToolRequest) {
		req.Params.Name = h.tools.resolve(req.Params.Name).name
	})
	hooks.AddBeforeSubscriptionsListen(s.subscribe)
	hooks.AddAfterSubscriptionsListen(s.unsubscribe)
	options := []server.ServerOption{
		server.WithTitle("toolhost"),
		server.WithToolCapabilities(true), // when a person changes the rules; never as a side effect of a request
		server.WithCacheHints(listFresh.Milliseconds(), mcp.CacheScopePrivate),
		server.WithRecovery(),
		server.WithHooks(hooks),
	}
	s.mcp = server.NewMCPServer("toolhost", h.cfg.Version, append(options, h.cfg.Extension.Options...)...)
	s.extend(h.cfg.Extension)
	for _, d := range h.tools.all {
		if !d.Enabled(h.runtime) {
			continue
		}
		tool, err := toMCP(h.tools.shown(d))
		if err != nil {
			return nil, err
		}
		s.mcp.AddTool(tool, s.call)
		s.tools[d.Name] = h.tools.byName[d.Name].extra == nil
	}
	h.policies.onList(s.listChanged)
	return s, nil
}

// instructions are those for the caller of a request, by the rules and rights of now.
func (s *Server) instructions(ctx context.Context) string {
	who := callerOf(ctx)
	return instructions(s.host.cfg.Roots, s.host.Tools(who), s.host.policies.sharedDenies(s.host.policies.of(who.Principal)))
}

// instructions tell the model which tools there are, where it works, and which tools a rule may have taken away by mistake. Clients cut them at 2,048 characters. The first sentence has the
// words that models search for: Codex (0.169.0) shows the instructions and not the tools.
func instructions(roots []string, tools []*builtin.Def, missing []guard.SharedDeny) string {
	const longest = 1200
	var briefs []string
	for _, d := range tools {
		if d.Brief != "" {
			briefs = append(briefs, d.Name+" ("+d.Brief+")")
		}
	}
	served := ""
	if len(briefs) > 0 {
		served = "File and shell tools: " + strings.Join(briefs, ", ") + ". "
	}
	notice := ""
	for _, d := range missing {
		notice += " " + d.String() + "; " + d.Remedy() + "."
	}
	list := strings.Join(roots, ", ")
	if len(list)+len(notice) > longest {
		list = fmt.Sprintf("%s and %d more", roots[0], len(roots)-1)
	}
	return served + "These tools work on the files below " + list + ". Relative paths start at the first of them. " +
		"Read a file before you edit or overwrite it. A refusal names the rule that caused it and what to do next." + notice
}

// A client is the other end of a request, as the transport knows it. It travels in the context, because
// the library calls our handlers with nothing else.
type client struct {
	transport.Peer
	admission *Admission // nil for what is no call of a tool
	name      string     // that was called, which may be an alias
	tool      resolved   // what it stands for
	// arguments are those of a call that the library was not shown; nil if it was.
	arguments json.RawMessage
}

type clientKey struct{}

func withClient(ctx context.Context, c *client) context.Context {
	return context.WithValue(ctx, clientKey{}, c)
}

func clientOf(ctx context.Context) (*client, bool) {
	c, ok := ctx.Value(clientKey{}).(*client)
	return c, ok
}

// callerOf is the caller of a request. Without one it has no rights.
func callerOf(ctx context.Context) (who auth.Identity) {
	if c, ok := clientOf(ctx); ok {
		who = c.Who
	}
	return who
}

// maxQuestions bounds how often a person is asked about one call: a call whose plan changes with every
// answer is not one that anybody can judge.
const maxQuestions = 3

// call is the handler of every tool. When a person must be asked, a modern client gets the question as the
// result and repeats the call with the answer; a legacy one is asked here, and the call is repeated for it. So it
// is for a client that cannot ask, when the owner of the machine can be asked in its place.
func (s *Server) call(ctx context.Context, req mcp.CallToolRequest) (*mcp.CallToolResult, error) {
	c, ok := clientOf(ctx)
	if !ok || c.admission == nil {
		return nil, fmt.Errorf("the call of %s did not come through a transport of this host", req.Params.Name)
	}
	name, tool := c.name, c.tool
	if name == "" {
		name, tool = req.Params.Name, s.host.tools.resolve(req.Params.Name)
	}
	arguments := req.Params.RawArguments
	if c.arguments != nil {
		arguments = c.arguments
	}
	asks := canAsk(ctx)
	repeats := asks && server.IsModernRequest(ctx)
	program := clientinfo.FromRequest(ctx, req)
	shown := newReporter(ctx, c, req.Params.Name, req.Params.Meta)
	defer shown.stop()
	call := Request{
		Tool: name, tool: tool, Args: s.host.tools.withoutSession(tool, arguments), Progress: shown.callback(),
		CanAsk: asks || s.host.approvals.operatorPresent(), Answer: answerIn(req.Params.MultiRoundTripParams),
		Origin: originOf(ctx, c, req), ClientLimits: program.Passes,
	}
	if call.Repeats = repeats; asks && !repeats {
		call.AskUser = s.put
	}
	var own *extraRun // of an extra tool, which answers in the library's words
	if tool.extra != nil {
		own = &extraRun{call: ExtraCall{CallToolRequest: req, Notify: c.Notify}}
		ctx = context.WithValue(ctx, extraKey{}, own)
	}
	reply := s.host.Call(ctx, c.admission, call)
	for n := 0; reply.Question != nil && !repeats && n < maxQuestions; n++ {
		shown.report(asking)
		if asks {
			call.Answer = s.put(ctx, reply.Question)
		} else {
			call.Answer = s.host.approvals.askOperator(ctx, c.admission, call, reply.Question)
		}
		shown.forget()
		reply = s.host.Call(ctx, s.host.readmit(c.admission), call)
	}
	if reply.Question != nil && repeats {
		return toQuestion(reply.Question), nil
	}
	if own != nil {
		return own.answer(reply), nil
	}
	result := toResult(s.host.tools.tellSession(reply))
	if !s.host.cfg.Structured.To(program) {
		result.StructuredContent = nil
	}
	return result, nil
}

// filterTools takes tools off the list that a rule denies by name, or that the caller has no right to.
func (s *Server) filterTools(ctx context.Context, _ any, _ *mcp.ListToolsRequest, result *mcp.ListToolsResult) {
	seen := s.host.Tools(callerOf(ctx))
	result.Tools = slices.DeleteFunc(result.Tools, func(t mcp.Tool) bool {
		return !slices.ContainsFunc(seen, func(d *builtin.Def) bool { return d.Name == t.Name })
	})
}
