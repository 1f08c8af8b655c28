//go:build slow

package agents

import (
	"strings"
	"testing"
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
