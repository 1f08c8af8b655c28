//go:build slow

package mcpserver

import (
	"encoding/json"
	"fmt"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"
)

// hangingServer hangs when it gets the method in HANG, with a line that never ends if DRIP is set. With FIRST, the first
// process does not hang. It ignores the end of its input.
const hangingServer = `#!/bin/bash
answer() { printf '{"jsonrpc":"2.0","id":%s,"result":%s}\n' "$1" "$2"; }
hang() { while [[ $DRIP ]]; do printf '{'; sleep 0.05; done; sleep 700; }
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
	t.Parallel()
	if testing.Short() {
		t.Skip("not with -short")
	}
	if _, err := exec.LookPath("bash"); err != nil {
		t.Skip("bash is missing")
	}
	tests := []struct {
		name, hang  string
		drip, known bool // whether the server hangs once its tools are known
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
	}
	dir := t.TempDir()
	program, file := filepath.Join(dir, "server.sh"), filepath.Join(dir, "servers.json")
	writeFile(t, program, hangingServer)
	servers, allow := map[string]any{}, []string{"Bash"}
	for i, tt := range tests {
		env := map[string]string{"HANG": tt.hang}
		if tt.drip {
			env["DRIP"] = "1"
		}
		if tt.known {
			env["FIRST"] = filepath.Join(dir, fmt.Sprint(i))
		}
		allow = append(allow, fmt.Sprintf("mcp__s%d", i))
		servers[fmt.Sprintf("s%d", i)] = map[string]any{"command": "bash", "args": []string{program}, "env": env, "sandbox": false}
	}
	raw, err := json.Marshal(map[string]any{"mcpServers": servers})
	if err != nil {
		t.Fatal(err)
	}
	writeFile(t, file, string(raw))
	c := startPipe(t, nil, func(c *Config) { c.MCPConfig, c.Allow = []string{file}, allow })
	call := func(row, n int, tool, args string) { // in the row's conversation
		c.send(strings.Replace(toolCall(10*row+n, tool, args), `"params":{`, fmt.Sprintf(`"params":{"_meta":{"threadId":"%d"},`, row), 1))
	}
	for i, tt := range tests {
		tool := fmt.Sprintf("mcp__s%d__run", i)
		for end := time.Now().Add(time.Minute); tt.known && !c.host.tools.has(tool); {
			if time.Now().After(end) {
				t.Fatalf("%s: no tool, servers %+v", tt.name, c.host.gateway.Servers())
			}
			time.Sleep(20 * time.Millisecond)
		}
		call(i, 1, tool, "{}")
		call(i, 2, tool, "{}")
		call(i, 3, "Bash", `{"command":"echo runs"}`)
	}
	got := map[string]bool{}
	for ran := 0; ran < len(tests); {
		a := c.receive()
		id := string(a.ID)
		got[id] = true
		of, isBash := strings.CutSuffix(id, "3")
		if !isBash {
			continue
		}
		ran++
		if !strings.Contains(string(a.Result), "runs") {
			t.Errorf("Bash: %s", a.Result)
		}
		i, _ := strconv.Atoi("0" + of)
		if tests[i].hang != "refresh" && (got[of+"1"] || got[of+"2"]) {
			t.Errorf("%s: answers before that of Bash: %v", tests[i].name, got)
		}
	}
	for i := range tests {
		call(i, 4, "Bash", `{"command":"echo again"}`)
	}
	for i := range tests {
		for !got[fmt.Sprint(10*i+4)] {
			got[string(c.receive().ID)] = true
		}
	}
}
