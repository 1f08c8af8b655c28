package guard

// CallTool is the call of a tool that package builtin does not declare: nothing is known of
// what it does, so an allow rule on its name or a person must permit it.
type CallTool struct{}

// Judge implements [Effect].
func (CallTool) Judge(j Judgment) {
	j.Decide(Subject{What: "call " + j.judge.in.Tool, Rule: j.judge.in.Tool})
}

// Permission implements [Effect].
func (CallTool) Permission() Permission { return ToExec }

// Record implements [Effect].
func (CallTool) Record() (field, value string) { return "", "" }
