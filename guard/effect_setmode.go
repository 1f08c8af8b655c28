package guard

// SetMode puts the caller's scope into plan mode, or ends plan mode.
type SetMode struct {
	Planning bool
	Plan     string // the plan that a person approves by ending the mode
}

// Judge implements [Effect]. Entering plan mode needs no approval. Leaving it always needs approval, which no rule,
// mode or hook can give.
func (m SetMode) Judge(j Judgment) {
	p := Part{What: m.what(), Action: Allow, Source: builtIn, Reason: "Plan mode only forbids more."}
	if !m.Planning {
		p.Action, p.Rule, p.Final = Ask, ruleMode+" plan", true
		p.Reason = "Plan mode stays until a person agrees to leave it."
	}
	j.judge.add(p)
}

func (m SetMode) what() string {
	if m.Planning {
		return "enter plan mode"
	}
	return "leave plan mode"
}

// Permission implements [Effect].
func (SetMode) Permission() Permission { return ToRead }

// Record implements [Effect].
func (SetMode) Record() (field, value string) { return "", "" }

func (m SetMode) describe() Description {
	return Description{Text: m.Plan, Items: []Item{{What: m.what(), danger: changes}}}
}
func (m SetMode) summary() string { return m.what() }
