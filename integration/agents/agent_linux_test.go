package agents

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"

	"github.com/toolhost/toolhost/integration/host"
	"github.com/toolhost/toolhost/integration/samples"
)

// fakeAgent builds the agent that does what its prompt says.
var fakeAgent = sync.OnceValues(func() (string, error) {
	program := filepath.Join(filepath.Dir(host.Binary), "fakeagent")
	build := exec.Command("go", "build", "-o", program, "./testdata/fakeagent")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		return "", fmt.Errorf("%w: %s", err, out)
	}
	return program, nil
})

// An agentHost is a host that runs the fake agent.
type agentHost struct {
	*host.Host
	person
	t *testing.T
}

// newAgentHost starts a host whose user settings have these members in addition to the runner.
func newAgentHost(t *testing.T, runner map[string]any, more string, flags ...string) agentHost {
	t.Helper()
	p := newRunner(t)
	p.runs(t, runner, more)
	return startAgentHost(t, p, host.StdioModern, nil, flags...)
}

// runs makes the fake agent the runner, with other members than its usual ones, and sets more after them.
func (p person) runs(t *testing.T, runner map[string]any, more string) {
	t.Helper()
	program, err := fakeAgent()
	host.Must(t, err)
	all := map[string]any{"command": program, "args": []string{"{socket}", "{model}", "{resume}"},
		"model": []string{"-m", "{model}"}, "resume": []string{"-r", "{id}"}, "parse": "claude"}
	for key, v := range runner {
		all[key] = v
	}
	text, err := json.Marshal(all)
	host.Must(t, err)
	p.Settings(t, `{"agent": {"runner": `+string(text)+more+`}}`)
}

func startAgentHost(t *testing.T, p person, s host.Setting, env []string, flags ...string) agentHost {
	t.Helper()
	h, err := host.StartHost(t.Context(), s, p.Project, append(host.CleanEnv(p.Home), env...),
		append([]string{"--root", p.Project, "--trust-workspace"}, flags...)...)
	host.Must(t, err)
	t.Cleanup(func() { _ = h.Stop() })
	return agentHost{h, p, t}
}

// call calls a tool, and returns the text and the structure of the result.
func (h agentHost) call(tool string, args map[string]any) (string, map[string]any, bool) {
	h.t.Helper()
	ctx, cancel := context.WithTimeout(h.t.Context(), host.Patience)
	defer cancel()
	text, err := json.Marshal(args)
	host.Must(h.t, err)
	pending, err := h.Start(ctx, tool, string(text), nil)
	host.Must(h.t, err)
	result, err := pending.Result(ctx)
	if err != nil {
		return err.Error(), nil, true
	}
	structured := map[string]any{}
	_ = json.Unmarshal(result.Structured, &structured)
	return result.Text(), structured, result.IsError
}

// agent has the fake agent do steps.
func (h agentHost) agent(more map[string]any, steps ...string) (string, map[string]any, bool) {
	h.t.Helper()
	args := map[string]any{"description": "a test", "prompt": strings.Join(append(steps, "{}"), "\n")}
	for key, v := range more {
		args[key] = v
	}
	return h.call("Agent", args)
}

func shellStep(script string) string { return `{"shell": ` + host.QuotedJSON(script) + `}` }

func toolStep(tool, args string) string { return `{"tool": "` + tool + `", "args": ` + args + `}` }

// TestAgent has an agent work with its own shell and the tools of the host, and looks at what the result tells, and what is left.
func TestAgent(t *testing.T) {
	t.Parallel()
	h := newAgentHost(t, nil, "")
	text, out, failed := h.agent(map[string]any{"model": "small", "name": "a label"},
		`{"list": true}`, toolStep("Read", `{"file_path": "kept.txt"}`), toolStep("Edit", `{"file_path": "kept.txt", "old_string": "kept", "new_string": "changed"}`),
		toolStep("Write", `{"file_path": "a/new.txt", "content": "1\n2\n"}`), shellStep("echo x > made.txt"), `{"say": "done so far"}`)
	if failed || !strings.Contains(text, "done so far") || !strings.Contains(text, "args: -m small") {
		t.Fatalf("it says\n%s", text)
	}
	for _, says := range []string{"4 turns", "111 tokens",
		"Changed 3 files: a/new.txt +2 -0, kept.txt +1 -1, made.txt +1 -0.", "(general, fakeagent)", "Continue it with resume"} {
		if !strings.Contains(text, says) {
			t.Errorf("it does not say %q:\n%s", says, text)
		}
	}
	tools := regexp.MustCompile(`tools: (.*)`).FindStringSubmatch(text)
	if tools == nil || !strings.Contains(tools[1], "Edit") || strings.Contains(tools[1], "Agent") {
		t.Errorf("the agent has the tools %q", tools)
	}
	if out["status"] != "completed" || out["turns"] != 4.0 || out["tokens"] != 111.0 ||
		len(out["files"].([]any)) != 3 || out["runner"] != "fakeagent" {
		t.Errorf("programs are told %v", out)
	}
	transcript, err := os.ReadFile(fmt.Sprint(out["output_path"]))
	if err != nil || !strings.Contains(string(transcript), `"tool_use"`) {
		t.Errorf("the transcript is %.100q, %v", transcript, err)
	}
	if got, _ := os.ReadFile(filepath.Join(h.Project, "kept.txt")); string(got) != "changed\n" {
		t.Errorf("kept.txt holds %q", got)
	}
	id := fmt.Sprint(out["agent_id"])
	audit, _ := os.ReadFile(filepath.Join(h.Home, "state/toolhost/audit.jsonl"))
	for _, line := range []string{`"run agent general"`, `"principal":"agent:` + id + `"`,
		`"tool":"run: agent ` + id + `"`} {
		if !strings.Contains(string(audit), line) {
			t.Errorf("the audit log does not have %s", line)
		}
	}

	text, _, failed = h.agent(map[string]any{"resume": id}, `{"say": "once more"}`)
	if failed || !strings.Contains(text, "args: -r session-1") || !strings.Contains(text, "once more") ||
		!strings.Contains(text, "Agent "+id) {
		t.Errorf("continued it says\n%s", text)
	}
	if left, _ := filepath.Glob(filepath.Join(h.Home, ".cache/toolhost/cell-*")); len(left) > 0 {
		t.Errorf("directories are left: %s", left)
	}
}

// TestAgentTask has agents that become tasks, are stopped, and reach limits.
func TestAgentTask(t *testing.T) {
	t.Parallel()
	h := newAgentHost(t, nil, `, "maxTurns": 5, "maxTokens": 1000}, "bash": {"foregroundWindow": "1ms"`)
	mark := fmt.Sprintf("11%d", os.Getpid())
	text, out, failed := h.agent(nil, toolStep("Read", `{"file_path": "kept.txt"}`), `{"say": "begun"}`, `{"fork": "`+
		mark+`"}`, toolStep("Bash", `{"command": "sleep `+mark+`", "run_in_background": true}`), `{"raw": "{}"}`, toolStep("Glob", `{"pattern": "*"}`), `{"sleep": true}`)
	if failed || out["status"] != "running" || out["task_id"] == nil ||
		!strings.Contains(text, "goes on as the background task") {
		t.Fatalf("it says %s", text)
	}
	task := map[string]any{"task_id": out["task_id"]}
	text, _, _ = h.call("TaskOutput", map[string]any{"task_id": out["task_id"], "until": `^> Glob`, "timeout": 60000})
	if !strings.Contains(text, "Read(kept.txt)") || !strings.Contains(text, "Glob(*)") ||
		!strings.Contains(text, "The task is running.") {
		t.Errorf("meanwhile it says\n%s", text)
	}
	if text, _, failed := h.call("TaskStop", task); failed || !strings.Contains(text, "it was stopped") {
		t.Errorf("stopped it says\n%s", text)
	}
	if found, _ := exec.Command("pgrep", "-f", "sleep "+mark).Output(); len(found) > 0 {
		t.Errorf("processes are left: %s", found)
	}

	for _, c := range []struct{ limits, step, says string }{
		{`, "maxTurns": 5`, `{"turns": 5}`, ""},
		{`, "maxTurns": 5`, `{"turns": 100}`, "it took more than 5 turns, the limit agent.maxTurns"},
		{`, "maxTokens": 40`, `{"turns": 10}`, "it used more than 40 tokens, the limit agent.maxTokens"},
		{`, "maxTime": "1s"`, `{"sleep": true}`, "it ran longer than 1s, the limit agent.maxTime"},
		{``, `{"sleep": true}`, ""},
	} {
		h.runs(t, nil, c.limits+`}, "bash": {"foregroundWindow": "1ms"`)
		_, out, _ = h.agent(map[string]any{"run_in_background": true}, c.step)
		if c.says == "" {
			h.call("TaskStop", map[string]any{"task_id": out["task_id"]})
			continue
		}
		if text, _, _ := h.call("TaskOutput", map[string]any{"task_id": out["task_id"], "timeout": 60000}); !strings.Contains(text, c.says) {
			t.Errorf("%s: it says %s", c.step, text)
		}
	}

	var ids []string
	for range 4 {
		text, out, failed := h.agent(nil, `{"sleep": true}`)
		if failed {
			t.Fatal(text)
		}
		ids = append(ids, fmt.Sprint(out["task_id"]))
	}
	text, _, failed = h.agent(nil, `{"sleep": true}`)
	if !failed || !strings.Contains(text, "4 run already: ") || !strings.Contains(text, ids[0]) ||
		!strings.Contains(text, ids[3]) {
		t.Errorf("the fifth: %s", text)
	}
	if text, _, failed := h.agent(map[string]any{"resume": ids[0]}, "x"); !failed ||
		!strings.Contains(text, "still runs") {
		t.Errorf("one that runs was continued: %s", text)
	}
	host.Must(t, h.Stop())
	if found, _ := exec.Command("pgrep", "-f", filepath.Join(h.Home, ".cache/toolhost/cell-")).Output(); len(found) > 0 {
		t.Errorf("agents outlive the host: %s", found)
	}
}

// TestAgentAttacks has an agent try what its caller may not, by its shell and by our tools.
func TestAgentAttacks(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	host.Must(t, err)
	defer l.Close()
	_, port, _ := net.SplitHostPort(l.Addr().String())
	h := newAgentHost(t, nil, "")
	agents := filepath.Join(h.Project, ".claude/agents")
	host.Must(t, os.MkdirAll(agents, 0o755))
	for name, text := range map[string]string{
		"reader.md":  "---\nname: reader\ndescription: reads\ntools: Read, Glob\n---\nYou read.\n",
		"wild.md":    "---\nname: wild\ndescription: wants all\npermissionMode: bypassPermissions\ndisallowedTools: [Write]\nhooks: {}\n---\n",
		"broken.md":  "no front matter",
		"planner.md": "---\nname: planner\ndescription: plans\npermissionMode: plan\n---\n",
	} {
		host.Must(t, os.WriteFile(filepath.Join(agents, name), []byte(text), 0o600))
	}
	outside := filepath.Join(h.Home, "outside")
	for _, a := range samples.Few([]struct{ name, kind, step, says string }{
		{"a denied file by its shell", "", shellStep("cat .env; cp .env copy; cat copy"), "denied"},
		{"a denied file by our tool", "", toolStep("Read", `{"file_path": ".env"}`), "refused"},
		{"a secret of the home directory", "", shellStep("cat ~/.ssh/id_ed25519"), "denied"},
		{"a file outside", "", shellStep("echo x > " + outside), "Read-only"},
		{"a file outside by our tool", "", toolStep("Write", `{"file_path": `+host.QuotedJSON(outside)+`, "content": "x"}`), "refused"},
		{"a denied program", "", shellStep("rm kept.txt; make wipe"), "denied"},
		{"a program that a rule asks for", "", toolStep("Bash", `{"command": "git push origin main"}`), "refused"},
		{"a command outside of the sandbox", "", toolStep("Bash", `{"command": "cat ~/.ssh/id_ed25519", "dangerouslyDisableSandbox": true}`), "refused"},
		{"another agent", "", toolStep("Agent", `{"description": "x", "prompt": "x"}`), "refused"},
		{"its definition", "reader", shellStep("echo x >> .claude/agents/reader.md"), "Read-only"},
		{"its entry", "", shellStep("echo x > $(ls -d ~/.cache/toolhost/cell-*)/mcp.json"), "Read-only"},
		{"the settings", "", shellStep("echo '{}' > .toolhost/toolhost.json; echo '{}' > $XDG_CONFIG_HOME/toolhost/toolhost.json"), "Read-only"},
		{"the state of the host", "", shellStep("ls -A ~/state/toolhost; cat ~/state/toolhost/secret && echo BREACH; echo x > ~/state/toolhost/x"), "Read-only"},
		{"a host", "", shellStep("curl -sS --max-time 5 http://example.com/"), "example.com"},
		{"a service of the host", "", shellStep("bash -c 'exec 3<>/dev/tcp/127.0.0.1/" + port + " && echo BREACH'"), "refused"},
		{"a run of its own", "", shellStep(host.Binary + " run -- true"), "nested"},
		{"a tool that its type has not", "reader", toolStep("Bash", `{"command": "echo BREACH"}`), "refused"},
		{"a write of one that reads", "reader", shellStep("echo x > kept.txt"), "Read-only"},
		{"a tool that its type denies", "wild", toolStep("Write", `{"file_path": "x", "content": "BREACH"}`), "refused"},
		{"a write in plan mode", "planner", toolStep("Edit", `{"file_path": "kept.txt", "old_string": "kept", "new_string": "BREACH"}`), "refused"},
		{"a write of the explorer", "explore", shellStep("echo x > kept.txt"), "Read-only"},
	}) {
		text, _, _ := h.agent(map[string]any{"subagent_type": a.kind}, a.step, `{"say": "went on"}`)
		if !strings.Contains(text, a.says) || !strings.Contains(text, "went on") {
			t.Errorf("%s: it does not say %q:\n%s", a.name, a.says, text)
		}
		if strings.Contains(text, "SECRET") || strings.Contains(text, "BREACH") && !strings.Contains(text, "refused") {
			t.Errorf("%s: it got through:\n%s", a.name, text)
		}
	}
	if got, err := os.ReadFile(filepath.Join(h.Project, "kept.txt")); string(got) != "kept\n" {
		t.Errorf("kept.txt holds %q, %v", got, err)
	}
	if _, err := os.Stat(outside); err == nil {
		t.Error("a file was written outside")
	}
	if text, _, failed := h.call("Read", map[string]any{"file_path": "kept.txt"}); failed {
		t.Errorf("after the agents the caller cannot read: %s", text)
	}
	list, err := h.Send(t.Context(), "tools/list", nil)
	host.Must(t, err)
	raw, err := list.Wait(t.Context())
	host.Must(t, err)
	for _, want := range []string{"- explore: finds", "- reader: reads", "- wild: wants all"} {
		if !strings.Contains(string(raw), want) {
			t.Errorf("the description does not list %q", want)
		}
	}
	if doctor, _ := h.Run(t, nil, host.Binary, "doctor", "--quick", "--root", h.Project,
		"--trust-workspace"); !strings.Contains(doctor, "broken.md") || !strings.Contains(doctor, "ignored: hooks, permissionMode bypassPermissions") {
		t.Errorf("the doctor says\n%s", doctor)
	}
}

// TestAgentOff looks at a host without a runner, and at one whose workspace names a runner.
func TestAgentOff(t *testing.T) {
	t.Parallel()
	p := newPerson(t)
	host.Must(t, os.MkdirAll(filepath.Join(p.Project, ".toolhost"), 0o755))
	host.Must(t, os.WriteFile(filepath.Join(p.Project, ".toolhost/toolhost.json"),
		[]byte(`{"agent": {"runner": "claude"}}`), 0o600))
	if out, _ := p.Run(t, nil, host.Binary, "tools", "--root", p.Project, "--trust-workspace"); strings.Contains(out,
		"\nAgent ") {
		t.Errorf("it is served:\n%s", out)
	}
	out, ok := p.Run(t, nil, host.Binary, "call", "Agent", `{"description": "x", "prompt": "x"}`, "--root", p.Project,
		"--trust-workspace")
	if ok || !strings.Contains(out, "agent.runner in the user settings") {
		t.Errorf("a call says %s", out)
	}
}

// TestAgentWorktree has an agent work on a copy: the primary checkout is out of its reach, and its work is on a branch at the end.
func TestAgentWorktree(t *testing.T) {
	t.Parallel()
	h := newAgentHost(t, nil, "")
	isolated := map[string]any{"isolation": "worktree"}
	if text, _, failed := h.agent(isolated, `{"say": "x"}`); !failed || !strings.Contains(text, "git") {
		t.Errorf("without a repository it says %s", text)
	}
	h.commit()
	kept := filepath.Join(h.Project, "kept.txt")
	text, out, failed := h.agent(isolated, toolStep("Read", `{"file_path": "kept.txt"}`),
		toolStep("Edit", `{"file_path": "kept.txt", "old_string": "kept", "new_string": "changed"}`),
		shellStep("echo x > made.txt"), shellStep("echo BREACH > "+shellQuoted(kept)), toolStep("Write",
			`{"file_path": `+host.QuotedJSON(kept)+`, "content": "BREACH"}`))
	id := fmt.Sprint(out["agent_id"])
	if failed || !strings.Contains(text, "git merge toolhost/agent-"+id) {
		t.Fatalf("it says\n%s", text)
	}
	if got, _ := os.ReadFile(kept); string(got) != "kept\n" {
		t.Errorf("the primary checkout holds %q", got)
	}
	if diff, _ := h.Run(t, nil, "git", "diff", "--stat", "HEAD...toolhost/agent-"+id); !strings.Contains(diff,
		"made.txt") || !strings.Contains(diff, "kept.txt") {
		t.Errorf("the branch has %s", diff)
	}
	text, _, failed = h.agent(map[string]any{"resume": id}, shellStep("cat made.txt kept.txt"))
	if failed || !strings.Contains(text, "changed") {
		t.Errorf("continued it says\n%s", text)
	}
}

// commit makes the project a repository with a commit.
func (h agentHost) commit() {
	h.t.Helper()
	for _, args := range [][]string{{"init", "-q"}, {"add", "kept.txt", "Makefile"},
		{"-c", "user.name=n", "-c", "user.email=e@x", "commit", "-q", "-m", "first"}} {
		if out, ok := h.Run(h.t, nil, "git", args...); !ok {
			h.t.Fatal(out)
		}
	}
}

func shellQuoted(s string) string { return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'" }
