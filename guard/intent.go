package guard

// A Caller is the principal that calls are judged for.
type Caller struct {
	// Principal names the caller, for the records of others. No rule depends on it.
	Principal string
	// Remote says that no one sits at the machine: what would run uncontained needs
	// approval.
	Remote bool
	// Own are directories in the host's state that this caller may read, such as
	// its stored results, although the state itself is masked. Absolute.
	Own []string
}

// A Containment says how the kernel limits the reads and writes of a Bash command. The
// zero value limits nothing.
type Containment struct {
	// Writes says that commands can write in the boundary only.
	Writes bool
	// Denies says that commands cannot reach what Read and Edit rules deny, nor write what is protected.
	Denies bool
	// Name is the backend's ("namespaces", "bubblewrap"); Why says what it cannot
	// do and why, for the refusal.
	Name, Why string
}
