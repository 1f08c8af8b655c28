package builtin

import "github.com/toolhost/toolhost/guard"

// A Right is what a caller must hold to call a tool. The zero Right is the strictest.
type Right = guard.Permission

// The rights a tool can ask for.
const (
	// ToExec is for what runs or ends commands, and for whatever does not say.
	ToExec = guard.ToExec
	// ToWrite is for what changes files and runs nothing.
	ToWrite = guard.ToWrite
	// ToRead is for what changes nothing.
	ToRead = guard.ToRead
)
