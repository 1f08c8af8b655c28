//go:build slow

package agents

import (
	"context"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/toolhost/toolhost/integration/host"
	"github.com/toolhost/toolhost/integration/samples"
)

// TestAgentInWorktree has a caller in a worktree run agents: they work there, and cannot write the checkout. The worktree is not left
// while one runs in it.
func TestAgentInWorktree(t *testing.T) {
	t.Parallel()
	h := newAgentHost(t, nil, "", "--with", "EnterWorktree,ExitWorktree")
	h.commit()
	h.Meta = map[string]any{"threadId": "one"}
	kept := filepath.Join(h.Project, "kept.txt")
	if text, _, failed := h.call("EnterWorktree", map[string]any{"name": "fix"}); failed {
		t.Fatal(text)
	}
	text, _, failed := h.agent(nil, toolStep("Read", `{"file_path": "kept.txt"}`),
		toolStep("Edit", `{"file_path": "kept.txt", "old_string": "kept", "new_string": "changed"}`),
		shellStep("echo x > made.txt; echo BREACH > "+shellQuoted(kept)),
		toolStep("Write", `{"file_path": `+host.QuotedJSON(kept)+`, "content": "BREACH"}`),
		toolStep("ExitWorktree", `{}`), toolStep("Agent", `{"description": "x", "prompt": "x"}`))
	if failed || strings.Count(text, "refused") < 3 || !strings.Contains(text, "Read-only file system") {
		t.Errorf("it says\n%s", text)
	}
	if text, _, _ := h.call("Bash", map[string]any{"command": "cat kept.txt made.txt"}); !strings.Contains(text,
		"changed\nx\n") {
		t.Errorf("in the worktree there is\n%s", text)
	}
	_, out, _ := h.agent(map[string]any{"run_in_background": true}, `{"sleep": true}`)
	if text, _, failed := h.call("ExitWorktree", map[string]any{}); !failed {
		t.Errorf("left while an agent runs in it:\n%s", text)
	}
	if text, _, failed := h.call("TaskStop", map[string]any{"task_id": out["task_id"]}); failed {
		t.Errorf("stopped it says\n%s", text)
	}
	if text, _, failed := h.call("ExitWorktree", map[string]any{}); failed ||
		!strings.Contains(text, "git merge toolhost/fix") {
		t.Errorf("left it says\n%s", text)
	}
	if diff, _ := h.Run(t, nil, "git", "diff", "--stat", "HEAD...toolhost/fix"); !strings.Contains(diff, "made.txt") ||
		!strings.Contains(diff, "kept.txt") {
		t.Errorf("the branch has %s", diff)
	}
	if got, _ := os.ReadFile(kept); string(got) != "kept\n" {
		t.Errorf("the checkout holds %q", got)
	}
}

// TestAgentSockets has an agent look for the sockets of another: a connection there would have the rights of that one.
func TestAgentSockets(t *testing.T) {
	t.Parallel()
	h := newAgentHost(t, nil, "")
	_, out, _ := h.agent(map[string]any{"run_in_background": true}, shellStep("touch begun"), `{"sleep": true}`)
	host.Eventually(t, func() string {
		if _, err := os.Stat(filepath.Join(h.Project, "begun")); err != nil {
			return err.Error()
		}
		return ""
	})
	cells, _ := filepath.Glob(filepath.Join(h.Home, ".cache/toolhost/cell-*/*.sock"))
	if len(cells) == 0 {
		t.Fatal("the first agent has no socket")
	}
	const connect = `python3 -c '
import socket, sys
for path in sys.argv[1:]:
    try: socket.socket(socket.AF_UNIX).connect(path); print("BREACH", path)
    except OSError as e: print("held:", e)' `
	var paths string
	for _, path := range cells {
		paths += " " + shellQuoted(path)
	}
	text, _, failed := h.agent(nil, shellStep(connect+paths),
		toolStep("Bash", `{"command": `+host.QuotedJSON(connect+paths)+`}`))
	if failed || strings.Count(text, "held:") != 2*len(cells) || strings.Contains(text, "BREACH /") {
		t.Errorf("it says\n%s", text)
	}
	h.call("TaskStop", map[string]any{"task_id": out["task_id"]})
}

// TestAgentDepth has agents start agents where the settings let them. The end of the first is the end of all.
func TestAgentDepth(t *testing.T) {
	t.Parallel()
	h := newAgentHost(t, nil, `, "depth": 2`)
	nested := func(steps ...string) string {
		return toolStep("Agent", `{"description": "a test", "prompt": `+host.QuotedJSON(strings.Join(steps, "\n"))+`}`)
	}
	text, _, failed := h.agent(nil, `{"list": true}`,
		nested(`{"list": true}`, nested(`{"say": "BREACH"}`), shellStep("cat .env"), `{"say": "went on"}`))
	tools := regexp.MustCompile(`tools: (.*)`).FindAllString(text, -1)
	if failed || len(tools) != 2 || !strings.Contains(tools[0], " Agent ") || strings.Contains(tools[1], " Agent ") {
		t.Errorf("the agents have the tools %q:\n%s", tools, text)
	}
	if !strings.Contains(text, "went on") || strings.Contains(text, "BREACH") || strings.Contains(text, "SECRET") {
		t.Errorf("it says\n%s", text)
	}
	text, _, _ = h.agent(map[string]any{"subagent_type": "explore"},
		nested(shellStep("echo x > made.txt"), `{"say": "BREACH"}`))
	if strings.Contains(text, "BREACH") {
		t.Errorf("one that only reads started an agent:\n%s", text)
	}

	mark := fmt.Sprintf("12%d", os.Getpid())
	_, out, _ := h.agent(map[string]any{"run_in_background": true},
		nested(`{"fork": "`+mark+`"}`, shellStep("touch begun"), `{"sleep": true}`))
	host.Eventually(t, func() string {
		if _, err := os.Stat(filepath.Join(h.Project, "begun")); err != nil {
			return err.Error()
		}
		return ""
	})
	if text, _, failed := h.call("TaskStop", map[string]any{"task_id": out["task_id"]}); failed {
		t.Errorf("stopped it says\n%s", text)
	}
	if found, _ := exec.Command("pgrep", "-f", "sleep "+mark).Output(); len(found) > 0 {
		t.Errorf("processes are left: %s", found)
	}
}

// TestAgentOverHTTP has a caller over HTTP run an agent that prints what it finds: it gets no credentials of the host's environment, and
// of the files that the program keeps in the user's home directory neither sessions nor history.
func TestAgentOverHTTP(t *testing.T) {
	t.Parallel()
	p := newRunner(t)
	for name, text := range map[string]string{
		"bin/claude": "#!/bin/sh\nenv; cat ~/.claude/projects/*/* ~/.claude/history.jsonl\n" +
			"echo planted > ~/.claude/projects/one/s.jsonl; echo planted > ~/.claude/history.jsonl\n" +
			`echo '{"type": "result", "subtype": "success", "session_id": "one", "result": "done"}'` + "\n",
		".claude/projects/one/s.jsonl": "SECRET-session\n",
		".claude/history.jsonl":        "SECRET-history\n",
	} {
		host.Must(t, os.MkdirAll(filepath.Dir(filepath.Join(p.Home, name)), 0o700))
		host.Must(t, os.WriteFile(filepath.Join(p.Home, name), []byte(text), 0o700))
	}
	p.Settings(t, `{"agent": {"runner": "claude"}}`)
	env := []string{"PATH=" + filepath.Join(p.Home, "bin") + ":" + os.Getenv("PATH"), "GITHUB_TOKEN=SECRET-token",
		"AWS_SECRET_ACCESS_KEY=SECRET-key", "ANTHROPIC_API_KEY=SECRET-model", "SOME_PASSWORD=SECRET-word"}
	h := startAgentHost(t, p, host.HTTPModern, env)
	for range 2 { // the second after what the first left
		text, out, failed := h.call("Agent", map[string]any{"description": "a test", "prompt": "print"})
		if failed || !strings.Contains(text, "done") {
			t.Fatalf("it says\n%s", text)
		}
		printed, err := os.ReadFile(fmt.Sprint(out["output_path"]))
		if err != nil || !strings.Contains(string(printed), "PATH=") {
			t.Fatalf("it printed %s, %v", printed, err)
		}
		if strings.Contains(string(printed), "SECRET") || strings.Contains(string(printed), "planted") {
			t.Errorf("it printed\n%s", printed)
		}
	}
	for _, name := range []string{".claude/projects/one/s.jsonl", ".claude/history.jsonl"} {
		if got, _ := os.ReadFile(filepath.Join(p.Home, name)); !strings.HasPrefix(string(got), "SECRET") {
			t.Errorf("%s holds %q", name, got)
		}
	}
}

// TestAgentPatience has a client that waits 60 s: it gets a result before, and TaskOutput has the rest. With -samples=100 the agent is given the
// usual time.
func TestAgentPatience(t *testing.T) {
	t.Parallel()
	more := `}, "bash": {"foregroundWindow": "1ms"`
	if samples.Whole() {
		more = ""
	}
	h := newAgentHost(t, nil, more)
	ctx, cancel := context.WithTimeout(t.Context(), 60*time.Second)
	defer cancel()
	pending, err := h.Start(ctx, "Agent", `{"description": "a test", "prompt": `+
		host.QuotedJSON(shellStep("until [ -e go ]; do sleep .05; done; echo x > made.txt")+"\n"+`{"say": "went on"}`)+
		`}`, nil)
	host.Must(t, err)
	result, err := pending.Result(ctx)
	host.Must(t, err)
	id := regexp.MustCompile(`TaskOutput \{"task_id":"([0-9a-f]{8})"\}`).FindStringSubmatch(result.Text())
	if id == nil || result.IsError {
		t.Fatalf("it says\n%s", result.Text())
	}
	host.Must(t, os.WriteFile(filepath.Join(h.Project, "go"), nil, 0o600))
	text, _, failed := h.call("TaskOutput", map[string]any{"task_id": id[1], "timeout": 60000})
	if failed || !strings.Contains(text, "went on") || !strings.Contains(text, "made.txt +1 -0") {
		t.Errorf("the rest is\n%s", text)
	}
}

// TestAgentTypes has what definitions and rules say of types of agents, and the other name of the tool.
func TestAgentTypes(t *testing.T) {
	t.Parallel()
	h := newAgentHost(t, nil, "", "--deny", "Task(explore)")
	h.commit()
	for name, members := range map[string]string{"apart": "isolation: worktree", "slow": "background: true",
		"brief": "maxTurns: 2"} {
		file := filepath.Join(h.Project, ".claude/agents", name+".md")
		host.Must(t, os.MkdirAll(filepath.Dir(file), 0o755))
		host.Must(t, os.WriteFile(file, []byte("---\nname: "+name+"\ndescription: x\n"+members+"\n---\n"), 0o600))
	}
	args := func(kind string, steps ...string) map[string]any {
		return map[string]any{"description": "a test", "subagent_type": kind,
			"prompt": strings.Join(steps, "\n") + "\n"}
	}
	write := shellStep("echo x > made.txt")
	text, out, failed := h.call("Task", args("Apart", write)) // by the name that other clients have for it
	branch := fmt.Sprint("toolhost/agent-", out["agent_id"])
	if _, err := os.Stat(filepath.Join(h.Project, "made.txt")); failed || err == nil ||
		!strings.Contains(text, "git merge "+branch) {
		t.Errorf("apart: %v, it says\n%s", err, text)
	}
	if list, ok := h.Run(t, nil, host.Binary, "agent", "list"); !ok || !strings.Contains(list, branch) ||
		!strings.Contains(list, h.Project) {
		t.Errorf("the list of what agents left is\n%s", list)
	}
	if text, out, failed = h.call("Agent", args("slow", `{"say": "went on"}`)); failed || out["status"] != "running" {
		t.Errorf("slow: it says\n%s", text)
	}
	if text, _, _ := h.call("TaskOutput", map[string]any{"task_id": out["task_id"], "timeout": 60000}); !strings.Contains(text, "went on") {
		t.Errorf("slow: its end is\n%s", text)
	}
	if text, _, failed := h.call("Agent", args("brief", `{"turns": 100}`)); !failed ||
		!strings.Contains(text, "it took more than 2 turns, the limit maxTurns of its definition") {
		t.Errorf("brief: it says\n%s", text)
	}
	if text, _, failed := h.call("Agent", args("explore", write)); !failed ||
		!strings.Contains(text, "Agent(explore)") && !strings.Contains(text, "Task(explore)") {
		t.Errorf("explore, which a rule denies: it says\n%s", text)
	}
}

// TestAgentQuestions has agents ask the person of their caller: the question names the agent, and the answer to one ends neither the
// agent nor the call. Once the call has been answered, the question goes to the console.
func TestAgentQuestions(t *testing.T) {
	t.Parallel()
	p := newRunner(t)
	p.runs(t, nil, "")
	h := startAgentHost(t, p, host.HTTPLegacy, nil, "--console")
	s := newSDK(t, h.Host, p.Project, "2025-06-18")
	const push = `{"tool": "Bash", "args": {"command": "git push origin main; echo pushed=$?"}}`
	call := func(more string) string {
		t.Helper()
		prompt := push + "\n" + `{"say": "went on"}` + "\n"
		if more != "" { // until the call has been answered
			prompt = shellStep("until [ -e go ]; do sleep .05; done") + "\n" + prompt
		}
		r, err := s.session.CallTool(t.Context(), &mcp.CallToolParams{Name: "Agent", Arguments: map[string]any{"description": "a test", "prompt": prompt, "run_in_background": more != ""}})
		host.Must(t, err)
		text := r.Content[0].(*mcp.TextContent).Text
		if r.IsError {
			t.Errorf("the call failed: %s", text)
		}
		return text
	}
	names := regexp.MustCompile(`^agent [0-9a-f]{8} \(general\): `)
	for _, c := range []struct {
		answer mcp.ElicitResult
		says   string
	}{
		{mcp.ElicitResult{Action: "accept", Content: map[string]any{"decision": "allow once"}}, "pushed=128"},
		{mcp.ElicitResult{Action: "decline"}, "refused: "},
		{mcp.ElicitResult{Action: "cancel"}, "refused: "},
	} {
		s.answer, s.asked = c.answer, nil
		if text := call(""); !strings.Contains(text, c.says) || !strings.Contains(text, "went on") {
			t.Errorf("%s: it says\n%s", c.answer.Action, text)
		}
		if len(s.asked) != 1 || !names.MatchString(s.asked[0]) ||
			!strings.Contains(s.asked[0], "git push origin main") {
			t.Errorf("%s: a person was asked %q", c.answer.Action, s.asked)
		}
	}

	c := &host.Console{Host: h.Host, Dir: p.Project, Home: p.Home, Web: host.NewBrowser(t)}
	c.Link = c.OpenLink(t)
	c.Enter(t, c.Web)
	c.Watch(t)
	s.asked = nil
	id := regexp.MustCompile(`[0-9a-f]{8}`).FindString(call("background"))
	host.Must(t, os.WriteFile(filepath.Join(p.Project, "go"), nil, 0o600))
	question := c.Question(t)
	if _, page := c.Get(t, c.Web, "/part/questions", nil); !strings.Contains(page, "agent "+id+" (general)") ||
		!strings.Contains(page, "git push origin main") {
		t.Errorf("the question on the page does not name the agent %s:\n%s", id, page)
	}
	c.Post(t, "/answer", url.Values{"question": {question}, "decision": {"deny"}, "reason": {"not on Friday"}})
	r, err := s.session.CallTool(t.Context(), &mcp.CallToolParams{Name: "TaskOutput", Arguments: map[string]any{"task_id": id, "timeout": 60000}})
	host.Must(t, err)
	if text := r.Content[0].(*mcp.TextContent).Text; !strings.Contains(text, "not on Friday") ||
		!strings.Contains(text, "went on") || len(s.asked) > 0 {
		t.Errorf("after it was denied, with the person asked %q:\n%s", s.asked, text)
	}
}
