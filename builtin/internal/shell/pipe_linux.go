package shell

import (
	"os"

	"golang.org/x/sys/unix"
)

// unwatchedPipe returns a pipe whose read end is only read when needed. The runtime does not watch it, so a write
// wakes no goroutine.
func unwatchedPipe() (r, w *os.File, err error) {
	var fds [2]int
	if err := unix.Pipe2(fds[:], unix.O_CLOEXEC); err != nil {
		return nil, nil, os.NewSyscallError("pipe2", err)
	}
	r, w = os.NewFile(uintptr(fds[0]), "|0"), os.NewFile(uintptr(fds[1]), "|1")
	if err := unix.SetNonblock(fds[0], true); err != nil { // after NewFile, which would watch a non-blocking descriptor
		closeAll(r, w)
		return nil, nil, os.NewSyscallError("fcntl", err)
	}
	return r, w, nil
}
