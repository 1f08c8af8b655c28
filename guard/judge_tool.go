package guard

import "github.com/toolhost/toolhost/guard/settings"

// tool applies the rules on every call of the tool.
func (j *judge) tool() {
	if r := j.k.deny.Named(j.in.Tool); r != nil {
		j.add(j.toolPart(r, Deny))
	}
	if r := j.k.ask.Named(j.in.Tool); r != nil {
		j.add(j.toolPart(r, Ask))
	}
}

// task judges what the call does to a background task of its caller.
func (j *judge) task() {
	if j.in.ReadsTask {
		j.add(Part{What: "read a task", Action: Allow, Source: builtIn, Reason: "It is a task of this caller."})
	}
	switch {
	case !j.in.StopsTask:
	case j.k.mode == settings.ModePlan:
		j.add(j.planPart("stop a task"))
	default:
		j.add(Part{What: "stop a task", Action: Allow, Source: builtIn, Reason: "It is a task of this caller."})
	}
}

// extension judges a tool whose effects are not known.
func (j *judge) extension() {
	if !j.in.Extension {
		return
	}
	name := j.in.Tool
	what := "call " + name
	r := j.k.allow.Named(name)
	switch {
	case j.k.mode == settings.ModePlan:
		j.add(j.planPart(what))
	case r != nil:
		j.add(Part{What: what, Action: Allow, Rule: r.Text, Source: r.Source, Reason: "A rule allows the tool."})
	case j.k.mode == settings.ModeBypass:
		j.add(j.modePart(what, Allow, "This mode asks for nothing that no rule denies."))
	default:
		j.add(Part{
			What: what, Action: Ask, Rule: modeRule(j.k.mode), Source: builtIn,
			Reason: "No rule allows the tool " + name + ".", Remedy: allowRemedy(name),
		})
	}
}
