package builtin

import (
	"fmt"
	"strings"
	"testing"

	"github.com/toolhost/toolhost/builtin/internal/task"
)

// TestAgentLimits fills the table with agents: 4 of a caller run at once and 16 of the host, and one that has ended makes room.
func TestAgentLimits(t *testing.T) {
	var table task.Table
	start := func(owner string) (*task.Task, error) {
		return table.Reserve(task.Spec{Kind: agentKind, Principal: owner})
	}
	var first *task.Task
	for i := range maxAgents {
		a, err := start(fmt.Sprint("caller", i/maxAgentsOfCaller))
		if err != nil {
			t.Fatalf("agent %d: %v", i+1, err)
		}
		if i == 0 {
			first = a
		}
	}
	for owner, want := range map[string]string{
		"caller0": "4 run already: ", // names them first
		"caller9": "16 agents run already on this host, 0 of them yours",
	} {
		if _, err := start(owner); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got error %v, expected %q", owner, err, want)
		} else if named := strings.Contains(err.Error(), first.ID); named != (owner == "caller0") {
			t.Errorf("%s: the error names the agent of caller0: %v: %v", owner, named, err)
		}
	}
	first.Release()
	if _, err := start("caller9"); err != nil {
		t.Errorf("after one has ended: %v", err)
	}
}

// TestAgentConcurrency has the calls that may run while others run: an agent that works on the files of the caller must not.
func TestAgentConcurrency(t *testing.T) {
	for more, want := range map[string]bool{
		"": false, `, "isolation": "none"`: false, `, "isolation": "worktree"`: true, `, "run_in_background": true`: true,
	} {
		call, err := agentTool.Bind([]byte(`{"description": "x", "prompt": "x"` + more + `}`))
		if err != nil || call.ConcurrencySafe != want {
			t.Errorf("%s: got %+v, error %v, expected that it may run with others: %v", more, call, err, want)
		}
	}
}
