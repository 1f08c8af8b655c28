package guard

// CallTool is the call of a tool that package builtin does not declare: one of another MCP server, or of the program that
// embeds the host. What it does is not known, and what a server says of it loosens nothing: an allow rule on the tool, or
// a person, must permit it.
type CallTool struct{ Server, Tool string }

// Judge implements [Effect].
func (c CallTool) Judge(j Judgment) {
	s := Subject{What: "call " + j.judge.in.Tool, Rule: j.judge.in.Tool}
	if c.Server != "" {
		s.What, s.AlwaysAllow = "call "+c.Tool+" of the server "+c.Server, true
	}
	j.Decide(s)
}

// Permission implements [Effect].
func (CallTool) Permission() Permission { return ToExec }

// Record implements [Effect].
func (c CallTool) Record() (field, value string) {
	if c.Server == "" {
		return "", ""
	}
	return "call", c.Server + "/" + c.Tool
}
