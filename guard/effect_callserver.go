package guard

// CallServer is the call of a tool of another MCP server. What it does is not known, and what the server says of it loosens
// nothing: an allow rule on the tool or its server, or a person, must permit it.
type CallServer struct{ Server, Tool string }

// Judge implements [Effect].
func (c CallServer) Judge(j Judgment) {
	name := j.judge.in.Tool
	j.Decide(Subject{What: "call " + c.Tool + " of the server " + c.Server, Rule: name, AlwaysAllow: true})
}

// Permission implements [Effect].
func (CallServer) Permission() Permission { return ToExec }

// Record implements [Effect].
func (c CallServer) Record() (field, value string) { return "call", c.Server + "/" + c.Tool }
