// Package contract is what passes between the host of a sandbox and the process inside that keeps it: process 1 of
// namespaces, or the supervisor of one command under Landlock.
//
// The host starts its own program with [Arg] and a role, a socket and a pipe. The pipe brings a [Plan], which says
// what commands will see and may do. The process inside carries it out, and sends an [Event] that it is Ready; from
// then on each [Request] of the host is answered by an event. The end of the socket ends the process inside, and with
// it everything that runs there. Both sides are the same program, so the form of the messages need not last.
package contract

// A Canary is what the inside of a sandbox is asked to try.
type Canary struct {
	Read  string // a denied file
	Write string // a file outside of the writable paths
	Port  int    // a port of the host's loopback interface
}

// An Attempt says which parts of a canary succeeded. Each success is a fault of the sandbox.
type Attempt struct{ Read, Wrote, Connected bool }

// Messages on the control socket of a terminal: the command has been suspended; it is to continue; it could not be
// started. The last is followed by the reason.
const (
	Suspended = 's'
	Resumed   = 'c'
	Failed    = 'e'
)
