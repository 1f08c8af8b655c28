package shell

import (
	"os"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// floodNap is how long the thread sleeps between two reads of a flood. The pipe has room for what is written in many
// times that.
const floodNap = 100 * time.Microsecond

// leanMost is how many reads in a row may find less than a flood would bring, which is [floodSize] in [floodTime].
const leanMost = 20

// drainOutput reads the output while it is a flood. A watched pipe wakes a thread at every write, and reading at once
// finds little: a gigabyte would take a hundred thousand wake-ups, on the processors that the writers need. Here the
// thread sleeps for a while, and then finds much.
func (s *shell) drainOutput() {
	fd, ok := s.pipe.unwatch()
	if !ok {
		return
	}
	defer s.pipe.watch(fd)
	nap := unix.NsecToTimespec(int64(floodNap))
	for lean := 0; lean < leanMost && !s.pipe.due(); {
		n, err := syscall.Read(fd, s.buf)
		if n == 0 && err == nil {
			return // the end: the next read returns it too
		}
		s.take(max(n, 0))
		if n == len(s.buf) {
			continue
		}
		if lean++; n > int(floodSize*floodNap/floodTime) {
			lean = 0
		}
		unix.Nanosleep(&nap, nil)
	}
}

// unwatch takes the pipe away from the runtime, which then no longer watches it, and returns its descriptor.
func (o *outputReader) unwatch() (fd int, ok bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	conn, err := o.file.SyscallConn()
	if err != nil {
		return -1, false
	}
	fd = -1
	err = conn.Control(func(same uintptr) { fd, _ = unix.FcntlInt(same, unix.F_DUPFD_CLOEXEC, 0) })
	if err != nil || fd < 0 {
		return -1, false
	}
	o.file.Close()
	o.file = nil
	return fd, true
}

// watch gives the pipe back to the runtime after unwatch.
func (o *outputReader) watch(fd int) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.file = os.NewFile(uintptr(fd), "|0")
	o.file.SetReadDeadline(o.deadline)
	if o.closed {
		o.file.Close()
	}
}

// due reports whether the deadline for output has passed, or the reader is closed.
func (o *outputReader) due() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.closed || !o.deadline.IsZero() && !time.Now().Before(o.deadline)
}
