package mcpserver

import (
	"context"
	"fmt"

	"github.com/mark3labs/mcp-go/mcp"

	"github.com/toolhost/toolhost/mcpserver/internal/jsonrpc"
)

// answersPlain reports whether a call needs nothing of the library: its tool is one of ours, and no extension takes part.
func (f front) answersPlain(m jsonrpc.Envelope, tool resolved) bool {
	return m.Plain && f.tools[tool.name] && f.host.cfg.Extension.Options == nil
}

// callPlain answers a plain call as the library would.
func (f front) callPlain(ctx context.Context, m jsonrpc.Envelope, tool resolved) (response mcp.JSONRPCMessage) {
	defer func() {
		if p := recover(); p != nil {
			no := jsonrpc.Error{ID: m.ID, Code: mcp.INTERNAL_ERROR, Text: fmt.Sprintf("panic recovered in %s tool handler: %v", m.Params.Name, p)}
			response = no.Response()
		}
	}()
	req := mcp.CallToolRequest{Request: mcp.Request{Method: jsonrpc.MethodCall}, Params: mcp.CallToolParams{Name: tool.name, RawArguments: m.Arguments}}
	if m.Params.Meta != nil {
		req.Params.Meta = mcp.NewMetaFromMap(m.Params.Meta)
	}
	result, err := f.call(ctx, req)
	if err != nil {
		no := jsonrpc.Error{ID: m.ID, Code: mcp.INTERNAL_ERROR, Text: err.Error()}
		return no.Response()
	}
	return jsonrpc.Answer{ID: m.ID, Result: result}
}
