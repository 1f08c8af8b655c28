package mcpserver

import (
	"encoding/json"
	"strings"
	"testing"
)

// TestViews: the view of a tool is listed to clients that show views, and to no others.
func TestViews(t *testing.T) {
	for capabilities, want := range map[string]bool{`{}`: false,
		`{"extensions":{"io.modelcontextprotocol/ui":{"mimeTypes":["text/html;profile=mcp-app"]}}}`: true} {
		c := startPipe(t, nil, func(c *Config) { c.ToolSearch, c.Allow = "off", []string{"mcp__a"} })
		d := foreignTool("a", "chart", "", "{}")
		d.View = json.RawMessage(`{"resourceUri":"ui://chart/view.html"}`)
		serve(t, c.host, true, d)
		c.send(`{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":` + capabilities + `,"clientInfo":{"name":"x","version":"1"}}}`)
		c.receive()
		c.send(`{"jsonrpc":"2.0","id":1,"method":"tools/list"}`)
		if a := c.receive(); strings.Contains(string(a.Result), `"ui":{"resourceUri":"ui://chart/view.html"}`) != want {
			t.Errorf("%s: listed: %s", capabilities, a.Result)
		}
	}
}
