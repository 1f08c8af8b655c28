package shell

import (
	"os"

	"github.com/toolhost/toolhost/builtin/internal/shell/supervise"
)

// scriptPipe returns what a shell gets its script over: a socket, so that no other
// command can open it and put one of its own into a shell that waits.
func scriptPipe() (ours, theirs *os.File, err error) { return supervise.Pair() }
