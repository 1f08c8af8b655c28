package execgate

import (
	"errors"
	"os"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/toolhost/toolhost/guard/sandbox/internal/kernel"
	"github.com/toolhost/toolhost/guard/sandbox/internal/proc"
)

// Why a program was refused or killed that had to be compared again.
const (
	whyTraced = "another program traces the process, so that what it starts cannot be compared with what was judged; " +
		"run it without strace or gdb"
	whyUnseen  = "the process cannot be traced, so that what it starts cannot be compared with what was judged"
	whyChanged = "the program or its arguments were changed while they were judged; the process was killed"
)

// tracingStop is the state in /proc of a process that is stopped by its tracer.
const tracingStop = "t"

// tracers are threads whose only children are the processes they trace, so that they can wait for any child without
// taking the result of another wait.
var tracers = make(chan kernel.Thread, 4)

// confirm starts the program, stops it before its first instruction, and kills it if it is not the one that was
// judged. It calls Failed before the process ends, so that the command cannot end first. If v.Confirm is set, a
// process that cannot be stopped is refused.
func (l *look) confirm(v Verdict) {
	failed := func(why string) {
		if v.Failed != nil {
			v.Failed(why)
		}
	}
	var t kernel.Thread
	select {
	case t = <-tracers:
	default:
		t = kernel.NewThread()
	}
	t.Do(func() { l.trace(v.Confirm, failed) })
	select {
	case tracers <- t:
	default:
		close(t)
	}
}

// trace does the work of confirm on a thread of its own. The kernel reports a stop after the program was started or,
// if it was not started, the stop that PTRACE_INTERRUPT requests.
func (l *look) trace(strict bool, failed func(why string)) {
	thread := l.call.Thread
	process, _ := strconv.Atoi(l.call.Status()["Tgid"]) // a thread gets the number of its process when it starts a program
	if err := ptrace(unix.PTRACE_SEIZE, thread, unix.PTRACE_O_TRACEEXEC|unix.PTRACE_O_EXITKILL); err != nil {
		switch tracer := l.call.Status()["TracerPid"]; {
		case !strict:
			l.call.Continue()
		case !l.call.Waits(): // the process was killed, perhaps because the command has ended
		case tracer != "0" && tracer != "":
			failed(whyTraced)
		default:
			failed(whyUnseen)
		}
		return
	}
	l.call.Continue() // the thread need not wait any longer: it is stopped below
	ptrace(unix.PTRACE_INTERRUPT, thread, 0)
	killed := false
	for {
		var ws unix.WaitStatus
		pid, err := unix.Wait4(-1, &ws, unix.WALL|unix.WNOTHREAD, nil)
		switch {
		case errors.Is(err, unix.EINTR):
			continue
		case err != nil:
			return
		case pid != thread && pid != process: // a child of an earlier call, which nothing waits for
			ptrace(unix.PTRACE_DETACH, pid, 0)
			continue
		case !ws.Stopped():
			return // the process has ended
		case killed:
			continue // the process is ending
		}
		event := int(ws) >> 16
		if event == unix.PTRACE_EVENT_EXEC && !l.same(pid) {
			// A process that was killed in the meantime has no program to compare, and does not stop again.
			if s, err := proc.StatOf(pid); err == nil && s.State == tracingStop {
				failed(whyChanged)
			}
			unix.Kill(pid, unix.SIGKILL)
			killed = true
			continue
		}
		signal := uintptr(0)
		if event == 0 { // the stop was for a signal, which is delivered now
			signal = uintptr(ws.StopSignal())
		}
		if ptrace(unix.PTRACE_DETACH, pid, signal) == nil {
			return
		}
		// The process is being killed. Its parent learns of the end only after this thread has waited for it.
	}
}

// same reports whether a process runs the program that was judged.
func (l *look) same(pid int) bool {
	dir := "/proc/" + strconv.Itoa(pid)
	if id, err := proc.ImageOf(pid); err != nil || id != l.image {
		return false
	}
	want := strings.Join(l.argv, "\x00")
	f, err := os.Open(dir + "/cmdline")
	if err != nil {
		return false
	}
	defer f.Close()
	got := make([]byte, len(want)+2)
	n := 0
	for n < len(got) {
		k, err := f.Read(got[n:])
		if n += k; err != nil || k == 0 {
			break
		}
	}
	text := string(got[:n])
	if l.exec.Cut {
		return strings.HasPrefix(text, want)
	}
	return text == want+"\x00"
}

// shared reports whether other running threads could change the arguments of a thread: threads of the same process,
// or of the process that it shares its memory with. That is the parent of a vfork, which waits for its child.
func shared(thread int) bool {
	s, err := proc.StatOf(thread)
	if err != nil || s.Threads > 1 {
		return true
	}
	const vm = 1 // KCMP_VM
	if same, _, errno := unix.Syscall6(unix.SYS_KCMP, uintptr(thread), uintptr(s.Parent), vm, 0, 0, 0); errno != 0 ||
		same != 0 {
		return false
	}
	parent, err := proc.StatOf(s.Parent)
	return err != nil || parent.Threads > 1 || parent.State != "D"
}

func ptrace(request, pid int, data uintptr) error {
	if _, _, errno := syscall.Syscall6(unix.SYS_PTRACE, uintptr(request), uintptr(pid), 0, data, 0, 0); errno != 0 {
		return errno
	}
	return nil
}
