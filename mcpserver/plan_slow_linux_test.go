//go:build slow

package mcpserver

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/toolhost/toolhost/builtin"
	"github.com/toolhost/toolhost/integration/testenv"
)

var taskID = regexp.MustCompile(`"task_id":"([^"]+)"`)

// TestPlanDiscards: what commands change in plan mode is seen by the commands of the same plan only, until it ends.
func TestPlanDiscards(t *testing.T) {
	t.Parallel()
	testenv.NeedsNamespaces(t)
	p, root := openPlanner(t, map[string]string{"a": "a\n", "ask": "asked\n", ".claude/settings.json": `{"permissions":{"ask":["Read(ask)"]}}`})
	p.o.answer = Answer{Decision: AllowOnce}
	sees := func(thread, command, want string) {
		t.Helper()
		if text := p.bash(thread, command); !strings.Contains(text, want) {
			t.Errorf("%s: %s: want %q, got\n%s", thread, command, want, text)
		}
		if entries, err := os.ReadDir(root); err != nil || len(entries) != 3 {
			t.Errorf("%s: %s: the workspace has %d entries, want 3 (%v)", thread, command, len(entries), err)
		}
	}
	before := p.bash("one", "sleep 60", `,"run_in_background":true`)
	text, _ := p.call("one", "EnterPlanMode", `{}`)
	if id := taskID.FindStringSubmatch(before); id == nil || !strings.Contains(text, id[1]) {
		t.Errorf("a task that began before: %s\n%s", before, text)
	}
	p.call("two", "EnterPlanMode", `{}`)
	sees("one", "echo new > new; rm a; mkdir d; ls", "Plan mode: only commands see")
	sees("one", "cat new; ls a", "cannot access 'a'")
	sees("one", "echo again; cat new", "again\nnew\n")
	sees("two", "cat a new", "a\ncat: new")
	sees("three", "cat a new", "a\ncat: new")
	sees("one", "cd d && pwd", "is dropped with the plan")
	sees("one", "git mv x y; python3 -c 'import os; os.mkdir(\"e\"); os.rename(\"e\", \"f\")'; ls", "f\n")
	sees("one", "cat a* ask", "A rule asks before")
	sees("one", "for f in as*; do cat $f; done", "Use Read, which asks a person")
	task := taskID.FindStringSubmatch(p.bash("one", "echo begun; sleep 60", `,"run_in_background":true`))
	stopped := taskID.FindStringSubmatch(p.bash("one", "sleep 60", `,"run_in_background":true`))
	if task == nil || stopped == nil {
		t.Fatal("no task was started")
	}
	if text, isError := p.call("one", "TaskStop", `{"task_id":"`+stopped[1]+`"}`); isError {
		t.Errorf("a task of the plan was not stopped: %s", text)
	}
	if err := os.WriteFile(filepath.Join(root, "a"), []byte("changed\n"), 0o600); err != nil { // by a person
		t.Fatal(err)
	}
	sees("two", "cat a", "changed")
	if text, isError := p.call("one", "ExitPlanMode", `{"plan":"p"}`); isError {
		t.Fatal(text)
	}
	if text, _ := p.call("one", "TaskOutput", `{"task_id":"`+task[1]+`"}`); !strings.Contains(text, "begun") ||
		!strings.Contains(text, "plan in which it ran has ended") {
		t.Errorf("a task of the plan:\n%s", text)
	}
	sees("one", "ls", "a\nask\n")
	if text, _ := p.call("one", "EnterPlanMode", `{}`); !strings.Contains(text, "plan mode") {
		t.Fatal(text)
	}
	sees("one", "ls; echo x > new", "a\nask\n\n[Plan mode")
	a := p.h.Admit(Local(), map[string]any{"threadId": "one"}, "", true)
	label := a.scope.Label
	a.Leave()
	for _, planning := range []bool{false, true} { // by a person, in another process
		if err := Modes(p.h).Set(label, planning); err != nil {
			t.Fatal(err)
		}
	}
	sees("one", "ls", "a\nask\n\n[Plan mode")
	if calls, err := p.h.runtime.Calls(p.h.policies.of(LocalPrincipal), builtin.ChangeFilter{}); err != nil ||
		len(calls) > 0 {
		t.Errorf("the history has entries: %v, %v", calls, err)
	}
}
