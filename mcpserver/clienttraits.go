package mcpserver

import (
	"context"
	"strings"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"
)

// clientTraits are what tells how a client passes results on to a model: what it calls itself, and whether it shows views.
type clientTraits struct {
	name  string
	views bool
}

// traitsOf are those of the client of a call: as the call says, or as its session began.
func traitsOf(ctx context.Context, req mcp.CallToolRequest) (c clientTraits) {
	if meta := req.Params.Meta; meta != nil {
		if info, ok := meta.AdditionalFields[mcp.MetaKeyClientInfo].(map[string]any); ok {
			c.name, _ = info["name"].(string)
			declared, _ := meta.AdditionalFields[mcp.MetaKeyClientCapabilities].(map[string]any)
			extensions, _ := declared["extensions"].(map[string]any)
			_, c.views = extensions[viewsExtension]
			return c
		}
	}
	if s, ok := server.ClientSessionFromContext(ctx).(server.SessionWithClientInfo); ok {
		c.name = s.GetClientInfo().Name
		_, c.views = s.GetClientCapabilities().Extensions[viewsExtension]
	}
	return c
}

// claudeErrors is how many characters Claude Code (2.0.0 to 2.1.330) shows a model of a result that is an error; of a longer one it
// drops the middle, for good.
const claudeErrors = 10_000

// errorLimit is the longest error that the client passes on whole, 0 if it passes on any.
func (c clientTraits) errorLimit() int {
	if strings.HasPrefix(c.name, "claude") {
		return claudeErrors
	}
	return 0
}
