package shell

import (
	"os"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// floodNap is for how long output is left in the pipe while it comes fast: the pipe
// holds what is written in many times that.
const floodNap = 100 * time.Microsecond

// leanMost is how many naps in a row may bring less than [floodSize] in
// [floodTime] would.
const leanMost = 20

// drainOutput takes output while it is a flood. A watched pipe wakes a thread at every
// write, and an immediate read finds little: a gigabyte would take a hundred thousand
// wake-ups, on the processors that the writers need. Here the thread sleeps for a
// while and finds much.
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
			return // the end, which the next read will find too
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

// unwatch keeps the runtime from watching the pipe, and returns it.
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

// watch ends what unwatch began.
func (o *outputReader) watch(fd int) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.file = os.NewFile(uintptr(fd), "|0")
	o.file.SetReadDeadline(o.deadline)
	if o.closed {
		o.file.Close()
	}
}

// due reports whether the wait for output is over.
func (o *outputReader) due() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.closed || !o.deadline.IsZero() && !time.Now().Before(o.deadline)
}
