//go:build slow

package agents

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/toolhost/toolhost/integration/host"
)

// TestAgentInput has calls and runners that are wrong, each with its answer.
func TestAgentInput(t *testing.T) {
	t.Parallel()
	h := newAgentHost(t, map[string]any{"model": nil}, "")
	for _, c := range []struct {
		name string
		more map[string]any
		says string
	}{
		{"no prompt", map[string]any{"prompt": " \n"}, "prompt: expected what the agent is to do, got an empty text"},
		{"a long prompt", map[string]any{"prompt": strings.Repeat("x", 1<<20)}, "prompt: expected at most 262144 bytes, got 1048576"},
		{"an unknown type", map[string]any{"subagent_type": "explor"}, `there is no agent "explor" (did you mean explore?); there are explore, general`},
		{"a model", map[string]any{"model": "opus"}, "model: the runner fakeagent does not support it: omit it"},
		{"an unknown id", map[string]any{"resume": "0f0f0f0f"}, `resume: there is no agent "0f0f0f0f"`},
		{"remote", map[string]any{"isolation": "remote"}, "isolation: remote is not supported"},
		{"another isolation", map[string]any{"isolation": "vm"}, `isolation: expected none or worktree, got "vm"`},
		{"a crash", map[string]any{"prompt": `{"crash": true}`}, "panic: crashed"},
		{"an end without text", map[string]any{"prompt": `{"exit": 0}`}, "The agent ended without an answer, with exit code 0."},
		{"junk", map[string]any{"prompt": `{"raw": "{\"type\": [1, {}], \"x\": null}"}` + "\n" + `{"raw": "Unknown option: --verbose"}` + "\n" + `{"exit": 3}`}, "exit code 3. It said:\n> Unknown option: --verbose"},
		{"a login", map[string]any{"prompt": `{"fail": "Not logged in. Please run /login"}`}, "The agent failed. It said:\n> Not logged in. Please run /login"},
		{"a flood", map[string]any{"prompt": `{"flood": 1024}`}, "The agent was ended: it printed more than 256 MiB."},
	} {
		text, _, failed := h.agent(c.more)
		if !failed || !strings.Contains(text, c.says) {
			t.Errorf("%s: it says %.600s, not %q", c.name, text, c.says)
		}
	}
	for runner, says := range map[string]string{
		`"no-such"`:                             `agent.runner: "no-such" is not a runner: expected claude, codex`,
		`{"command": "no-such-program"}`:        `agent.runner: there is no program "no-such-program" in PATH`,
		`{"command": "true", "parse": "words"}`: `parse: expected text or jsonl:PATH, such as jsonl:message.text, got "words"`,
		`{"comand": "true"}`:                    `unknown field "comand"`,
	} {
		h.Settings(t, `{"agent": {"runner": `+runner+`}}`)
		if text, _, failed := h.agent(nil, `{"say": "x"}`); !failed || !strings.Contains(text, says) {
			t.Errorf("the runner %s: it says %s, not %q", runner, text, says)
		}
	}
	h.Settings(t, `{"agent": {"runner": {"command": "sh", "args": ["-c", "cat; echo; echo '{\"a\": [{\"b\": \"last\"}]}'"], "parse": "jsonl:a.0.b"}}}`)
	if text, _, failed := h.agent(nil, "not JSON"); failed || !strings.HasPrefix(text, "> last\n") {
		t.Errorf("a runner with lines of JSON says %s", text)
	}
	h.Settings(t, `{}`)
	if text, _, failed := h.agent(nil, "x"); !failed ||
		!strings.Contains(text, "a person must set agent.runner in the user settings") {
		t.Errorf("without a runner it says %s", text)
	}
}

// TestAgentsApart has an agent leave files where its program has its configuration and sessions: it finds them when it is continued,
// and no other agent does.
func TestAgentsApart(t *testing.T) {
	t.Parallel()
	h := newAgentHost(t, map[string]any{"config": []string{"~/.fake"}}, "")
	host.Must(t, os.MkdirAll(filepath.Join(h.Home, ".fake"), 0o700))
	host.Must(t, os.WriteFile(filepath.Join(h.Home, ".fake/settings"), []byte("the user's\n"), 0o600))
	look := shellStep("cat ~/.fake/settings ~/.fake/planted")
	text, out, failed := h.agent(nil, look, shellStep("echo hook > ~/.fake/planted; echo hook > ~/.fake/settings"))
	if failed || !strings.Contains(text, "the user's") {
		t.Fatalf("it says %s", text)
	}
	if text, _, _ := h.agent(nil, look); strings.Contains(text, "hook") || !strings.Contains(text, "the user's") {
		t.Errorf("another agent finds %s", text)
	}
	if text, _, _ := h.agent(map[string]any{"resume": out["agent_id"]}, look); !strings.Contains(text, "hook") {
		t.Errorf("continued it finds %s", text)
	}
	if got, _ := os.ReadFile(filepath.Join(h.Home, ".fake/settings")); string(got) != "the user's\n" {
		t.Errorf("the user's file holds %q", got)
	}
}

// TestAgentWorktreeDirty has an agent begin with changes that are not committed, without the files that rules deny.
func TestAgentWorktreeDirty(t *testing.T) {
	t.Parallel()
	h := newAgentHost(t, nil, `, "worktree": {"dirty": true}`, "--deny", "Read(secret.txt)")
	h.commit()
	for name, text := range map[string]string{"kept.txt": "changed", "new.txt": "untracked", "secret.txt": "SECRET"} {
		host.Must(t, os.WriteFile(filepath.Join(h.Project, name), []byte(text+"\n"), 0o600))
	}
	text, out, failed := h.agent(map[string]any{"isolation": "worktree"},
		shellStep("cat kept.txt new.txt; cat secret.txt; echo more > new.txt"))
	if failed || !strings.Contains(text, "> changed\n> untracked") || strings.Contains(text, "SECRET") {
		t.Errorf("it says\n%s", text)
	}
	if got, _ := os.ReadFile(filepath.Join(h.Project, "new.txt")); string(got) != "untracked\n" {
		t.Errorf("the primary checkout holds %q", got)
	}
	if branch, ok := h.Run(t, nil, "git", "ls-tree", "--name-only",
		fmt.Sprint("toolhost/agent-", out["agent_id"])); !ok || !strings.Contains(branch, "new.txt") ||
		strings.Contains(branch, "secret") {
		t.Errorf("the branch has %s", branch)
	}
}
