package contract

import (
	"errors"
	"syscall"

	"github.com/toolhost/toolhost/guard/sandbox/internal/place"
)

// The arguments of a program that is to become part of a sandbox: [Arg], and which part.
const (
	Arg            = "__sandbox"
	RoleNamespaces = "namespaces" // guard the commands of a sandbox, as process 1 of namespaces
	RoleLandlock   = "landlock"   // guard one command
	RoleJob        = "job"        // run a program as a job in a terminal
)

// Descriptors of the process inside at its start.
const (
	ControlFD = 3 // the socket to the host, see [Conn]
	PlanFD    = 4 // a pipe with the plan
	// LastFD is a further one for the plan. It makes the kernel allocate a table of descriptors that is large enough
	// for all mounts. A process with several threads would wait each time that its table grows, 5 to 20 ms for each.
	LastFD = 511
)

// Descriptors of a process with [RoleJob], after the command's own three.
const (
	TerminalFD   = 3 // the terminal
	JobControlFD = 4 // the socket to the host's end of the terminal, see [Suspended]
)

// Devices are the nodes that a command finds in /dev.
var Devices = [...]string{"null", "zero", "full", "random", "urandom", "tty"}

// ErrChanged says that an object is not the one that the host judged.
var ErrChanged = errors.New("was replaced while the sandbox was being set up; try again")

// A Kind is the kind of a message, and its first byte.
type Kind byte

// Requests of the host.
const (
	Spawn   Kind = 'S' // start a command; descriptors: its files
	Signal  Kind = 'G' // send one to a command
	Kill    Kind = 'K' // end all that is left of a command
	Deny    Kind = 'D' // hide objects
	Hold    Kind = 'H' // make objects read-only
	Show    Kind = 'V' // show entries of the host in private directories
	Try     Kind = 'P' // try what the policy forbids
	Refresh Kind = 'N' // refresh overlays
	Dial    Kind = 'L' // connect to a port of the loopback interface; port 0: open the table of sockets
	Listen  Kind = 'T' // listen on a port of the loopback interface
)

// A Request is what the host asks of the process inside. Each is answered by an [Event] with its ID: Spawn by Spawned,
// Signal by none, and all others by Done.
type Request struct {
	Kind Kind
	// ID is the number of the request. That of Spawn is also the command's, and Signal has the command's.
	ID uint64
	// Command is the one to Kill.
	Command uint64
	// Dir, Argv and Env are those of the command to Spawn, and Terminal says that it is a job in the terminal that is
	// its descriptor [TerminalFD].
	Dir       string
	Argv, Env []string
	Terminal  bool
	// Signal is the one to send.
	Signal syscall.Signal
	// Port is the one to Dial, or to Listen on.
	Port int
	// Objects are the objects to Deny, Hold or Show. Pins are the directories above them whose names must not change.
	Objects []place.Object
	Pins    []string
	// Canary is what to Try.
	Canary Canary
}

// Events of the process inside.
const (
	// Ready says that it is set up, or failed. Descriptors, as far as there are such: the listener of the proxy, the TUN
	// device, the listener of the system call filter, and a table of Unix sockets if the host makes connections.
	Ready   Kind = 'r'
	Spawned Kind = 's' // a command was started; descriptors: to tell that it has ended, or none
	Exited  Kind = 'x' // a command has ended
	Done    Kind = 'd' // a request was carried out; descriptor: what was asked for
)

// An Event is what the process inside tells the host.
type Event struct {
	Kind Kind
	// ID is the number of the request that it answers, or of the command that has Exited.
	ID uint64
	// Err is why the request could not be carried out. Only its text passes.
	Err error
	// Mark is the number of the UTS namespace of a command that was Spawned or has Exited, or 0.
	Mark uint64
	// Status is how the command has Exited, and Gone says that no process of it is left.
	Status syscall.WaitStatus
	Gone   bool
	// Ended is how many processes a Kill has ended.
	Ended int
	// Attempt is the result of a Try.
	Attempt Attempt
	// NoTUN is why commands have no TUN device, NoOverlay why a directory has no overlay, and Cached the directories that
	// have one for a cache. They are told when the process is Ready.
	NoTUN, NoOverlay error
	Cached           []string
}

// ExitCode is how a command ended, in the shell's terms: 128 + the signal's number after a signal.
func ExitCode(status syscall.WaitStatus) int {
	if status.Signaled() {
		return 128 + int(status.Signal())
	}
	return status.ExitStatus()
}
