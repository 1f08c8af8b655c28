package builtin

import (
	"strings"
	"testing"

	"github.com/toolhost/toolhost/builtin/internal/agent"
)

// TestPlanModeNamesAgents: plan mode does not reach the sandbox of an agent that began before, so the result names it.
func TestPlanModeNamesAgents(t *testing.T) {
	b := &Runtime{}
	for id, a := range map[string]*knownAgent{"a": {owner: "me"}, "b": {owner: "me", def: agent.Definition{Mode: "plan"}}, "c": {owner: "other"}} {
		if a.id = id; b.agents.reserve(a) != nil {
			t.Fatal(id)
		}
	}
	call, err := enterPlanModeTool.Bind(nil)
	if err != nil {
		t.Fatal(err)
	}
	plan, err := call.Plan(t.Context(), &Env{Runtime: b, Principal: "me", CanAsk: true, SetPlanning: func(bool) error { return nil }})
	if err != nil {
		t.Fatal(err)
	}
	got, err := plan.Run(t.Context())
	if err != nil || !strings.Contains(got.Text, "TaskStop: a.") {
		t.Errorf("got %q, %v", got.Text, err)
	}
}
