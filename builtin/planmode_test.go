package builtin

import (
	"strings"
	"testing"

	"github.com/toolhost/toolhost/builtin/internal/agent"
	"github.com/toolhost/toolhost/builtin/internal/task"
)

// TestPlanModeNamesAgents: plan mode does not reach the sandbox of an agent that began before, so the result names it.
func TestPlanModeNamesAgents(t *testing.T) {
	b := &Runtime{}
	reads := &knownAgent{def: agent.Definition{Mode: "plan"}}
	var ids []string
	for _, spec := range []task.Spec{{Principal: "me", Data: &knownAgent{}}, {Principal: "me", Data: reads},
		{Principal: "other", Data: &knownAgent{}}} {
		spec.Kind = agentKind
		one, err := b.tasks.Reserve(spec)
		if err != nil {
			t.Fatal(err)
		}
		ids = append(ids, one.ID)
	}
	call, err := enterPlanModeTool.Bind(nil)
	if err != nil {
		t.Fatal(err)
	}
	plan, err := call.Plan(t.Context(), &Env{Runtime: b, Principal: "me", Client: Client{CanAsk: true}, SetPlanning: func(bool) error { return nil }})
	if err != nil {
		t.Fatal(err)
	}
	got, err := plan.Run(t.Context())
	if err != nil || !strings.Contains(got.Text, "TaskStop: "+ids[0]+".") {
		t.Errorf("got %q, %v", got.Text, err)
	}
}
