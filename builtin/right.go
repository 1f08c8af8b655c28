package builtin

// A Right is what a caller must hold to call a tool. The zero Right is the strictest.
type Right uint8

// The rights a tool can ask for.
const (
	// ToExec is for what runs or ends commands, and for whatever does not say.
	ToExec Right = iota
	// ToWrite is for what changes files and runs nothing.
	ToWrite
	// ToRead is for what changes nothing.
	ToRead
)

func (r Right) String() string {
	switch r {
	case ToRead:
		return "read"
	case ToWrite:
		return "write"
	}
	return "exec"
}
