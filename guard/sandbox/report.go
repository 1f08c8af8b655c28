package sandbox

import (
	"errors"
	"fmt"
	"strings"
)

// A Backend is a means of containment.
type Backend string

// The backends, best first.
const (
	// None is the absence of containment.
	None Backend = ""
	// Namespaces is Linux namespaces set up by this program itself.
	Namespaces Backend = "namespaces"
	// backendLandlock limits writes but cannot hide a file in a readable directory.
	backendLandlock Backend = "landlock"
)

// ErrUnavailable is what errors of Start match when this machine offers no
// means of containment. Their text says why, and what would help.
var ErrUnavailable = errors.New("sandbox: commands cannot be contained on this machine")

// ErrClosed is matched by errors of a sandbox that was closed or has died.
var ErrClosed = errors.New("sandbox: the sandbox has ended")

// An enforcement is what the kernel enforces for every command.
type enforcement struct {
	// Writes: no content outside Policy.Writable changes.
	Writes bool
	// Denies: Denied and Masked cannot be read or written, nor ReadOnly be written.
	Denies bool
	// Network: nothing but what Policy.Network allows is reachable.
	Network bool
	// Processes: nothing a command starts outlives it, or the host.
	Processes bool
}

// all reports whether everything is held.
func (e enforcement) all() bool { return e.Writes && e.Denies && e.Network && e.Processes }

// A Report says what is enforced, and what prevents more.
type Report struct {
	Backend  Backend
	Enforces enforcement
	// Why has one sentence or two for each better means that is not in use, and
	// for each limit of the one that is.
	Why []string
	// Remedy is what a person can do to get a better means: a sentence without a full stop, with the command to run at its
	// end if there is one. "" if nothing is known.
	Remedy string
}

// Text is Why and Remedy in one line.
func (r Report) Text() string {
	s := strings.Join(r.Why, " ")
	if r.Remedy != "" {
		s = strings.TrimSpace(s + " " + r.Remedy + ".")
	}
	return s
}

// String is the report in one line, for logs and for people.
func (r Report) String() string {
	if r.Backend == None {
		return "no sandbox: " + r.Text()
	}
	held, open := []string{}, []string{}
	for _, f := range []struct {
		name string
		on   bool
	}{
		{"writes", r.Enforces.Writes}, {"denied files", r.Enforces.Denies},
		{"network", r.Enforces.Network}, {"processes", r.Enforces.Processes},
	} {
		if f.on {
			held = append(held, f.name)
		} else {
			open = append(open, f.name)
		}
	}
	s := fmt.Sprintf("%s: holds %s", r.Backend, strings.Join(held, ", "))
	if len(open) > 0 {
		s += "; does not hold " + strings.Join(open, ", ")
	}
	if why := r.Text(); why != "" {
		s += " (" + why + ")"
	}
	return s
}
