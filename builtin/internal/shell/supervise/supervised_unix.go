//go:build linux || darwin

package supervise

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/toolhost/toolhost/guard/sandbox/execgate"
)

const (
	// startTimeout bounds the start of a supervisor: about 5 ms when the machine
	// is idle.
	startTimeout = 10 * time.Second

	// killTimeout bounds the end of a tree: a few milliseconds, unless a process
	// cannot be killed (it hangs in the kernel, or runs as another user).
	killTimeout = 5 * time.Second
)

// errSupervisor is the problem of a command whose supervisor was killed.
var errSupervisor = errors.New("the process that supervises the command was killed, most likely by the command " +
	"itself; " +
	"the command was ended and its processes were looked for, but one that hid itself may still run")

// supervised is a process under a supervisor, as the server sees it.
type supervised struct {
	cmd    *exec.Cmd
	ctl    *os.File // the server's end of the socket; closing it ends the tree
	call   string   // CallVariable of the tree
	leader int      // process id, process group and session of the process

	exit   chan struct{} // closed when status, empty and lost are set
	status Status
	empty  bool // no descendant was left when the process ended
	lost   bool // the supervisor ended without reporting how the process ended

	done  chan struct{} // closed when the supervisor has ended and been reaped
	ended atomic.Int64  // processes it had to kill
}

// Start starts a process on the host under a supervisor, which is this
// program started again. It needs no sandbox.
func Start(spec Spec) (Process, error) {
	ours, theirs, err := Pair()
	if err != nil {
		return nil, fmt.Errorf("no socket for the supervisor: %w", err)
	}
	defer theirs.Close()
	self, err := ownProgram()
	if err != nil {
		ours.Close()
		return nil, err
	}
	p := &supervised{
		ctl: ours, call: rand.Text(),
		exit: make(chan struct{}), done: make(chan struct{}),
	}
	files := strconv.Itoa(len(spec.Files))
	if spec.Execs != nil {
		files += judgedMark
	}
	p.cmd = &exec.Cmd{
		Path:       self,
		Args:       append([]string{"toolhost", supervisorArg, files}, spec.Argv...),
		Dir:        spec.Dir,
		Env:        append(slices.Clip(spec.Env), CallVariable+"="+p.call),
		ExtraFiles: append([]*os.File{theirs}, spec.Files...),
		// It has its own session: a signal to the server's process group does not reach the supervisor, so it can still end
		// the command.
		SysProcAttr: &syscall.SysProcAttr{Setsid: true},
	}
	if err := p.cmd.Start(); err != nil {
		ours.Close()
		return nil, fmt.Errorf("the supervisor could not be started: %w", err)
	}
	theirs.Close()
	if err := p.started(spec); err != nil {
		ours.Close()
		p.cmd.Process.Kill()
		p.cmd.Wait()
		return nil, err
	}
	go p.follow()
	return p, nil
}

// Pair returns two connected sockets, the first for the server. It is a
// socket because, unlike a pipe, it cannot be opened again through /proc.
func Pair() (ours, theirs *os.File, err error) {
	syscall.ForkLock.RLock()
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM, 0)
	if err == nil {
		unix.CloseOnExec(fds[0])
		unix.CloseOnExec(fds[1])
	}
	syscall.ForkLock.RUnlock()
	if err != nil {
		return nil, nil, err
	}
	if err := unix.SetNonblock(fds[0], true); err != nil {
		unix.Close(fds[0])
		unix.Close(fds[1])
		return nil, nil, err
	}
	return os.NewFile(uintptr(fds[0]), "supervisor"), os.NewFile(uintptr(fds[1]), "server"), nil
}

// started waits for the report that the process runs.
func (p *supervised) started(spec Spec) error {
	p.ctl.SetReadDeadline(time.Now().Add(startTimeout))
	r, err := p.firstReport(spec.Execs)
	if err != nil {
		return fmt.Errorf("the supervisor did not answer: %w", err)
	}
	if r.kind != reportStarted {
		return fmt.Errorf("%s could not be started: %w", spec.Argv[0], syscall.Errno(r.a))
	}
	p.leader = int(r.a)
	return p.ctl.SetReadDeadline(time.Time{})
}

// firstReport reads the report that the process runs, or why it does not. If programs are judged, a report with the
// listener comes before it.
func (p *supervised) firstReport(gate *execgate.Gate) (report, error) {
	if gate == nil {
		return readReport(p.ctl)
	}
	r, rights, err := receiveReport(p.ctl)
	if err != nil || r.kind != reportListener {
		return r, err
	}
	listener, err := parseListener(rights)
	if err == nil {
		err = gate.Serve(listener)
	}
	if err != nil {
		return r, fmt.Errorf("the listener: %w", err)
	}
	return readReport(p.ctl)
}

// receiveReport reads one report, and the descriptors that come with it.
func receiveReport(ctl *os.File) (r report, rights []byte, err error) {
	raw, err := ctl.SyscallConn()
	if err != nil {
		return r, nil, err
	}
	var b [reportSize]byte
	rights = make([]byte, unix.CmsgSpace(4))
	n, size := 0, 0
	failure := raw.Read(func(fd uintptr) bool {
		n, size, _, _, err = unix.Recvmsg(int(fd), b[:], rights, receiveFlags)
		return !errors.Is(err, unix.EAGAIN) && !errors.Is(err, unix.EINTR)
	})
	if err = errors.Join(failure, err); err == nil && n < reportSize {
		err = io.ErrUnexpectedEOF
	}
	return decodeReport(b), rights[:max(size, 0)], err
}

// errNoListener says that the supervisor sent a report without a descriptor.
var errNoListener = errors.New("the message has no descriptor")

// parseListener returns the descriptor that came with a report.
func parseListener(rights []byte) (int, error) {
	messages, err := unix.ParseSocketControlMessage(rights)
	if err != nil || len(messages) != 1 {
		return -1, errors.Join(errNoListener, err)
	}
	fds, err := unix.ParseUnixRights(&messages[0])
	if err != nil || len(fds) != 1 {
		return -1, errors.Join(errNoListener, err)
	}
	return fds[0], nil
}

// follow processes the supervisor's reports until the supervisor ends, and then reaps it.
func (p *supervised) follow() {
	told := false
	for {
		r, err := readReport(p.ctl)
		if err != nil {
			break
		}
		switch r.kind {
		case reportExit:
			p.status = statusOf(syscall.WaitStatus(r.a))
			p.empty = r.b != 0
			told = true
			close(p.exit)
		case reportEnded:
			p.ended.Store(int64(r.a))
		}
	}
	p.cmd.Wait()
	p.ctl.Close()
	if !told {
		p.lost = true
		p.status = Status{ExitCode: 128 + int(syscall.SIGKILL), Signal: "SIGKILL"}
		close(p.exit)
	}
	close(p.done)
}

// Done implements [Process].
func (p *supervised) Done() <-chan struct{} { return p.exit }

// Wait implements [Process].
func (p *supervised) Wait() (Status, error) {
	<-p.exit
	if p.lost && p.ended.Load() == 0 {
		return p.status, errSupervisor
	}
	return p.status, nil
}

// Signal implements [Process].
func (p *supervised) Signal(sig os.Signal) error {
	s, ok := sig.(syscall.Signal)
	if !ok {
		return fmt.Errorf("signal %v cannot be sent", sig)
	}
	if _, err := p.ctl.Write([]byte{orderSignal, byte(s)}); err != nil && !gone(err) {
		return err
	}
	return nil
}

// gone reports whether an error says that the supervisor has ended.
func gone(err error) bool {
	return errors.Is(err, os.ErrClosed) || errors.Is(err, syscall.EPIPE) || errors.Is(err, syscall.ECONNRESET)
}

// Kill implements [Process].
func (p *supervised) Kill() (int, error) {
	select {
	case <-p.exit:
		if p.empty {
			return 0, nil
		}
	default:
	}
	p.ctl.Write([]byte{orderKill, 0})
	// A command may have stopped its supervisor.
	p.cmd.Process.Signal(syscall.SIGCONT)
	timer := time.NewTimer(killTimeout)
	defer timer.Stop()
	select {
	case <-p.done:
	case <-timer.C:
		// The supervisor keeps trying after this.
		p.ctl.Close()
		return 0, fmt.Errorf("a process of the command could not be ended within %v (it hangs in the kernel or runs as "+
			"another user); it is tried further", killTimeout)
	}
	if p.lost {
		return killDescendants(p.leader, p.call)
	}
	return int(p.ended.Load()), nil
}

// statusOf translates a wait status.
func statusOf(ws syscall.WaitStatus) Status {
	if ws.Signaled() {
		return Status{ExitCode: 128 + int(ws.Signal()), Signal: unix.SignalName(ws.Signal())}
	}
	return Status{ExitCode: ws.ExitStatus()}
}

// readReport reads one report of a supervisor.
func readReport(r io.Reader) (report, error) {
	var b [reportSize]byte
	if _, err := io.ReadFull(r, b[:]); err != nil {
		return report{}, err
	}
	return decodeReport(b), nil
}
