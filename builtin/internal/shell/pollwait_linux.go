package shell

import (
	"errors"
	"os"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// attendMax is how long a thread waits for one command. Most commands of an agent have ended by then. For up to 10 ms
// the Go scheduler lets a waiting thread keep its processor, unless others need it.
const attendMax = 3 * time.Millisecond

// pipeSize is the capacity that a pipe for output is given: with the usual 64 KiB a flood takes twice as long.
const pipeSize = 1 << 20

// attended is set while a thread waits for a command. Goroutines wait for all other commands, because each waiting
// thread keeps a processor from the scheduler.
var attended atomic.Bool

// A rawPipe has the server's descriptors of a shell, as long as the runtime does not watch them. A watched descriptor
// wakes the runtime at events that do not matter, such as that the shell has read its script, on the processor that
// the shell needs.
type rawPipe struct{ script, pipe int }

// open creates the socket for the script and the pipe for the output, and returns the shell's ends of them. The
// script is sent over a socket because another command cannot open that, to send its own script to a waiting shell.
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
	unix.FcntlInt(uintptr(fds[1]), unix.F_SETPIPE_SZ, pipeSize) // no effect above the user's limit
	s.rawPipe = &rawPipe{script: ours, pipe: fds[0]}
	return os.NewFile(uintptr(theirs), "script"), os.NewFile(uintptr(fds[1]), "|1"), nil
}

// plainPair returns descriptors as [supervise.Pair] returns files.
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

// watched returns the descriptors as files, which the runtime watches.
func (q *rawPipe) watched() (script, pipe *os.File) {
	return os.NewFile(uintptr(q.script), "script"), os.NewFile(uintptr(q.pipe), "|0")
}

// write writes as many bytes as there is room for, and returns how many.
func (q *rawPipe) write(text string) (int, error) {
	n, err := unix.SendmsgN(q.script, []byte(text), nil, nil, unix.MSG_NOSIGNAL)
	if errors.Is(err, unix.EAGAIN) || errors.Is(err, unix.EINTR) {
		err = nil
	}
	return max(n, 0), err
}

// sendCONT continues a shell that an earlier command stopped while it waited for its script: such a shell has not
// read all of the script. The signal cannot reach the shell's own command, because that does not run yet.
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

// pollWait waits for the last word of a shell that is not watched, and reads its output meanwhile. It returns false
// if that takes longer than most commands do, or if a thread waits for another command already.
//
// The thread itself waits. So the scheduler has nothing to do between the command and its result, and no other thread
// has to be woken.
func (s *shell) pollWait(most time.Duration) (heard bool) {
	if s.rawPipe == nil || !attended.CompareAndSwap(false, true) {
		return false
	}
	defer attended.Store(false)
	fds := []unix.PollFd{{Fd: int32(s.rawPipe.script), Events: unix.POLLIN},
		{Fd: int32(s.rawPipe.pipe), Events: unix.POLLIN}}
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
			return false // the end of the output must be waited for elsewhere
		}
	}
	return false
}

// takeNow takes the output that is there, and returns how many bytes that were.
func (s *shell) takeNow() int {
	n, err := syscall.Read(s.rawPipe.pipe, s.buf)
	if err != nil || n <= 0 {
		return 0
	}
	s.take(n)
	return n
}

// takeRest takes the output that is left after all writers have ended.
func (s *shell) takeRest() {
	for rest := restMax; rest > 0; {
		n := s.takeNow()
		if n == 0 {
			return
		}
		rest -= n
	}
}
