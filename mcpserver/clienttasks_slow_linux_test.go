//go:build slow

package mcpserver

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestClientTaskServer: a command in the background that does not end, as a server, is not followed for ever. The result names
// the task, in which it goes on.
func TestClientTaskServer(t *testing.T) {
	f := follow(t, startPipe(t, nil, withWindow(t)), "until [ -e go ]; do sleep 0.01; done; echo served",
		`,"run_in_background":true`)
	r := f.until(taskCompleted).Result
	if r == nil || r.IsError || !strings.Contains(r.Content[0].Text, "runs as the background task") {
		t.Fatalf("result: %+v", r)
	}
	id := regexp.MustCompile(`"task_id":"([^"]+)"`).FindStringSubmatch(r.Content[0].Text)
	f.send(followedBash(4, "touch go", ""))
	for a := f.receive(); string(a.ID) != "4"; a = f.receive() {
	}
	f.send(strings.Replace(strings.Replace(followedBash(5, "x", ""), `"Bash"`, `"TaskOutput"`, 1), `"command":"x"`,
		`"task_id":"`+id[1]+`"`, 1))
	a := f.receive()
	for string(a.ID) != "5" {
		a = f.receive()
	}
	if !strings.Contains(string(a.Result), "served") {
		t.Errorf("its output: %s", a.Result)
	}
}

// TestClientTaskCancelledWhileAsked: a task that is cancelled during a question ends its command.
func TestClientTaskCancelledWhileAsked(t *testing.T) {
	t.Parallel()
	f := follow(t, startGated(t), "python3 two.py; until [ -e go ]; do sleep 0.01; done", `,"run_in_background":true`)
	f.until(taskAsks)
	f.ask(methodTaskCancel, "")
	f.host.clientTasks.running.Wait()
	for _, task := range f.host.runtime.Tasks() {
		if !task.Over() {
			t.Errorf("%s still runs", task.ID)
		}
	}
	if ran(f.pipeClient) {
		t.Error("the program ran without an answer")
	}
}

// TestClientTaskAsks: a question in the middle of a task is put by the task, each under a name of its own, and its answer decides.
func TestClientTaskAsks(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		decision string
		runs     bool
	}{{"allow once", true}, {"deny", false}} {
		t.Run(tt.decision, func(t *testing.T) {
			f := follow(t, startGated(t), "python3 two.py; echo after", `,"run_in_background":true`)
			var keys []string
			for range 2 {
				asks := f.until(taskAsks)
				for key, request := range asks.InputRequests {
					if keys = append(keys, key); request.Method != "elicitation/create" {
						t.Errorf("%s: %+v", key, request)
					}
				}
				f.ask(methodTaskUpdate, `,"inputResponses":{"unknown":{"action":"accept"}}`)
				last := keys[len(keys)-1]
				f.ask(methodTaskUpdate, fmt.Sprintf(`,"inputResponses":{%q:{"action":"accept","content":{"decision":%q}}}`, last, tt.decision))
				if !tt.runs {
					break // no further program of the command is asked for
				}
			}
			done := f.until(taskCompleted)
			if ran(f.pipeClient) != tt.runs || exists(f.pipeClient, "more") != tt.runs ||
				!strings.Contains(done.Result.Content[0].Text, "after") {
				t.Errorf("ran: %v, %+v", ran(f.pipeClient), done.Result)
			}
			if tt.runs && keys[0] == keys[1] {
				t.Errorf("two questions have the name %s", keys[0])
			}
		})
	}
}

// lateServer waits for a file in each call, then asks its user, and answers with the answer.
const lateServer = `#!/bin/bash
answer() { printf '{"jsonrpc":"2.0","id":%s,"result":%s}\n' "$1" "$2"; }
while read -r line; do
	[[ $line =~ \"id\":([0-9]+) ]] || continue
	id=${BASH_REMATCH[1]}
	case $line in
	*'"initialize"'*) answer "$id" '{"protocolVersion":"2025-11-25","capabilities":{"tools":{}}}' ;;
	*'"tools/list"'*) answer "$id" '{"tools":[{"name":"run","inputSchema":{"type":"object"}}]}' ;;
	*'"tools/call"'*)
		until [ -e "$GO" ]; do sleep 0.05; done
		printf '{"jsonrpc":"2.0","id":900,"method":"elicitation/create","params":{"message":"who","requestedSchema":{"type":"object","properties":{"n":{"type":"string"}}}}}\n'
		read -r line
		[[ $line = *Ann* ]] && who=Ann
		answer "$id" '{"content":[{"type":"text","text":"hello '"$who"'"}]}' ;;
	*) printf '{"jsonrpc":"2.0","id":%s,"error":{"code":-32601,"message":"no"}}\n' "$id" ;;
	esac
done
`

// TestClientTaskOfServer: a long call of another server is a task, and the server asks its user by it.
func TestClientTaskOfServer(t *testing.T) {
	dir := t.TempDir()
	script, servers, flag := filepath.Join(dir, "server.sh"), filepath.Join(dir,
		"servers.json"), filepath.Join(dir, "go")
	writeFile(t, script, lateServer)
	raw, _ := json.Marshal(map[string]any{"mcpServers": map[string]any{"s": map[string]any{"command": "bash",
		"args": []string{script}, "sandbox": false, "env": map[string]string{"GO": flag}}}})
	writeFile(t, servers, string(raw))
	c := startPipe(t, nil, func(c *Config) {
		withWindow(t)(c)
		c.MCPConfig, c.Allow = []string{servers}, []string{"mcp__s"}
	})
	c.send(followed(1, "tools/call", `"name":"mcp__s__run","arguments":{}`))
	a := c.receive()
	f := &follower{pipeClient: c, id: taskIn(t, a.Result).TaskID}
	if f.id == "" {
		t.Fatalf("the call is no task: %s %+v", a.Result, a.Error)
	}
	c.send(followed(2, "subscriptions/listen", fmt.Sprintf(`"notifications":{"taskIds":[%q],"toolsListChanged":true}`, f.id)))
	f.line() // acknowledged: later changes are told
	writeFile(t, flag, "")
	for key := range f.until(taskAsks).InputRequests {
		f.ask(methodTaskUpdate, fmt.Sprintf(`,"inputResponses":{%q:{"action":"accept","content":{"field01":"Ann"}}}`, key))
	}
	if done := f.until(taskCompleted); !strings.Contains(done.Result.Content[0].Text, "hello Ann") {
		t.Errorf("result: %+v", done.Result)
	}
}
