package mcpserver

import (
	"context"
	"fmt"

	"github.com/mark3labs/mcp-go/mcp"

	"github.com/toolhost/toolhost/mcpserver/internal/jsonrpc"
)

// A plain call bypasses the library, which decodes each message five times. See BenchmarkStdioReads16.

// needsNoLibrary reports whether the host handles a call without the library: it serves the tool itself or for another
// server, and there is no extension.
func (m *message) needsNoLibrary() bool {
	return m.Plain && (m.tools[m.tool.name] || m.tool.handler() == foreignHandler) &&
		m.host.cfg.Extension.Options == nil
}

// answerCall answers a plain call as the library would.
func (m *message) answerCall(ctx context.Context) (response mcp.JSONRPCMessage) {
	defer func() {
		if p := recover(); p != nil {
			no := jsonrpc.Error{ID: m.ID, Code: mcp.INTERNAL_ERROR,
				Text: fmt.Sprintf("panic recovered in %s tool handler: %v", m.Params.Name, p)}
			response = no.Response()
		}
	}()
	req := mcp.CallToolRequest{Request: mcp.Request{Method: jsonrpc.MethodCall},
		Params: mcp.CallToolParams{Name: m.tool.name, RawArguments: m.Arguments}}
	if m.Params.Meta != nil {
		req.Params.Meta = mcp.NewMetaFromMap(m.Params.Meta)
	}
	result, err := m.call(ctx, req)
	if err != nil {
		no := jsonrpc.Error{ID: m.ID, Code: mcp.INTERNAL_ERROR, Text: err.Error()}
		return no.Response()
	}
	return mcp.JSONRPCResponse{JSONRPC: mcp.JSONRPC_VERSION, ID: mcp.NewRequestId(m.ID), Result: result}
}
