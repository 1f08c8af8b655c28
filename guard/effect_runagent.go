package guard

import "strings"

// RunAgent runs an agent for the caller, in its own sandbox. The rules of the caller apply to the agent's effects.
// Its own rules have the form Agent(TYPE).
type RunAgent struct {
	Type, Runner string
	Task         string // the agent's task, in a few words
}

// Judge implements [Effect]. In plan mode the agent is in that mode too.
func (a RunAgent) Judge(j Judgment) {
	s := Subject{What: "run the agent " + a.Type, Form: "Agent",
		Matches: func(spec string) bool { return strings.EqualFold(spec, a.Type) }}
	for _, strict := range []struct {
		rules  ruleList
		action Action
	}{{j.judge.data.deny, Deny}, {j.judge.data.ask, Ask}} {
		if r := j.strict(strict.rules, s); r != nil {
			j.judge.add(byRule(s.What, "To "+s.What, strict.action, r))
			return
		}
	}
	j.judge.add(Part{What: s.What, Action: Allow, Source: builtIn,
		Reason: "The rules that hold for the caller hold for what it does."})
}

// Permission implements [Effect].
func (RunAgent) Permission() Permission { return ToExec }

// Record implements [Effect].
func (a RunAgent) Record() (field, value string) { return "run agent", a.Type }

func (a RunAgent) describe() Description {
	return Description{Items: []Item{{What: "run the agent " + a.Type + " of " + a.Runner, danger: unknown}}}
}

func (a RunAgent) summary() string { return a.Type + ": " + a.Task }

// RunsAgents reports whether the settings name a program that runs agents.
func (c Commands) RunsAgents() bool { return c.p.data.agents }
