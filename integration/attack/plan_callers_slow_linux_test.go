//go:build slow

package attack

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/toolhost/toolhost/integration/client"
	"github.com/toolhost/toolhost/integration/host"
)

// lastScope returns the scope of the last call on record.
func (s *shop) lastScope() (scope string) {
	s.t.Helper()
	raw, err := os.ReadFile(filepath.Join(s.state, "audit.jsonl"))
	host.Must(s.t, err)
	for line := range strings.Lines(string(raw)) {
		var rec struct{ Scope string }
		host.Must(s.t, json.Unmarshal([]byte(line), &rec))
		scope = rec.Scope
	}
	return scope
}

// setMode runs toolhost mode.
func (s *shop) setMode(mode, scope string) {
	s.t.Helper()
	cmd := exec.Command(host.Binary, "mode", mode, scope)
	cmd.Dir, cmd.Env = s.ws, s.env
	if out, err := cmd.CombinedOutput(); err != nil {
		s.t.Fatalf("mode %s %q: %v: %s", mode, scope, err, out)
	}
}

// TestAttackPlanCallers has one caller, or one conversation, in plan mode while another of the same host and workspace is not: neither
// sees or changes what is the other's, and what a plan changed is nowhere when it has ended.
func TestAttackPlanCallers(t *testing.T) {
	t.Parallel()
	if !host.Contained(t) {
		t.Skip("nothing contains commands on this machine")
	}
	for _, era := range []client.Era{client.Modern, client.Legacy} {
		t.Run(string(era), func(t *testing.T) {
			t.Parallel()
			p := planCallers{openShop(t, era, "--allow", "Edit"), t}
			alice, bob := p.enter("alice", "read,write,exec"), p.enter("bob", "read,write,exec")
			p.attack("another principal", alice, bob, object{"threadId": "plans"}, object{"threadId": "works"})
			p.attack("another conversation", alice, alice, object{"threadId": "plans"}, object{"threadId": "works"})
		})
	}
}

type planCallers struct {
	*shop
	t *testing.T
}

// attack runs one caller in plan mode, and one that works.
func (p planCallers) attack(name string, plans, works *client.Conn, plan, work object) {
	t, ws := p.t, p.ws
	says := func(who *client.Conn, meta object, command string, want ...string) string {
		t.Helper()
		got := p.bash(who, command, meta)
		for _, w := range want {
			if !strings.Contains(got, w) {
				t.Errorf("%s: %s: want %q, got\n%s", name, command, w, got)
			}
		}
		return got
	}
	onDisk := func(file, want string) {
		t.Helper()
		got, _ := os.ReadFile(filepath.Join(ws, file)) // none is ""
		if string(got) != want {
			t.Errorf("%s: %s is %q, want %q", name, file, got, want)
		}
	}
	says(plans, plan, "rm -rf made real cache .mcp.json; echo one > shared; mkdir -p ~/.cache/pip")
	scope := p.lastScope()
	before := taskID.FindString(p.bashTask(plans, plan,
		"until [ -e go ]; do sleep 0.02; done; echo before > before; sleep 600"))
	p.setMode("plan", scope)
	if _, r := p.call(plans, "Write", object{"file_path": "written", "content": "x"}, plan); !r.IsError {
		t.Errorf("%s: Write in plan mode: %s", name, r.Text())
	}
	if _, r := p.call(works, "Write", object{"file_path": "written", "content": "x"}, work); r.IsError {
		t.Errorf("%s: Write of the other: %s", name, r.Text())
	}
	// What the plan changes is its own, protected names and caches too.
	says(plans, plan, `mkdir made; echo CANARY-PLAN > made/x; echo CANARY-PLAN > shared; echo '{"mcpServers":{}}' > .mcp.json; rm written
		echo CANARY-PLAN > ~/.cache/pip/x; mkdir -p .git/hooks && echo CANARY-PLAN > .git/hooks/pre-commit; cat shared made/x`, "CANARY-PLAN")
	says(works, work, "cat shared made/x ~/.cache/pip/x; cat .git/hooks/pre-commit; ls -A; grep -rs CANARY.PLAN . ; true", "one", "written")
	if got := p.bash(works, "cat shared made/* .mcp.json ~/.cache/pip/x .git/hooks/* 2>&1; find ~ .. /tmp /var/tmp /run /dev/shm -xdev -newer shared -name x -exec cat {} + 2>/dev/null", work); strings.Contains(got, "CANARY-PLAN") {
		t.Errorf("%s: the other sees the plan: %s", name, got)
	}
	onDisk("shared", "one\n")
	onDisk(".mcp.json", "")
	onDisk("written", "x")
	// What the other changes stands, while a command and a task of the plan run.
	planned := taskID.FindString(p.bashTask(plans, plan,
		"until [ -e real ]; do sleep 0.02; done; echo CANARY-PLAN > planned; echo seen; sleep 600"))
	says(works, work, "echo two > real; echo kept > mine; cat mine", "kept")
	onDisk("real", "two\n")
	onDisk("planned", "")
	p.undoes("mine") // although a task of a plan runs
	onDisk("mine", "")
	onDisk("real", "")
	says(works, work, "echo two > real; echo kept > mine; cat mine", "kept")
	// The task of the plan cannot be taken out of it, nor one from before into it.
	for _, id := range []string{planned, before} {
		if _, r := p.call(works, "TaskStop", object{"task_id": id + "A"}, work); !r.IsError {
			t.Errorf("%s: a task that is not there was stopped", name)
		}
	}
	host.Must(t, os.WriteFile(filepath.Join(ws, "go"), nil, 0o644))
	host.Eventually(t, func() string { // it began before the plan, and says so
		if _, err := os.Stat(filepath.Join(ws, "before")); err != nil {
			return "the task from before the plan does not go on"
		}
		return ""
	})
	// The mode changes between two commands of the plan, and back.
	p.setMode("default", scope)
	says(plans, plan, "cat shared; ls -A made .mcp.json planned 2>&1; echo three > after", "one",
		"cannot access 'made'")
	onDisk("after", "three\n")
	p.setMode("plan", scope)
	says(plans, plan, "cat made/x planned 2>&1; cat mine", "No such file", "kept")
	p.setMode("default", scope)
	if raw, r := p.call(plans, "TaskOutput", object{"task_id": planned, "block": false}, plan); strings.Contains(raw,
		"The task is running") {
		t.Errorf("%s: the task of the plan runs on: %s", name, r.Text())
	}
	_, _ = p.call(plans, "TaskStop", object{"task_id": before}, plan)
	onDisk("planned", "")
	onDisk("mine", "kept\n")
	for _, file := range []string{"real", "mine", "after", "before", "written", "go"} {
		host.Must(t, os.RemoveAll(filepath.Join(ws, file)))
	}
}

// undoes takes the last change of a file back.
func (p planCallers) undoes(file string) {
	p.t.Helper()
	run := func(args ...string) []byte {
		cmd := exec.Command(host.Binary, args...)
		cmd.Dir, cmd.Env = p.ws, p.env
		out, err := cmd.CombinedOutput()
		if err != nil {
			p.t.Fatalf("%v: %v: %s", args, err, out)
		}
		return out
	}
	var all []struct {
		ID    string
		Files []struct{ Path string }
	}
	raw := run("history", "--json")
	host.Must(p.t, json.Unmarshal(raw, &all))
	for _, c := range all {
		for _, f := range c.Files {
			if filepath.Base(f.Path) == file {
				run("undo", c.ID)
				return
			}
		}
	}
	p.t.Errorf("no change of %s is in the history: %s", file, host.Clip(string(raw), 2000))
}

// bashTask starts a command in the background.
func (p planCallers) bashTask(who *client.Conn, meta object, command string) string {
	p.t.Helper()
	raw, r := p.call(who, "Bash", object{"command": command, "run_in_background": true}, meta)
	if taskID.FindString(raw) == "" {
		p.t.Fatalf("no task: %s", r.Text())
	}
	return raw
}
