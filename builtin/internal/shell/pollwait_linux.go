package shell

import (
	"errors"
	"os"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// attendMax is for how long a thread waits for one command. Most commands of an
// agent have ended by then. The Go scheduler leaves a thread that waits its
// processor for 10 ms unless others need it.
const attendMax = 3 * time.Millisecond

// pipeSize is what a pipe for output should hold: with the usual 64 KiB a flood
// takes twice as long.
const pipeSize = 1 << 20

// attended is set while a thread waits for a command: the others are waited for as
// usual, since each thread that waits keeps a processor from the scheduler.
var attended atomic.Bool

// A rawPipe is our ends of a shell that is not watched yet. While the Go runtime
// watches a descriptor, it is woken by events that do not matter: that the
// shell has read its script, for one, on the processor that the shell needs.
type rawPipe struct{ script, pipe int }

// open makes what a shell gets its script over and what takes its output, and
// returns the shell's ends of them. The script comes over a socket, so that no other
// command can open it and put one of its own into a shell that waits.
func (s *shell) open() (script, out *os.File, err error) {
	ours, theirs, err := plainPair()
	if err != nil {
		return nil, nil, err
	}
	var fds [2]int
	if err := unix.Pipe2(fds[:], unix.O_CLOEXEC); err != nil {
		closeRaw(ours, theirs)
		return nil, nil, os.NewSyscallError("pipe2", err)
	}
	if err := errors.Join(unix.SetNonblock(ours, true), unix.SetNonblock(fds[0], true)); err != nil {
		closeRaw(ours, theirs, fds[0], fds[1])
		return nil, nil, os.NewSyscallError("fcntl", err)
	}
	unix.FcntlInt(uintptr(fds[1]), unix.F_SETPIPE_SZ, pipeSize) // above the user's limit it stays as it is
	s.rawPipe = &rawPipe{script: ours, pipe: fds[0]}
	return os.NewFile(uintptr(theirs), "script"), os.NewFile(uintptr(fds[1]), "|1"), nil
}

// plainPair is [supervise.Pair] without files.
func plainPair() (ours, theirs int, err error) {
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return -1, -1, os.NewSyscallError("socketpair", err)
	}
	return fds[0], fds[1], nil
}

func closeRaw(fds ...int) {
	for _, fd := range fds {
		unix.Close(fd)
	}
}

func (q *rawPipe) close() { closeRaw(q.script, q.pipe) }

// watched makes files of the descriptors, which the runtime watches.
func (q *rawPipe) watched() (script, pipe *os.File) {
	return os.NewFile(uintptr(q.script), "script"), os.NewFile(uintptr(q.pipe), "|0")
}

// write writes what there is room for, and reports how much that was.
func (q *rawPipe) write(text string) (int, error) {
	n, err := unix.SendmsgN(q.script, []byte(text), nil, nil, unix.MSG_NOSIGNAL)
	if errors.Is(err, unix.EAGAIN) || errors.Is(err, unix.EINTR) {
		err = nil
	}
	return max(n, 0), err
}

// sendCONT makes a shell go on that was stopped, by an earlier command, while it waited
// for its script, and has not read all of it therefore. Nothing of its own command
// runs yet that the signal could reach.
func (s *shell) sendCONT() {
	conn, err := s.script.SyscallConn()
	if err != nil {
		return
	}
	unread := 0
	conn.Control(func(fd uintptr) { unread, _ = unix.IoctlGetInt(int(fd), unix.TIOCOUTQ) })
	if unread > 0 {
		s.proc.Signal(unix.SIGCONT)
	}
}

// pollWait waits for the last word of a shell that is not watched, and takes its
// output meanwhile. It returns false when that takes longer than most commands, or
// when another is waited for like that.
//
// The thread itself waits. So the scheduler has nothing to decide between the
// command and its result, and no thread has to be woken that would look around for
// something to do.
func (s *shell) pollWait(most time.Duration) (heard bool) {
	if s.rawPipe == nil || !attended.CompareAndSwap(false, true) {
		return false
	}
	defer attended.Store(false)
	fds := []unix.PollFd{{Fd: int32(s.rawPipe.script), Events: unix.POLLIN}, {Fd: int32(s.rawPipe.pipe), Events: unix.POLLIN}}
	begun := time.Now()
	for left := min(most, attendMax); left > 0; left = min(most, attendMax) - time.Since(begun) {
		patience := unix.NsecToTimespec(int64(left))
		if _, err := unix.Ppoll(fds, &patience, nil); err != nil {
			if errors.Is(err, unix.EINTR) {
				continue
			}
			return false
		}
		if fds[0].Revents != 0 {
			return true
		}
		if fds[1].Revents != 0 && s.takeNow() == 0 {
			return false // a read to the end must wait elsewhere
		}
	}
	return false
}

// takeNow takes output that is there, and returns how much that was.
func (s *shell) takeNow() int {
	n, err := syscall.Read(s.rawPipe.pipe, s.buf)
	if err != nil || n <= 0 {
		return 0
	}
	s.take(n)
	return n
}

// takeRest takes the output that is left once there is no writer.
func (s *shell) takeRest() {
	for rest := restMax; rest > 0; {
		n := s.takeNow()
		if n == 0 {
			return
		}
		rest -= n
	}
}
