package builtin

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/google/jsonschema-go/jsonschema"

	"github.com/toolhost/toolhost/guard"
	"github.com/toolhost/toolhost/guard/settings"
)

// maxPlan is the longest plan, in characters. A question shows that much.
const maxPlan = 10_000

// enterPlanModeTool puts the scope into plan mode. It needs a person, because only a person can end the mode.
var enterPlanModeTool = declare(Tool[struct{}]{
	Name: "EnterPlanMode", Title: "Enter plan mode", Brief: "look and plan before changing anything",
	OptIn: true, NeedsPerson: true, Hints: Hints{Additive: true, Idempotent: true, Closed: true},
	Permission: guard.ToRead, MaxResult: 1000,
	Plan: func(_ context.Context, env *Env, _ struct{}) (Plan, error) {
		if !env.CanAsk {
			return Plan{}, errors.New("plan mode is left by a person's approval, and no person can be asked here: make the " +
				"plan without it")
		}
		return Plan{
			Intent: guard.Intent{Effects: []guard.Effect{guard.SetMode{Planning: true}}},
			Run: func(context.Context) (Result, error) {
				if err := env.SetPlanning(true); err != nil {
					return Result{}, err
				}
				text := "This conversation is in plan mode: Edit and Write are refused, and what commands change is dropped when " +
					"the plan ends. " +
					"Look around, try things, make the plan, and show it with ExitPlanMode. Only a person ends the mode."
				var writing []string
				for _, t := range env.Runtime.tasks.Running(env.Principal) {
					known, _ := t.Data.(*knownAgent)
					if known != nil && !known.def.ReadsOnly() || t.Kind == commandKind && t.Scope == env.Scope {
						writing = append(writing, t.ID)
					}
				}
				if len(writing) > 0 {
					text += " Tasks that began before can still change files; end them with TaskStop: " +
						strings.Join(writing, ", ") + "."
				}
				return Result{Text: text}, nil
			},
		}, nil
	},
})

// exitPlanModeInput is the input of [exitPlanModeTool].
type exitPlanModeInput struct {
	Plan string `json:"plan" jsonschema:"the plan as the person should read it, in Markdown"`
}

// exitPlanModeTool shows a plan to a person, who decides whether the mode ends.
var exitPlanModeTool = declare(Tool[exitPlanModeInput]{
	Name: "ExitPlanMode", Title: "Show the plan", Brief: "have a person approve the plan",
	OptIn: true, NeedsPerson: true, Hints: Hints{Closed: true}, Permission: guard.ToRead, MaxResult: 1000,
	Refine: func(s *jsonschema.Schema) { s.Properties["plan"].MinLength = jsonschema.Ptr(1) },
	Plan: func(_ context.Context, env *Env, in exitPlanModeInput) (Plan, error) {
		switch n := utf8.RuneCountInString(in.Plan); {
		case env.Plan == "" && env.Policy.Mode() == settings.ModePlan:
			return Plan{}, errors.New("plan mode is the mode of the settings, which this tool does not change: a person does " +
				"(permissions.defaultMode). Tell the user the plan")
		case env.Plan == "":
			return Plan{}, errors.New("this conversation is not in plan mode: there is nothing to leave")
		case strings.TrimSpace(in.Plan) == "":
			return Plan{}, errors.New("plan: expected the plan as text, got an empty one: a person decides by its text")
		case n > maxPlan:
			return Plan{}, fmt.Errorf("plan: expected at most %d characters, got %d: shorten it, so that a person sees "+
				"all of it", maxPlan, n)
		}
		return Plan{
			Intent: guard.Intent{Effects: []guard.Effect{guard.SetMode{Plan: in.Plan}}},
			Run: func(context.Context) (Result, error) {
				if err := env.SetPlanning(false); err != nil {
					return Result{}, err
				}
				env.Runtime.endPlan(planScope{env.Principal, env.Scope})
				return Result{Text: "The person agreed to the plan. Plan mode has ended; the mode is what it was before. Carry " +
					"the plan out."}, nil
			},
		}, nil
	},
})
