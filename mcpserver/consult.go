package mcpserver

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"

	"github.com/toolhost/toolhost/builtin"
	"github.com/toolhost/toolhost/mcpserver/auth"
	"github.com/toolhost/toolhost/mcpserver/internal/gateway"
	"github.com/toolhost/toolhost/mcpserver/internal/jsonrpc"
	"github.com/toolhost/toolhost/mcpserver/internal/transport"
)

// The prompts and resources of other servers are passed on. Getting one is a call: rules, rights, hooks and the audit
// log apply to it.

// maxConsulted limits a prompt or resource of another server, in bytes of JSON. Clients pass it to the model unchanged.
const maxConsulted = 4 << 20

// checkSize returns an error for an answer over [maxConsulted].
func checkSize(what string, answer any) error {
	raw, err := json.Marshal(answer)
	if err == nil && len(raw) > maxConsulted {
		err = fmt.Errorf("%s has %d bytes, over the limit of %d: request a part of it, or read a resource with the tool "+
			"ReadMcpResource, which saves long results", what, len(raw), maxConsulted)
	}
	return err
}

// offers reports what servers, skills and the extension offer besides tools. Nothing else is declared, and nothing
// else is answered.
func (s *Server) offers() (prompts, resources, completions bool) {
	e, servers := s.host.cfg.Extension, len(s.host.gateway.Servers()) > 0
	return servers || len(e.Prompts) > 0, servers || s.host.tools.has(skillTool) ||
		len(e.Resources)+len(e.Templates) > 0, servers || len(e.Options) > 0
}

// consultable removes the capabilities that are not offered.
func (s *Server) consultable(c *mcp.ServerCapabilities) {
	prompts, resources, completions := s.offers()
	if !prompts {
		c.Prompts = nil
	}
	if !completions {
		c.Completions = nil
	}
	if !resources {
		c.Resources = nil
	}
}

// notOffered returns the error for a request about something that is not offered.
func (m *message) notOffered() *jsonrpc.Error {
	prompts, resources, completions := m.offers()
	kind, _, _ := strings.Cut(m.Method, "/")
	if offered, known := map[string]bool{"prompts": prompts, "resources": resources,
		"completion": completions}[kind]; offered || !known {
		return nil
	}
	return &jsonrpc.Error{ID: m.ID, Code: mcp.METHOD_NOT_FOUND, Text: m.Method + ": this server does not declare " +
		kind, Ordinary: true}
}

// serveConsults answers the requests for prompts and resources of other servers. The library has one prompt and one
// template that represent all of them.
func (s *Server) serveConsults(hooks *server.Hooks) {
	s.mcp.AddPrompt(mcp.NewPrompt(foreignHandler), s.getPrompt)
	s.mcp.AddResourceTemplate(mcp.NewResourceTemplate(gateway.Scheme+"{+address}", foreignHandler), s.readResource)
	s.mcp.AddResourceTemplate(mcp.NewResourceTemplate("ui://{+address}", foreignHandler), s.readResource)
	hooks.AddBeforeGetPrompt(func(_ context.Context, _ any, req *mcp.GetPromptRequest) {
		if strings.HasPrefix(req.Params.Name, foreignHandler) {
			if req.Params.Arguments == nil {
				req.Params.Arguments = map[string]string{}
			}
			req.Params.Arguments[foreignHandler], req.Params.Name = req.Params.Name, foreignHandler
		}
	})
	hooks.AddAfterListPrompts(func(ctx context.Context, _ any, _ *mcp.ListPromptsRequest, r *mcp.ListPromptsResult) {
		r.Prompts = slices.DeleteFunc(r.Prompts, func(p mcp.Prompt) bool { return p.Name == foreignHandler })
		s.host.gateway.Wait(ctx)
		for _, p := range s.prompts(transport.PeerOf(ctx).Who) {
			r.Prompts = append(r.Prompts, p.Prompt)
		}
	})
	hooks.AddAfterListResources(func(ctx context.Context, _ any, _ *mcp.ListResourcesRequest,
		r *mcp.ListResourcesResult) {
		who := transport.PeerOf(ctx).Who
		c := s.host.children.consults(who.Principal)
		c.Wait(ctx, "")
		for _, one := range c.Resources() {
			if s.mayConsult(who, "mcp__"+one.Server+"__") {
				r.Resources = append(r.Resources, one.Resource)
			}
		}
	})
	hooks.AddAfterListResourceTemplates(func(ctx context.Context, _ any, _ *mcp.ListResourceTemplatesRequest,
		r *mcp.ListResourceTemplatesResult) {
		who := transport.PeerOf(ctx).Who
		c := s.host.children.consults(who.Principal)
		c.Wait(ctx, "")
		r.ResourceTemplates = slices.DeleteFunc(r.ResourceTemplates,
			func(t mcp.ResourceTemplate) bool { return t.Name == foreignHandler })
		for _, one := range c.Templates() {
			if s.mayConsult(who, "mcp__"+one.Server+"__") {
				r.ResourceTemplates = append(r.ResourceTemplates, one.ResourceTemplate)
			}
		}
	})
}

// consults returns what other servers offer a caller besides tools. An agent sees what its caller sees.
func (c *children) consults(principal string) gateway.Consults {
	return c.host.gateway.Consults(c.caller(principal))
}

// mayConsult reports whether a caller may know of a prompt with this name, or for mcp__SERVER__, of the resources of
// a server.
func (s *Server) mayConsult(who auth.Identity, name string) bool {
	return s.host.tools.visible(&builtin.Def{Name: name}, s.host.policies.of(who.Principal), who)
}

// prompts returns the prompts that a caller may get.
func (s *Server) prompts(who auth.Identity) []gateway.Prompt {
	return slices.DeleteFunc(s.host.children.consults(who.Principal).Prompts(),
		func(p gateway.Prompt) bool { return !s.mayConsult(who, p.Name) })
}

// prompt returns a prompt that a caller may get.
func (s *Server) prompt(who auth.Identity, name string) (gateway.Prompt, error) {
	all := s.prompts(who)
	i := slices.IndexFunc(all, func(p gateway.Prompt) bool { return p.Name == name })
	if i < 0 {
		return gateway.Prompt{}, fmt.Errorf("there is no prompt %q: prompts/list lists the prompts", clipped(name))
	}
	return all[i], nil
}

func (s *Server) getPrompt(ctx context.Context, req mcp.GetPromptRequest) (*mcp.GetPromptResult, error) {
	name := req.Params.Arguments[foreignHandler]
	delete(req.Params.Arguments, foreignHandler)
	if s.host.tools.now().serverOf(name).Unknown {
		s.host.gateway.Wait(ctx)
	}
	p, err := s.prompt(transport.PeerOf(ctx).Who, name)
	if err != nil {
		return nil, err
	}
	args, err := json.Marshal(req.Params.Arguments)
	if err != nil {
		return nil, err
	}
	result, passed, err := s.consult(ctx, p.Def(), args, req.Params.Meta, req.Params.MultiRoundTripParams)
	switch {
	case err != nil:
		return nil, err
	case result.NeedsInput():
		return &mcp.GetPromptResult{MultiRoundTripResult: result.MultiRoundTripResult}, nil
	}
	switch got := passed.(type) {
	case *mcp.GetPromptResult:
		return got, checkSize("the prompt "+p.Name, got)
	case string: // a hook has changed it
		return mcp.NewGetPromptResult("", []mcp.PromptMessage{mcp.NewPromptMessage(mcp.RoleUser, mcp.NewTextContent(got))}),
			nil
	}
	return nil, errors.New(textIn(result))
}

func (s *Server) readResource(ctx context.Context, req mcp.ReadResourceRequest) ([]mcp.ResourceContents, error) {
	peer := transport.PeerOf(ctx)
	// The library cannot return a question for this request.
	peer.Unattended = peer.Unattended || server.IsModernRequest(ctx)
	// Listed resources are read without a question.
	s.host.children.consults(peer.Who.Principal).Wait(ctx, gateway.ServerOf(req.Params.URI))
	args, err := json.Marshal(map[string]string{"uri": req.Params.URI})
	if err != nil {
		return nil, err
	}
	def := builtin.External(builtin.Def{Name: "ReadMcpResource", Hints: builtin.Hints{ReadOnly: true}}, true,
		func(_ context.Context, env *builtin.Env, _ json.RawMessage) (builtin.Plan, error) {
			return s.host.children.consults(env.Principal).Read(env, "", req.Params.URI)
		})
	result, passed, err := s.consult(transport.WithPeer(ctx, peer), def, args, req.Params.Meta,
		req.Params.MultiRoundTripParams)
	if err != nil {
		return nil, err
	}
	switch got := passed.(type) {
	case []mcp.ResourceContents:
		return got, checkSize("the resource", got)
	case string: // a hook has changed it
		return []mcp.ResourceContents{mcp.TextResourceContents{URI: req.Params.URI, MIMEType: "text/plain",
			Text: got}}, nil
	}
	return nil, errors.New(textIn(result))
}

// consult takes a request for a prompt or resource through the pipeline, as a call of def. It also returns
// [builtin.Result.Passed].
func (s *Server) consult(ctx context.Context, def *builtin.Def, args json.RawMessage, meta *mcp.Meta,
	rounds mcp.MultiRoundTripParams) (*mcp.CallToolResult, any, error) {
	peer := transport.PeerOf(ctx)
	var given map[string]any
	if meta != nil {
		given = meta.AdditionalFields
	}
	c := &message{adapter: adapter{Server: s}, tool: resolved{def: def, name: def.Name}, peer: peer}
	c.admission = s.host.Admit(peer.Who, given, peer.Session, peer.Transport == transport.Stdio)
	defer func() { c.admission.Leave() }()
	c.Params.Name = def.Name
	req := mcp.CallToolRequest{Params: mcp.CallToolParams{Name: def.Name, RawArguments: args, Meta: meta,
		MultiRoundTripParams: rounds}}
	result, err := c.call(context.WithValue(ctx, messageKey{}, c), req)
	if m, ok := ctx.Value(consultedKey{}).(*message); ok {
		m.code = c.code
	}
	return result, c.passed, err
}

// consultedKey is the context key of the request for a prompt or resource.
type consultedKey struct{}

// coded sets the error code of a response to that of the other server, if it is a standard one. The library uses one
// code for all errors of handlers.
func (m *message) coded(answer mcp.JSONRPCMessage) mcp.JSONRPCMessage {
	e, ok := answer.(mcp.JSONRPCError)
	if !ok || m.code != mcp.INVALID_PARAMS && m.code != mcp.RESOURCE_NOT_FOUND {
		return answer
	}
	if e.Error.Code = m.code; m.Modern("") || m.Method == string(mcp.MethodPromptsGet) {
		e.Error.Code = mcp.INVALID_PARAMS
	}
	return e
}

// checkPrompt returns an error for a prompt of another server that does not have it.
func (m *message) checkPrompt(who auth.Identity) error {
	var req mcp.GetPromptRequest
	err := json.Unmarshal(m.Rest, &req)
	if name := req.Params.Name; err == nil && strings.HasPrefix(name, foreignHandler) &&
		!m.host.tools.now().serverOf(name).Unknown {
		_, err = m.prompt(who, name)
	}
	return err
}

// listResources returns the resources that a caller may read, one per line.
func listResources(ctx context.Context, h *Host, principal, server string,
	visible func(*builtin.Def) bool) (string, error) {
	c := h.children.consults(principal)
	c.Wait(ctx, server)
	if server != "" {
		if _, err := h.gateway.Review(server); err != nil { // there is no such server
			return "", err
		}
	}
	var b strings.Builder
	line := func(of string, words ...string) {
		if (server == "" || server == of) && visible(&builtin.Def{Name: "mcp__" + of + "__"}) {
			for i := range words { // a text must not start a new line
				words[i] = singleLine(words[i])
			}
			words[len(words)-1] = clippedTo(words[len(words)-1], maxPurpose)
			fmt.Fprintln(&b, strings.Join(slices.DeleteFunc(words, func(s string) bool { return s == "" }), "  "))
		}
	}
	for _, r := range c.Resources() {
		line(r.Server, r.URI, r.Name, r.MIMEType, r.Description)
	}
	for _, t := range c.Templates() {
		line(t.Server, "template "+t.URITemplate.Raw(), t.Name, t.MIMEType, t.Description)
	}
	return cmp.Or(b.String(), "No resource is listed.\n"), nil
}
