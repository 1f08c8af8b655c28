package mcpserver

import (
	"context"
	"strings"
	"testing"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"
)

// TestLibraryValidation holds the package that stands in for the library's validator to what a host that asked the library
// to validate would rely on.
func TestLibraryValidation(t *testing.T) {
	s := server.NewMCPServer("test", "0", server.WithInputSchemaValidation())
	tool := mcp.NewToolWithRawSchema("count", "", []byte(`{"type":"object","properties":{"n":{"type":"integer","minimum":1}},"required":["n"],"additionalProperties":false}`))
	s.AddTool(tool, func(context.Context, mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		return mcp.NewToolResultText("ran"), nil
	})
	for arguments, want := range map[string]string{
		`{"n":1}`: "ran", `{"n":9007199254740993}`: "ran",
		`{"n":0}`: "minimum", `{"n":"1"}`: "type", `{}`: "required", `{"n":1,"m":2}`: "additional", `null`: "required",
	} {
		line := `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"count","arguments":` + arguments + `}}`
		response, ok := s.HandleMessage(t.Context(), []byte(line)).(mcp.JSONRPCResponse)
		if !ok {
			t.Errorf("%s: no response", arguments)
			continue
		}
		result, ok := response.Result.(*mcp.CallToolResult)
		if !ok || len(result.Content) == 0 {
			t.Errorf("%s: no result: %v", arguments, response.Result)
			continue
		}
		text := result.Content[0].(mcp.TextContent).Text
		if result.IsError != (want != "ran") || !strings.Contains(text, want) {
			t.Errorf("%s: error %t, %q; want %q in it", arguments, result.IsError, text, want)
		}
	}
}
