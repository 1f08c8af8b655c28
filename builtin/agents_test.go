package builtin

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

// TestAgentLimits fills the table of agents: 4 of a caller run at once and 16 of the host, and what has ended makes room.
func TestAgentLimits(t *testing.T) {
	var table agentTable
	start := func(owner string) (*knownAgent, error) {
		a := &knownAgent{owner: owner}
		return a, table.reserve(a)
	}
	var first *knownAgent
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
		} else if named := strings.Contains(err.Error(), first.id); named != (owner == "caller0") {
			t.Errorf("%s: the error names the agent of caller0: %v: %v", owner, named, err)
		}
	}
	table.end(first, "")
	if _, err := start("caller9"); err != nil {
		t.Errorf("after one has ended: %v", err)
	}
}

// TestAgentsForgotten ends more agents of a caller than are remembered: the oldest is forgotten, and those of others are not.
func TestAgentsForgotten(t *testing.T) {
	var table agentTable
	run := func(owner string, ended time.Time) *knownAgent {
		t.Helper()
		a := &knownAgent{owner: owner}
		if err := table.reserve(a); err != nil {
			t.Fatal(err)
		}
		table.end(a, "session")
		a.ended = ended
		return a
	}
	now := time.Now()
	other := run("other", now.Add(-2*time.Hour))
	oldest, second := run("one", now.Add(-time.Hour)), run("one", now.Add(-time.Minute))
	for range maxAgentsKept - 1 {
		run("one", now)
	}
	for a, want := range map[*knownAgent]bool{oldest: false, second: true, other: true} {
		if _, ok := table.find(a.owner, a.id); ok != want {
			t.Errorf("the agent of %s that ended at %s is remembered: %v, expected %v", a.owner, a.ended, ok, want)
		}
	}
	if _, ok := table.find("other", second.id); ok {
		t.Error("the agent of one caller is found for another")
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
