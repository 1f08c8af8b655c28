package shell

import (
	"os"

	"github.com/toolhost/toolhost/builtin/internal/shell/supervise"
)

// scriptPipe returns the ends of a socket for the script of a shell. Another command cannot open a socket, to send
// its own script to a waiting shell.
func scriptPipe() (ours, theirs *os.File, err error) { return supervise.Pair() }
