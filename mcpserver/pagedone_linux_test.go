package mcpserver

import (
	"encoding/json"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// pageServer asks its user to open a page in each call, and says that it is done after the answer.
const pageServer = `#!/bin/bash
answer() { printf '{"jsonrpc":"2.0","id":%s,"result":%s}\n' "$1" "$2"; }
while read -r line; do
	[[ $line =~ \"id\":([0-9]+) ]] || continue
	id=${BASH_REMATCH[1]}
	case $line in
	*'"initialize"'*) answer "$id" '{"protocolVersion":"2025-11-25","capabilities":{"tools":{}}}' ;;
	*'"tools/list"'*) answer "$id" '{"tools":[{"name":"run","inputSchema":{"type":"object"}}]}' ;;
	*'"tools/call"'*)
		printf '{"jsonrpc":"2.0","id":900,"method":"elicitation/create","params":{"mode":"url","message":"pay","url":"https://pay.example/","elicitationId":"e1"}}\n'
		read -r line
		answer "$id" '{"content":[{"type":"text","text":"ran"}]}'
		printf '{"jsonrpc":"2.0","method":"notifications/elicitation/complete","params":{"elicitationId":"e1"}}\n' ;;
	*) printf '{"jsonrpc":"2.0","id":%s,"error":{"code":-32601,"message":"no"}}\n' "$id" ;;
	esac
done
`

// TestPageDone: the client that was asked to open a page is told that it is done.
func TestPageDone(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("bash"); err != nil {
		t.Skip("bash is missing")
	}
	dir := t.TempDir()
	script, servers := filepath.Join(dir, "server.sh"), filepath.Join(dir, "servers.json")
	writeFile(t, script, pageServer)
	raw, _ := json.Marshal(map[string]any{"mcpServers": map[string]any{"s": map[string]any{"command": "bash",
		"args": []string{script}, "sandbox": false}}})
	writeFile(t, servers, string(raw))
	c := startPipe(t, nil, func(c *Config) { c.MCPConfig, c.Allow = []string{servers}, []string{"mcp__s"} })
	c.send(strings.Replace(initialize, `"capabilities":{}`, `"capabilities":{"elicitation":{"form":{},"url":{}}}`, 1))
	c.receive()
	c.send(`{"jsonrpc":"2.0","method":"notifications/initialized"}`)
	c.send(toolCall(7, "mcp__s__run", `{}`))
	for {
		a := c.receive()
		switch {
		case a.Method == "elicitation/create":
			c.send(`{"jsonrpc":"2.0","id":` + string(a.ID) + `,"result":{"action":"accept"}}`)
		case a.Method == "notifications/elicitation/complete":
			return
		case a.Error != nil || strings.Contains(string(a.Result), `"isError":true`):
			t.Fatalf("the call failed: %+v", a)
		}
	}
}
