//go:build slow

package mcpserver

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// hangingServer hangs when it gets the method in HANG, with a line that never ends if DRIP is set. With FIRST, the first
// process does not hang. It ignores the end of its input.
const hangingServer = `#!/bin/bash
answer() { printf '{"jsonrpc":"2.0","id":%s,"result":%s}\n' "$1" "$2"; }
hang() { while :; do [[ $DRIP ]] && printf '{'; sleep 0.05; done; }
if [[ $FIRST ]] && mkdir "$FIRST" 2>/dev/null; then HANG=; fi
[[ $HANG = start ]] && hang
while read -r line; do
	[[ $line =~ \"id\":([0-9]+) ]] || continue
	id=${BASH_REMATCH[1]}
	[[ $HANG && $line = *"\"$HANG\""* ]] && hang
	case $line in
	*'"initialize"'*) answer "$id" '{"protocolVersion":"2025-06-18","capabilities":{"tools":{"listChanged":true}}}' ;;
	*'"tools/list"'*) answer "$id" '{"tools":[{"name":"run","inputSchema":{"type":"object"}}]}'
		if [[ $HANG = refresh ]]; then
			printf '{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}\n'
			HANG=tools/list
		fi ;;
	*'"tools/call"'*) answer "$id" '{"content":[{"type":"text","text":"ran"}]}' ;;
	*) printf '{"jsonrpc":"2.0","id":%s,"error":{"code":-32601,"message":"no"}}\n' "$id" ;;
	esac
done
hang
`

// TestHangingServer: a call that waits for a server which hangs does not hold up later calls of its conversation: their
// answers come although it has none.
func TestHangingServer(t *testing.T) {
	if testing.Short() {
		t.Skip("not with -short")
	}
	if _, err := exec.LookPath("bash"); err != nil {
		t.Skip("bash is missing")
	}
	for _, tt := range []struct {
		name, hang  string
		drip, known bool
	}{
		{"at the start", "start", false, false},
		{"at the start, dripping", "start", true, false},
		{"at initialize", "initialize", false, false},
		{"at the list", "tools/list", false, false},
		{"at the start of a known server", "start", false, true},
		{"at initialize of a known server", "initialize", true, true},
		{"at the list of a known server", "tools/list", false, true},
		{"at the call", "tools/call", false, true},
		{"at the call, dripping", "tools/call", true, true},
		{"at the list that has changed, and the call", "refresh", false, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c := hanging(t, tt.hang, tt.drip, tt.known)
			c.send(toolCall(1, "mcp__s__run", "{}"))
			c.send(toolCall(2, "mcp__s__run", "{}"))
			c.send(toolCall(3, "Bash", `{"command":"echo runs"}`))
			got := map[string]bool{}
			for !got["3"] {
				a := c.receive()
				if got[string(a.ID)] = true; string(a.ID) == "3" && !strings.Contains(string(a.Result), "runs") {
					t.Errorf("Bash: %s", a.Result)
				}
			}
			if hangs := tt.hang != "refresh"; hangs && len(got) > 1 {
				t.Errorf("answers before that of Bash: %v", got)
			}
			c.send(toolCall(4, "Bash", `{"command":"echo again"}`))
			for a := c.receive(); string(a.ID) != "4"; a = c.receive() {
			}
		})
	}
}

// hanging opens a host with a server that hangs. If known, the server hangs once its tools are known.
func hanging(t *testing.T, hang string, drip, known bool) *pipeClient {
	t.Helper()
	dir := t.TempDir()
	program, file := filepath.Join(dir, "server.sh"), filepath.Join(dir, "servers.json")
	if err := os.WriteFile(program, []byte(hangingServer), 0o700); err != nil {
		t.Fatal(err)
	}
	env := map[string]string{"HANG": hang}
	if drip {
		env["DRIP"] = "1"
	}
	if known {
		env["FIRST"] = filepath.Join(dir, "first")
	}
	raw, err := json.Marshal(map[string]any{"mcpServers": map[string]any{"s": map[string]any{"command": program,
		"env": env, "sandbox": false}}})
	if err == nil {
		err = os.WriteFile(file, raw, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	c := startPipe(t, nil, func(c *Config) { c.MCPConfig, c.Allow = []string{file}, []string{"mcp__s", "Bash"} })
	for known && !c.host.tools.has("mcp__s__run") {
		c.host.gateway.Wait(t.Context())
		time.Sleep(20 * time.Millisecond)
	}
	return c
}
