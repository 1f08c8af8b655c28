package guard

import "cmp"

// CallTool is the call of a tool that package builtin does not declare: one of another MCP server, or of the program
// that embeds the host. Its effect is not known, and hints of the server do not loosen the decision: an allow rule on
// the tool, or a person, must permit it.
type CallTool struct {
	// Server is the server, and Tool the name of the tool on it.
	Server, Tool string
	// Reads is "resource" or "prompt" if the call reads one from the server instead. Tool is then its name.
	Reads string
	// Listed says that the server lists what is read. It may then be read in each mode, unless a rule on the server
	// denies it: a person has configured the server, and the server learns only which resource is read, or the arguments
	// of a prompt. A prompt with arguments counts as unlisted on a server that a project configures.
	Listed bool
}

// Judge implements [Effect].
func (c CallTool) Judge(j Judgment) {
	s := Subject{What: "call " + j.judge.in.Tool, Rule: j.judge.in.Tool}
	if c.Server != "" {
		s.What, s.AlwaysAllow = "call "+c.Tool+" of the server "+c.Server, true
	}
	if c.Reads != "" {
		s.What, s.ReadOnly = "read the "+c.Reads+" "+c.Tool+" of the server "+c.Server, true
	}
	if c.Reads == "resource" {
		s.Form, s.Rule = "mcp__"+c.Server+"__", "mcp__"+c.Server
	}
	if data := j.judge.data; c.Reads != "" && c.Listed && j.strict(data.deny, s) == nil &&
		j.strict(data.ask, s) == nil {
		j.Add(Part{What: s.What, Action: Allow, Source: builtIn,
			Reason: "The server lists it, and no rule is against it."})
		return
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
	return cmp.Or(c.Reads, "call"), c.Server + "/" + c.Tool
}
