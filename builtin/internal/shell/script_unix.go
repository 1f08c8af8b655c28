//go:build linux || darwin

package shell

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// endOfScript tells a shell that the script has ended. What the shell sends can still be read.
func endOfScript(ours *os.File) error {
	conn, err := ours.SyscallConn()
	if err != nil {
		return err
	}
	failed := conn.Control(func(fd uintptr) { err = unix.Shutdown(int(fd), unix.SHUT_WR) })
	return errors.Join(err, failed)
}
