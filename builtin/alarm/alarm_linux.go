package alarm

import (
	"os"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// quiet is a clock that the kernel keeps.
type quiet struct {
	file *os.File
	conn syscall.RawConn // of file
}

func newQuiet() (*quiet, error) {
	fd, err := unix.TimerfdCreate(unix.CLOCK_MONOTONIC, unix.TFD_NONBLOCK|unix.TFD_CLOEXEC)
	if err != nil {
		return nil, err
	}
	file := os.NewFile(uintptr(fd), "alarm")
	conn, err := file.SyscallConn()
	if err != nil {
		file.Close()
		return nil, err
	}
	return &quiet{file, conn}, nil
}

// set sets the clock, or stops it with 0. It fails only when the clock was closed.
func (q *quiet) set(after time.Duration) {
	spec := unix.ItimerSpec{Value: unix.NsecToTimespec(int64(max(after, 0)))}
	_ = q.conn.Control(func(fd uintptr) { // which waits for nothing, so the scheduler need not know
		_, _, _ = syscall.RawSyscall6(unix.SYS_TIMERFD_SETTIME, fd, 0, uintptr(unsafe.Pointer(&spec)), 0, 0, 0)
	})
}

// wait returns true when the time has come, and false when the clock was closed.
func (q *quiet) wait() bool {
	var times [8]byte
	_, err := q.file.Read(times[:])
	return err == nil
}

func (q *quiet) close() { q.file.Close() }
