//go:build slow

package agents

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/toolhost/toolhost/integration/host"
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
