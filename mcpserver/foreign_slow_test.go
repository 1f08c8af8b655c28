//go:build slow

package mcpserver

import (
	"testing"
)

// TestForeignChanged: clients of both eras are told of a change that they can see, and of no other.
func TestForeignChanged(t *testing.T) {
	t.Parallel()
	for era, listen := range map[string]string{
		"modern": listenForTools,
		"legacy": `{"jsonrpc":"2.0","id":5,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"old","version":"1"}}}`,
	} {
		t.Run(era, func(t *testing.T) {
			c := startPipe(t, nil, func(c *Config) { c.ToolSearch, c.Deny = "off", []string{"mcp__s__hidden"} })
			c.send(listen)
			c.receive()
			if era == "legacy" {
				c.send(`{"jsonrpc":"2.0","method":"notifications/initialized"}`)
				c.send(toolCall(1, "Glob", `{"pattern":"*"}`))
				c.receive()
			}
			serve(t, c.host, false, foreignTool("s", "one", "One.", "{}"))
			if a := c.receive(); !isListChanged(a) {
				t.Fatalf("not told of a tool: %+v", a)
			}
			serve(t, c.host, false, foreignTool("s", "one", "One.", "{}"), foreignTool("s", "hidden", "", "{}"))
			serve(t, c.host, false, foreignTool("s", "one", "One, changed.", "{}"))
			if a := c.receive(); !isListChanged(a) {
				t.Fatalf("not told of a definition: %+v", a)
			}
			c.send(toolCall(2, "Glob", `{"pattern":"*"}`))
			if a := c.receive(); string(a.ID) != "2" {
				t.Errorf("told of a change that cannot be seen: %+v", a)
			}
		})
	}
}
