package supervise

import (
	"os"

	"github.com/toolhost/toolhost/guard/sandbox/connectgate"
	"github.com/toolhost/toolhost/guard/sandbox/execgate"
)

// CallVariable is set in every command's environment to a random identifier of that command. By it the processes of a
// command are found if its supervisor was killed.
const CallVariable = "TOOLHOST_CALL"

// A Starter starts a process in a new session and without a terminal. The runner
// calls it for every shell and for the login shell's PATH; a sandbox supplies its
// own. The Files of the Spec stay the caller's to close.
type Starter func(Spec) (Process, error)

// A Spec says what to start.
type Spec struct {
	Argv  []string   // Argv[0] is the absolute path of the program
	Dir   string     // absolute working directory
	Env   []string   // the whole environment, "NAME=value"
	Files []*os.File // the child's descriptors 0, 1, 2, …, in blocking mode; all others are closed

	// Execs judges the programs that the process and its descendants start; nil: none is judged.
	Execs *execgate.Gate
	// Hosts judges connections, in a sandbox.
	Hosts *connectgate.Gate
}

// A Process is a started process and everything that descends from it.
type Process interface {
	// Done is closed when the process itself (not its descendants) has ended.
	Done() <-chan struct{}

	// Wait waits for the end of the process, and returns how it ended. An error means that this is not known, for
	// instance because the supervisor was killed.
	Wait() (Status, error)

	// Signal sends a signal to the process group of the process. It is no error
	// if nothing is left to receive it.
	Signal(os.Signal) error

	// Kill kills the process and all its descendants, including those that have left its session or whose parent has
	// died. It returns when none is left, with the number of processes it had to end; Wait has returned then or does so
	// soon. It may be called at any time, also more than once. The runner calls it for every process at the end, so Kill
	// is the place to release what belongs to the process. An error says what could not be ended.
	Kill() (ended int, err error)
}

// A Finisher is a Process that can be ended at its last word, before the kernel has released it, because that takes
// longer than most commands run.
type Finisher interface {
	Process

	// TryFinish ends the process if it has no descendants, and reports whether it did. If so, nothing of it runs or can
	// start, Kill need not be called, and Done is closed soon. Otherwise nothing was changed, and the caller must wait
	// for the process. files is the number of descriptors that the process had open, or 0 if it is not known.
	TryFinish() (files int, ok bool)
}

// A Status tells how a process ended.
type Status struct {
	ExitCode int    // as the shell counts: 128 + the signal's number after a signal
	Signal   string // the name of the signal that ended it ("SIGKILL"), or ""
}
