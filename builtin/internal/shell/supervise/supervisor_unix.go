//go:build linux || darwin

package supervise

import (
	"encoding/binary"
	"errors"
	"os"
	"os/signal"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/toolhost/toolhost/guard/sandbox/execgate"
	"github.com/toolhost/toolhost/guard/sandbox/ownprocess"
)

// supervisorArg as the first argument makes this program a supervisor:
// "toolhost __supervise NFILES PROGRAM ARGS…", with the socket as descriptor 3
// and the files of the process from 4 on. judgedMark follows NFILES if the server
// judges which programs are started.
const (
	supervisorArg = "__supervise"
	judgedMark    = ",judged"
)

const (
	controlFD   = 3
	firstFileFD = 4
)

// Orders are two bytes: what to do, and the signal. The end of the stream is also an order to kill: the server is
// gone.
const (
	orderSignal = 's'
	orderKill   = 'k'
)

// Reports of the supervisor.
const (
	reportListener = 'l' // with a descriptor, see execgate.Listen; comes before the next
	reportStarted  = 'p' // a: process id
	reportFailed   = 'e' // a: errno
	reportExit     = 'x' // a: wait status; b: 1 if no descendant is left
	reportEnded    = 'd' // a: how many processes were killed
)

// A report is one message of a supervisor to the server.
type report struct {
	kind byte
	a, b uint32
}

const reportSize = 9

func (r report) encode() []byte {
	b := append(make([]byte, 0, reportSize), r.kind)
	b = binary.LittleEndian.AppendUint32(b, r.a)
	return binary.LittleEndian.AppendUint32(b, r.b)
}

func decodeReport(b [reportSize]byte) report {
	return report{b[0], binary.LittleEndian.Uint32(b[1:]), binary.LittleEndian.Uint32(b[5:])}
}

// leaving is how long processes may take to exit after the shell has. The server takes the end of the output for
// their end, but many programs close their output shortly before they exit; these must not be reported as left over.
const leaving = 5 * time.Millisecond

// Pauses between two rounds of killing.
const (
	firstPause = 200 * time.Microsecond
	lastPause  = 50 * time.Millisecond
)

// init runs the supervisor of a command, if this process was started as one, and does not return then. So no main
// function has to call it, and packages that are initialized later do not delay it.
func init() {
	args := os.Args
	if len(args) < 2 || args[1] != supervisorArg {
		return
	}
	// The thread stays locked: the parent-death signal of the shell is sent when the thread that started it ends
	// (golang/go#27505).
	runtime.LockOSThread()
	if len(args) < 4 {
		syscall.Exit(2)
	}
	number, judged := strings.CutSuffix(args[2], judgedMark)
	n, err := strconv.Atoi(number)
	if err != nil {
		syscall.Exit(2)
	}
	ownprocess.TrimWhenIdle()
	// Not os.Exit, which has hooks that wait (the race detector takes a second).
	var s supervisor
	s.run(n, args[3:], judged)
	syscall.Exit(0)
}

// A supervisor starts one process, and ends all its descendants on request or when the server is gone.
type supervisor struct {
	leader  int
	reaped  atomic.Bool   // the leader has ended, its id may be used again
	empty   chan struct{} // closed when there are no children any more
	killing atomic.Bool
	talk    sync.Mutex
}

func (s *supervisor) run(files int, argv []string, judged bool) {
	// The signals that end a Go program are received and dropped. If they were ignored, the command would inherit that.
	signal.Notify(make(chan os.Signal, 1), syscall.SIGHUP, syscall.SIGINT, syscall.SIGQUIT, syscall.SIGTERM)
	s.empty = make(chan struct{})
	if err := s.start(files, argv, judged); err != nil {
		var errno syscall.Errno
		if !errors.As(err, &errno) {
			errno = syscall.EINVAL
		}
		s.report(report{kind: reportFailed, a: uint32(errno)})
		return
	}
	s.report(report{kind: reportStarted, a: uint32(s.leader)})
	go s.handle()
	s.reap()
	close(s.empty)
	if s.killing.Load() || !adopts {
		select {} // obey ends the process
	}
}

// start starts the process in a session of its own.
func (s *supervisor) start(files int, argv []string, judged bool) error {
	unix.CloseOnExec(controlFD)
	fds := make([]uintptr, files)
	for i := range fds {
		unix.CloseOnExec(firstFileFD + i)
		fds[i] = uintptr(firstFileFD + i)
	}
	ownprocess.MarkCommand()
	if err := becomeReaper(); err != nil {
		return err
	}
	if judged {
		// The listener stays open here: if the server is killed, a program that waits for a verdict keeps waiting until the
		// supervisor ends it.
		listener, err := execgate.Listen()
		if err != nil {
			return err
		}
		if err := unix.Sendmsg(controlFD, report{kind: reportListener}.encode(), unix.UnixRights(listener), nil,
			0); err != nil {
			return err
		}
	}
	pid, err := syscall.ForkExec(argv[0], argv, &syscall.ProcAttr{
		Env: os.Environ(), Files: fds, Sys: leaderAttr(),
	})
	if err != nil {
		return err
	}
	s.leader = pid
	for _, fd := range fds {
		unix.Close(int(fd)) // otherwise the output would never end
	}
	// Do not keep a directory in use that the user may want to remove or unmount.
	return os.Chdir("/")
}

// reap waits for children, including adopted ones, until there are none.
func (s *supervisor) reap() {
	for {
		var ws syscall.WaitStatus
		pid, err := syscall.Wait4(-1, &ws, waitAll, nil)
		if err == syscall.EINTR {
			continue
		}
		if err != nil {
			return // ECHILD
		}
		if pid != s.leader {
			continue
		}
		s.reaped.Store(true)
		empty := adopts && s.reapEnded()
		s.report(report{kind: reportExit, a: uint32(ws), b: boolBit(empty)})
		if empty {
			return
		}
	}
}

// reapEnded reaps the children that have ended, and reports whether no child is left.
func (s *supervisor) reapEnded() bool {
	for {
		pid, err := syscall.Wait4(-1, nil, waitAll|syscall.WNOHANG, nil)
		if err == syscall.EINTR {
			continue
		}
		if err != nil || pid == 0 {
			return err != nil
		}
	}
}

func boolBit(b bool) uint32 {
	if b {
		return 1
	}
	return 0
}

// report sends a report. An error does not matter: it means that the server is gone.
func (s *supervisor) report(r report) {
	s.talk.Lock()
	defer s.talk.Unlock()
	syscall.Write(controlFD, r.encode())
}

// handle takes orders until one of them is to kill, and ends this process.
func (s *supervisor) handle() {
	for {
		var order [2]byte
		n, err := readFull(controlFD, order[:])
		if err == nil && n == len(order) && order[0] == orderSignal {
			if !s.reaped.Load() {
				syscall.Kill(-s.leader, syscall.Signal(order[1]))
			}
			continue
		}
		break
	}
	s.killing.Store(true)
	n := s.end()
	s.report(report{kind: reportEnded, a: uint32(n)})
	syscall.Exit(0)
}

// readFull reads from a blocking descriptor until p is full or the stream ends.
func readFull(fd int, p []byte) (int, error) {
	total := 0
	for total < len(p) {
		n, err := syscall.Read(fd, p[total:])
		if err == syscall.EINTR {
			continue
		}
		if err != nil || n == 0 {
			return total, err
		}
		total += n
	}
	return total, nil
}

// end kills all descendants, repeatedly until none is left, and returns how many it killed. It has no time limit: the
// process that waits for it has one.
func (s *supervisor) end() int {
	killed := map[processID]bool{}
	if s.reaped.Load() {
		select {
		case <-s.empty:
		case <-time.After(leaving):
		}
	}
	for pause := firstPause; ; pause = min(2*pause, lastPause) {
		live, err := descendants(os.Getpid(), s.leader)
		for _, p := range live {
			if p.kill() {
				killed[p.processID] = true
			}
		}
		none := err == nil && len(live) == 0
		select {
		case <-s.empty:
			if adopts || none {
				return len(killed)
			}
		default:
		}
		time.Sleep(pause)
	}
}

// descendants returns the live descendants of a process; where orphans are not
// adopted, also the members of the leader's process group.
func descendants(root, leader int) ([]process, error) {
	all, err := processes()
	if err != nil {
		return nil, err
	}
	children := map[int][]process{}
	for _, p := range all {
		parent := p.parent
		if !adopts && p.group == leader && p.pid != root {
			parent = root
		}
		children[parent] = append(children[parent], p)
	}
	var found []process
	seen := map[int]bool{root: true}
	for next := []int{root}; len(next) > 0; {
		parent := next[0]
		next = next[1:]
		for _, p := range children[parent] {
			if seen[p.pid] {
				continue
			}
			seen[p.pid] = true
			next = append(next, p.pid)
			if !p.ended {
				found = append(found, p)
			}
		}
	}
	return found, nil
}

// A processID identifies one process for good: a process id is used again, but not with the same start time.
type processID struct {
	pid   int
	start uint64
}

// A process is one row of the system's process table.
type process struct {
	processID
	parent, group int
	//lint:ignore U1000 only Linux tells it
	session int
	ended   bool // over, but not yet waited for
}
