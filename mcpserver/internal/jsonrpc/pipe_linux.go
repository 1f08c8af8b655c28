package jsonrpc

import (
	"syscall"

	"golang.org/x/sys/unix"
)

// pipeRoom is how much the pipe to a client should hold, in bytes. Common pipes hold 64 KiB, which is four answers to a Read: who
// writes the next is put to sleep until the client has read, and woken. Much more would be missed elsewhere, since there is a bound on
// what all pipes of a user may hold.
const pipeRoom = 256 << 10

// widen gives a pipe room for the answers to calls that came in together. A pipe that has as much keeps it, what is no pipe stays as
// it is, and where no more may be had it is only slower.
func widen(pipe any) {
	file, ok := pipe.(syscall.Conn)
	if !ok {
		return
	}
	raw, err := file.SyscallConn()
	if err != nil {
		return
	}
	_ = raw.Control(func(fd uintptr) {
		if has, err := unix.FcntlInt(fd, unix.F_GETPIPE_SZ, 0); err == nil && has < pipeRoom {
			_, _ = unix.FcntlInt(fd, unix.F_SETPIPE_SZ, pipeRoom)
		}
	})
}
