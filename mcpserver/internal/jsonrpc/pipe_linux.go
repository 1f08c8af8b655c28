package jsonrpc

import (
	"syscall"

	"golang.org/x/sys/unix"
)

// pipeCapacity is the capacity that a pipe to a client should have, in bytes. The default of 64 KiB holds four
// results of Read; the writer of the next would sleep until the client has read. The capacity of all pipes of a user
// is limited, so this must not be much larger.
const pipeCapacity = 256 << 10

// growPipe increases the capacity of a pipe to pipeCapacity. It does nothing for other files. An error only costs
// speed.
func growPipe(pipe any) {
	file, ok := pipe.(syscall.Conn)
	if !ok {
		return
	}
	raw, err := file.SyscallConn()
	if err != nil {
		return
	}
	_ = raw.Control(func(fd uintptr) {
		if has, err := unix.FcntlInt(fd, unix.F_GETPIPE_SZ, 0); err == nil && has < pipeCapacity {
			_, _ = unix.FcntlInt(fd, unix.F_SETPIPE_SZ, pipeCapacity)
		}
	})
}
