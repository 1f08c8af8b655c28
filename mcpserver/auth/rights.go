package auth

import (
	"encoding/json"
	"fmt"
	"strings"
)

// Rights is a set of kinds of tools. The zero set allows nothing. A set gives exactly the tools of its kinds: Exec
// does not contain Read and Write, although a command can read and write whatever its sandbox allows.
type Rights uint8

// The rights.
const (
	// Read is for tools that change nothing: Read, Glob, Grep, TaskOutput.
	Read Rights = 1 << iota
	// Write is for tools that change files: Edit, Write, NotebookEdit. Their results show parts of the files.
	Write
	// Exec is for tools that run and end commands: Bash, TaskStop, and every tool that declares nothing else.
	Exec
	// All is every right.
	All = Read | Write | Exec
)

var rightNames = []struct {
	right Rights
	name  string
}{{Read, "read"}, {Write, "write"}, {Exec, "exec"}}

// Has reports whether all rights of want are in the set. It is false for the empty set.
func (r Rights) Has(want Rights) bool { return want != 0 && r&want == want }

// Names are the names of the rights.
func (r Rights) Names() []string {
	names := []string{}
	for _, n := range rightNames {
		if r.Has(n.right) {
			names = append(names, n.name)
		}
	}
	return names
}

func (r Rights) String() string {
	if r == 0 {
		return "none"
	}
	return strings.Join(r.Names(), ", ")
}

// rightNamed returns the right of this name, or none.
func rightNamed(name string) Rights {
	for _, n := range rightNames {
		if n.name == name {
			return n.right
		}
	}
	return 0
}

// ParseRights returns the set of the named rights. An unknown name or an empty list is an error.
func ParseRights(names []string) (Rights, error) {
	var set Rights
	for _, name := range names {
		right := rightNamed(strings.TrimSpace(name))
		if right == 0 {
			return 0, fmt.Errorf("there is no right %q: the rights are read, write and exec", name)
		}
		set |= right
	}
	if set == 0 {
		return 0, fmt.Errorf("no rights are named: the rights are read, write and exec")
	}
	return set, nil
}

// MarshalJSON writes the set as a list of names.
func (r Rights) MarshalJSON() ([]byte, error) { return json.Marshal(r.Names()) }

// UnmarshalJSON reads a list of names.
func (r *Rights) UnmarshalJSON(text []byte) error {
	var names []string
	if err := json.Unmarshal(text, &names); err != nil {
		return fmt.Errorf("rights must be a list of names: %w", err)
	}
	set, err := ParseRights(names)
	if err != nil {
		return err
	}
	*r = set
	return nil
}
