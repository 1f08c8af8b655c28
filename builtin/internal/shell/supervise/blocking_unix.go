//go:build unix

package supervise

import (
	"errors"
	"os"
	"syscall"
)

// SetBlocking makes descriptors block. Go's own pipes do not, and programs expect
// it: bash would take an empty script pipe for the end of it, and output would be
// lost.
func SetBlocking(files ...*os.File) error {
	for _, f := range files {
		conn, err := f.SyscallConn()
		if err != nil {
			return err
		}
		var failed error
		err = conn.Control(func(fd uintptr) { failed = syscall.SetNonblock(int(fd), false) })
		if err := errors.Join(err, failed); err != nil {
			return err
		}
	}
	return nil
}
