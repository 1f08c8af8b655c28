package mcpserver

import (
	"context"
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/toolhost/toolhost/builtin"
	"github.com/toolhost/toolhost/mcpserver/auth"
)

// startTask starts a command in the background of a thread.
func startTask(t *testing.T, h *Host, thread, command string) (id string) {
	t.Helper()
	args, err := json.Marshal(map[string]any{"command": command, "run_in_background": true})
	if err != nil {
		t.Fatal(err)
	}
	reply := inThread(h, Local(), thread, Request{Tool: "Bash", Args: args})
	out, ok := reply.Structured.(builtin.BashOutput)
	if !ok || out.TaskID == "" {
		t.Fatal(reply.Text)
	}
	return out.TaskID
}

func inThread(h *Host, who auth.Identity, thread string, req Request) Reply {
	return h.Call(context.Background(), h.Admit(who, map[string]any{"threadId": thread}, "", true), req)
}

// ended waits until a number of tasks have ended.
func ended(t *testing.T, h *Host, n int) {
	t.Helper()
	for done := -1; done < n; {
		if done = 0; t.Context().Err() != nil {
			t.Fatal("the test is over")
		}
		for _, task := range h.Operator().Tasks() {
			if task.Over() {
				done++
			}
		}
		time.Sleep(time.Millisecond) // there is no other sign that would not tell the scope
	}
}

// The next result of any tool says which tasks have ended, once, and only to the conversation that started them.
func TestEndedTasksAreTold(t *testing.T) {
	t.Parallel()
	h, root := openHost(t, map[string]string{"a.txt": "text\n", ".claude/settings.json": `{"permissions":{"allow":["Bash"],"ask":["Edit"]}}`},
		func(c *Config) { c.TrustWorkspace = true })
	if !builtin.Bash.Enabled(h.runtime) {
		t.Skip("no commands are run here")
	}
	const tasks = maxEndedReported + 2
	for range tasks {
		startTask(t, h, "a", "until [ -e go ]; do sleep 0.01; done; exit 3")
	}
	writeFile(t, filepath.Join(root, "go"), "")
	ended(t, h, tasks)
	read := Request{Tool: "Read", Args: []byte(`{"file_path":"a.txt"}`), Client: builtin.Client{CanAsk: true}}
	quiet := func(what string, reply Reply) {
		t.Helper()
		if strings.Contains(reply.Text, "[Task ") {
			t.Errorf("%s: %s", what, reply.Text)
		}
	}
	quiet("another conversation", inThread(h, Local(), "b", read))
	quiet("another principal", inThread(h, auth.Identity{Principal: "eve", Rights: auth.All}, "a", read))
	gone, cancel := context.WithCancel(context.Background())
	cancel()
	quiet("a cancelled call", h.Call(gone, h.Admit(Local(), map[string]any{"threadId": "a"}, "", true), read))
	asks := Request{Tool: "Edit", Args: []byte(`{"file_path":"a.txt","old_string":"","new_string":"x"}`), Client: builtin.Client{CanAsk: true}}
	if reply := inThread(h, Local(), "a", asks); reply.Question != nil {
		quiet("a question", reply)
	}
	crowded := read
	crowded.ClientLimits = func(int) builtin.ClientLimits { return builtin.ClientLimits{Result: 60} }
	quiet("a result without room", inThread(h, Local(), "a", crowded))

	told := map[string]bool{}
	for _, n := range []int{maxEndedReported, tasks - maxEndedReported, 0} {
		reply := inThread(h, Local(), "a", read)
		text, notes, _ := strings.Cut(reply.Text, "\n\n")
		lines := strings.FieldsFunc(notes, func(r rune) bool { return r == '\n' })
		if !strings.HasSuffix(strings.TrimSpace(text), "→text") || len(lines) != n {
			t.Errorf("got %q, want %d lines", reply.Text, n)
		}
		for _, line := range lines {
			if !strings.HasPrefix(line, "[Task task_") ||
				!strings.HasSuffix(line, ", Bash(until [ -e go ]; do sleep 0.01; done; exit 3), has ended: exit code 3.]") || told[line] {
				t.Errorf("the line %q", line)
			}
			told[line] = true
		}
	}

	startTask(t, h, "a", "until [ -e on ]; do sleep 0.01; done; exit 4")
	writeFile(t, filepath.Join(root, "on"), "")
	ended(t, h, tasks+1)
	if reply := inThread(h, Local(), "a", Request{Tool: "Reed", Args: []byte(`{}`)}); !reply.IsError ||
		!strings.HasSuffix(reply.Text, " done; exit 4), has ended: exit code 4.]\n") {
		t.Errorf("a refused call: %q", reply.Text)
	}
}
