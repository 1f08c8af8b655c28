//go:build linux || darwin

package shell

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// endOfScript tells a shell that no more follows. It can still be heard.
func endOfScript(ours *os.File) error {
	conn, err := ours.SyscallConn()
	if err != nil {
		return err
	}
	failed := conn.Control(func(fd uintptr) { err = unix.Shutdown(int(fd), unix.SHUT_WR) })
	return errors.Join(err, failed)
}
