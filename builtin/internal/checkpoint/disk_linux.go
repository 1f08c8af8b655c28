package checkpoint

import (
	"os"
	"runtime"

	"golang.org/x/sys/unix"
)

// punch frees the room of a part of a file. If the file system cannot do that, the room is freed with the file.
func punch(f *os.File, off, size int64) {
	if size > 0 {
		_ = unix.Fallocate(int(f.Fd()), unix.FALLOC_FL_PUNCH_HOLE|unix.FALLOC_FL_KEEP_SIZE, off, size)
	}
}

// lowPriority makes the calling goroutine yield to others. Its thread is not used for anything else.
func lowPriority() {
	runtime.LockOSThread()
	_ = unix.Setpriority(unix.PRIO_PROCESS, 0, 19)
}
