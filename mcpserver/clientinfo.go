package mcpserver

import (
	"context"
	"strings"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"

	"github.com/toolhost/toolhost/builtin"
)

// A clientInfo holds what determines how a client passes results on to a model: its name and whether it shows views.
type clientInfo struct {
	Name, Version string
	Views         bool
}

// clientOf returns the client of a call, as given in the call or at the start of its session.
func clientOf(ctx context.Context, req mcp.CallToolRequest) (c clientInfo) {
	if meta := req.Params.Meta; meta != nil {
		if info, ok := meta.AdditionalFields[mcp.MetaKeyClientInfo].(map[string]any); ok {
			c.Name, _ = info["name"].(string)
			c.Version, _ = info["version"].(string)
			declared, _ := meta.AdditionalFields[mcp.MetaKeyClientCapabilities].(map[string]any)
			extensions, _ := declared["extensions"].(map[string]any)
			_, c.Views = extensions[viewsExtension]
			return c
		}
	}
	if s, ok := server.ClientSessionFromContext(ctx).(server.SessionWithClientInfo); ok {
		c.Name, c.Version = s.GetClientInfo().Name, s.GetClientInfo().Version
		_, c.Views = s.GetClientCapabilities().Extensions[viewsExtension]
	}
	return c
}

// passing lists how much of a result clients pass on to a model, by prefix of the client's name. From longer results
// they drop the middle for good (Claude Code's errors, Codex, Cline), or they write the result to a file of their own
// and show a part: Copilot shows 500 characters of 20,000. Claude Code takes its limit for other results from the
// description of a tool. Observed with Claude Code 2.0.0, 2.1.200 and 2.1.330, Codex 0.169.0, Copilot CLI 1.0.102,
// Gemini CLI 0.61.0, opencode 1.18.33, Qwen Code 0.24.4, Cline CLI 3.0.65, Kilo and Kimi Code 2.1.0.
var passing = []struct {
	name string
	builtin.ClientLimits
}{
	{"claude", builtin.ClientLimits{Error: 10_000}},
	{"codex", builtin.ClientLimits{Result: 40_000}}, // 10,000 tokens
	{"copilot", builtin.ClientLimits{Result: 19_500}},
	{"gemini", builtin.ClientLimits{Result: 39_500}},
	{"opencode", builtin.ClientLimits{Result: 50_000}},
	{"kilo", builtin.ClientLimits{Result: 50_000}}, // 50 KiB
	{"kimi", builtin.ClientLimits{Result: 49_500}},
	{"qwen", builtin.ClientLimits{Result: 24_500}},
	{"@cline", builtin.ClientLimits{Result: 6_500}}, // 8,000 of the JSON of a result, in which newlines and quotes count twice
}

// passes returns how much of a result the client passes on to a model, or other (in characters) if the client is not
// known.
func (c clientInfo) passes(other int) builtin.ClientLimits {
	for i := range passing {
		if strings.HasPrefix(c.Name, passing[i].name) {
			return passing[i].ClientLimits
		}
	}
	return builtin.ClientLimits{Result: other}
}
