package guard

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
