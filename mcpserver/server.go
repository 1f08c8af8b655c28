package mcpserver

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"

	"github.com/toolhost/toolhost/builtin"
	"github.com/toolhost/toolhost/guard"
	"github.com/toolhost/toolhost/mcpserver/auth"
	"github.com/toolhost/toolhost/mcpserver/internal/transport"
)

// LocalPrincipal is the principal of calls over stdio and from the command line: the user that runs the host.
const LocalPrincipal = "local"

// Local returns the identity of the user that runs the host, with every right.
func Local() auth.Identity { return auth.Identity{Principal: LocalPrincipal, Rights: auth.All} }

// A Server speaks MCP for a [Host]. One server may serve several transports.
type Server struct {
	host  *Host
	mcp   *server.MCPServer
	tools map[string]bool // names of the tools of this host that it serves

	subscriptions subscriptions
}

// NewServer returns an MCP server for a host.
func NewServer(h *Host) (*Server, error) {
	s := &Server{host: h, tools: map[string]bool{},
		subscriptions: subscriptions{tell: map[*mcp.SubscriptionsListenRequest]func(string){}}}
	hooks := &server.Hooks{}
	hooks.AddAfterListTools(s.filterTools)
	hooks.AddAfterInitialize(func(ctx context.Context, _ any, _ *mcp.InitializeRequest, r *mcp.InitializeResult) {
		r.Instructions = s.instructions(ctx)
		s.consultable(&r.Capabilities)
	})
	hooks.AddAfterDiscover(func(ctx context.Context, _ any, _ *mcp.DiscoverRequest, r *mcp.DiscoverResult) {
		r.Capabilities.Extensions = maps.Clone(r.Capabilities.Extensions)
		if r.Capabilities.Extensions == nil {
			r.Capabilities.Extensions = map[string]any{}
		}
		r.Capabilities.Extensions[tasksExtension] = struct{}{}
		if s.servesSkills(transport.PeerOf(ctx).Who) {
			r.Capabilities.Extensions[skillsExtension] = map[string]any{"directoryRead": true}
		}
		r.Instructions = s.instructions(ctx)
		s.consultable(&r.Capabilities)
	})
	hooks.AddBeforeCallTool(func(ctx context.Context, _ any, req *mcp.CallToolRequest) {
		if r, ok := callOf(ctx); ok { // the call may use an alias
			req.Params.Name = r.tool.handler()
		}
	})
	hooks.AddBeforeSubscriptionsListen(s.subscribe)
	hooks.AddAfterSubscriptionsListen(s.unsubscribe)
	options := []server.ServerOption{
		server.WithTitle("toolhost"),
		server.WithToolCapabilities(true), // when a person changes the rules, never as a side effect of a request
		server.WithPromptCapabilities(true), server.WithResourceCapabilities(false, true),
		server.WithCacheHints(listFresh.Milliseconds(), mcp.CacheScopePrivate),
		// a server may change a resource at any time
		server.WithMethodCacheHints(mcp.MethodResourcesRead, 0, mcp.CacheScopePrivate),
		server.WithCompletions(), server.WithPromptCompletionProvider(completer{s}),
		server.WithResourceCompletionProvider(completer{s}),
		server.WithRecovery(),
		server.WithHooks(hooks),
	}
	s.mcp = server.NewMCPServer("toolhost", h.cfg.Version, append(options, h.cfg.Extension.Options...)...)
	s.extend(h.cfg.Extension)
	s.serveConsults(hooks)
	s.serveSkills(hooks)
	for _, d := range h.tools.own {
		if !d.Enabled(h.runtime) {
			continue
		}
		s.mcp.AddTool(h.tools.now().shown[d], adapter{Server: s}.call)
		s.tools[d.Name] = h.tools.extra[d.Name] == nil
	}
	s.mcp.AddTool(mcp.NewTool(foreignHandler), adapter{Server: s}.call)
	h.policies.onList(s.listChanged)
	h.gateway.Look()
	return s, nil
}

// instructions returns the instructions for the caller of a request, under its current rules and rights.
func (s *Server) instructions(ctx context.Context) string {
	policy := s.host.policies.of(transport.PeerOf(ctx).Who.Principal)
	return instructions(policy.Roots(), s.listed(ctx, s.host.tools.now(), policy), s.host.policies.sharedDenies(policy))
}

// instructions returns the instructions for a model: the tools, the roots, and tools that a rule may have removed by
// mistake. Clients cut the text at 2,048 characters. The first sentence contains the words that models search for:
// Codex (0.169.0) shows the instructions but not the tools.
func instructions(roots []string, tools []*builtin.Def, missing []guard.SharedDeny) string {
	const longest = 1200
	var briefs []string
	for _, d := range tools {
		if d.Brief != "" && d.Server == "" {
			briefs = append(briefs, d.Name+" ("+d.Brief+")")
		}
	}
	served := ""
	if len(briefs) > 0 {
		served = "File and shell tools: " + strings.Join(briefs, ", ") + ". "
	}
	if slices.ContainsFunc(tools, func(d *builtin.Def) bool { return d.Name == toolSearchName }) {
		served += "Tools of other servers: find them with ToolSearch, call them with ToolCall. "
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

// foreignHandler is the library's name for the handler of all tools of other servers. The library knows none of these
// tools, so a running call is unaffected by changes of the list.
const foreignHandler = "mcp__"

// listed returns the tools that are listed for the caller of a request. A tool that asks a person is left out if no
// person can be asked.
func (s *Server) listed(ctx context.Context, now *snapshot, policy *guard.Policy) []*builtin.Def {
	peer := transport.PeerOf(ctx)
	present := s.host.approvals.asksOperator(peer.Who.Principal)
	asks, shows := present || s.canAsk(ctx), present || showsForms(ctx)
	listed := s.host.tools.listed(now, viewer{policy, peer.Who, peer.List})
	return slices.DeleteFunc(listed, func(d *builtin.Def) bool { return d.NeedsPerson && !asks || d.NeedsForm && !shows })
}

// filterTools replaces the list by what the host serves the caller. The library adds what the options of an extension
// contribute.
func (s *Server) filterTools(ctx context.Context, _ any, _ *mcp.ListToolsRequest, result *mcp.ListToolsResult) {
	s.host.gateway.Wait(ctx)
	now, list, views := s.host.tools.now(), []mcp.Tool{}, showsViews(ctx)
	for _, d := range s.listed(ctx, now, s.host.policies.of(transport.PeerOf(ctx).Who.Principal)) {
		tool := now.shown[now.byName[d.Name].def]
		tool.Description = d.Doc // the description of ToolSearch depends on the caller
		if d.View != nil && views {
			tool.Meta = withView(tool.Meta, d.View)
		}
		list = append(list, tool)
	}
	for _, t := range result.Tools {
		if _, ours := s.tools[t.Name]; !ours && t.Name != foreignHandler {
			list = append(list, t)
		}
	}
	result.Tools = list
}
