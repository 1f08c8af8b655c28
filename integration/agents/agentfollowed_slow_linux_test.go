//go:build slow

package agents

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os/exec"
	"strings"
	"testing"

	"github.com/toolhost/toolhost/integration/host"
)

// TestAgentFollowed: a client that follows tasks gets an agent as a task, and its answer as the result of the task.
func TestAgentFollowed(t *testing.T) {
	t.Parallel()
	p := newRunner(t)
	p.runs(t, nil, `}, "bash": {"foregroundWindow": "100ms"`)
	cmd := exec.Command(host.Binary, "stdio", "--root", p.Project, "--trust-workspace")
	cmd.Env = host.CleanEnv(p.Home)
	in, err := cmd.StdinPipe()
	host.Must(t, err)
	stdout, err := cmd.StdoutPipe()
	host.Must(t, err)
	host.Must(t, cmd.Start())
	t.Cleanup(func() { in.Close(); _ = cmd.Wait() })
	out := bufio.NewReader(stdout)
	prompt := host.QuotedJSON(shellStep("until [ -e go ]; do sleep .05; done") + "\n" + `{"say": "all done"}` + "\n{}")
	for _, background := range []bool{false, true} {
		raw := ask(t, in, out, "tools/call", fmt.Sprintf(`"name":"Agent","arguments":{"description":"a test","prompt":%s,"run_in_background":%t}`, prompt, background))
		var task struct{ ResultType, TaskID string }
		if host.Must(t, json.Unmarshal(raw, &task)); task.ResultType != "task" {
			t.Fatalf("background %t: no task: %s", background, raw)
		}
		get := func() string { return string(ask(t, in, out, "tasks/get", `"taskId":`+host.QuotedJSON(task.TaskID))) }
		if now := get(); !strings.Contains(now, `"working"`) {
			t.Errorf("background %t: it is %s", background, now)
		}
		host.WriteIn(t, p.Project, "go", "")
		host.Eventually(t, func() string {
			if now := get(); !strings.Contains(now, `"completed"`) {
				return now
			}
			return ""
		})
		if now := get(); !strings.Contains(now, "all done") || strings.Contains(now, "TaskOutput") {
			t.Errorf("background %t: its result: %s", background, now)
		}
		host.Must(t, exec.Command("rm", p.Project+"/go").Run())
	}
}

// ask sends a request of a client that follows tasks, and returns the result.
func ask(t *testing.T, in io.Writer, out *bufio.Reader, method, params string) json.RawMessage {
	t.Helper()
	_, err := fmt.Fprintf(in, `{"jsonrpc":"2.0","id":1,"method":%q,"params":{%s,"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28",`+
		`"io.modelcontextprotocol/clientCapabilities":{"extensions":{"io.modelcontextprotocol/tasks":{}}}}}}`+"\n", method, params)
	host.Must(t, err)
	for {
		line, err := out.ReadBytes('\n')
		host.Must(t, err)
		var answer struct {
			ID            json.RawMessage
			Result, Error json.RawMessage
		}
		host.Must(t, json.Unmarshal(line, &answer))
		if answer.ID != nil {
			if answer.Error != nil {
				t.Fatalf("%s: %s", method, answer.Error)
			}
			return answer.Result
		}
	}
}
