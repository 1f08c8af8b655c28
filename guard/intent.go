package guard

// An Intent is what one call is about to do, as a tool's Plan found it. An
// Intent that names no file, command, task or extension is refused.
type Intent struct {
	// Tool is the name the tool is listed under.
	Tool string
	// Args are the call's arguments by name, for Tool(parameter:value) rules. Only
	// strings, booleans and numbers are compared. Nil for none.
	Args map[string]any
	// Reads and Writes are the files the call opens.
	Reads, Writes []Path
	// Searches are the roots of a search. They are judged like reads of the
	// directory; what is denied below them is left out by [Policy.Hidden].
	Searches []Path
	// Command is what Bash would run; nil for the other tools.
	Command *Command
	// Unsandboxed says that the call asks to run outside the containment.
	Unsandboxed bool
	// ReadsTask says that the call reads the output of a background task of its caller.
	ReadsTask bool
	// StopsTask says that the call ends a background task of its caller.
	StopsTask bool
	// Extension says that the tool is not one of package builtin, so that nothing
	// is known of what it does: an allow rule or a person must permit it.
	Extension bool
}

// touches reports whether the intent says what the call would do.
func (in *Intent) touches() bool {
	return len(in.Reads)+len(in.Searches)+len(in.Writes) > 0 || in.Command != nil || in.ReadsTask || in.StopsTask || in.Extension
}

// A Command is a shell command line and the directory it starts in.
type Command struct {
	Text string
	Dir  Path
}

// A Caller is on whose behalf calls are judged.
type Caller struct {
	// Principal names the caller, for the records of others. No rule depends on it.
	Principal string
	// Remote says that nobody sits at the machine: what would run uncontained is
	// asked.
	Remote bool
	// Own are directories in the host's state that this caller may read, such as
	// its stored results, although the state itself is masked. Absolute.
	Own []string
}

// A Containment says what holds the reads and writes of a Bash command. The
// zero value holds nothing.
type Containment struct {
	// Writes says that commands can write in the boundary only.
	Writes bool
	// Denies says that commands cannot reach what Read and Edit rules deny, nor write what is protected.
	Denies bool
	// Name is the backend's ("namespaces", "bubblewrap"); Why says what it cannot
	// do and why, for the refusal.
	Name, Why string
}
