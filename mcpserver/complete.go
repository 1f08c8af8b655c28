package mcpserver

import (
	"context"
	"encoding/json"

	"github.com/mark3labs/mcp-go/mcp"

	"github.com/toolhost/toolhost/builtin"
	"github.com/toolhost/toolhost/mcpserver/internal/gateway"
	"github.com/toolhost/toolhost/mcpserver/internal/transport"
)

// A completer completes arguments of the prompts and resource templates of other servers. A completion is a read of
// the prompt or the resource: rules, rights, hooks and the audit log apply to it.
type completer struct{ *Server }

// CompletePromptArgument implements [server.PromptCompletionProvider].
func (s completer) CompletePromptArgument(ctx context.Context, name string, a mcp.CompleteArgument,
	c mcp.CompleteContext) (*mcp.Completion, error) {
	return s.complete(ctx, gateway.Completion{Prompt: name, Argument: a, Context: c}, name)
}

// CompleteResourceArgument implements [server.ResourceCompletionProvider].
func (s completer) CompleteResourceArgument(ctx context.Context, uri string, a mcp.CompleteArgument,
	c mcp.CompleteContext) (*mcp.Completion, error) {
	return s.complete(ctx, gateway.Completion{Template: uri, Argument: a, Context: c}, "mcp__"+
		gateway.ServerOf(uri)+"__")
}

// complete returns no values if the caller may not know of the server with this name, or there is no completion.
func (s completer) complete(ctx context.Context, of gateway.Completion, name string) (*mcp.Completion, error) {
	if !s.mayConsult(transport.PeerOf(ctx).Who, name) {
		return nil, nil
	}
	peer := transport.PeerOf(ctx)
	peer.Unattended = true // no person is asked for a completion
	args, err := json.Marshal(of)
	if err != nil {
		return nil, err
	}
	def := builtin.External(builtin.Def{Name: "ReadMcpResource", Hints: builtin.Hints{ReadOnly: true}}, true,
		func(_ context.Context, env *builtin.Env, _ json.RawMessage) (builtin.Plan, error) {
			return s.host.children.consults(env.Principal).Complete(env, of)
		})
	_, passed, err := s.consult(transport.WithPeer(ctx, peer), def, args, nil, mcp.MultiRoundTripParams{})
	found, _ := passed.(*mcp.Completion)
	return found, err
}
