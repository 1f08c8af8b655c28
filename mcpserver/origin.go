package mcpserver

import (
	"context"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"

	"github.com/toolhost/toolhost/mcpserver/audit"
)

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
