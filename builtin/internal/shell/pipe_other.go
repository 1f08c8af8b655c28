//go:build !linux

package shell

import (
	"os"

	"github.com/toolhost/toolhost/builtin/internal/shell/supervise"
)

// unwatchedPipe returns a pipe. That its read end need not be watched saves
// something on Linux only.
func unwatchedPipe() (r, w *os.File, err error) {
	if r, w, err = os.Pipe(); err != nil {
		return nil, nil, err
	}
	if err := supervise.SetBlocking(w); err != nil {
		closeAll(r, w)
		return nil, nil, err
	}
	return r, w, nil
}
