package sandbox

import (
	"errors"
	"io/fs"
	"os"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/toolhost/toolhost/guard/sandbox/internal/behalf"
	"github.com/toolhost/toolhost/guard/sandbox/internal/kernel"
	"github.com/toolhost/toolhost/guard/sandbox/internal/proc"
)

// WriteGateWorks reports why a [WriteGate] is told of nothing on this machine, or nil.
func WriteGateWorks() error { return kernel.TellWorks() }

// serve adds the judges of the calls that the gate is told of. No argument is looked at: whatever a call means when the
// kernel carries it out, the gate was told before.
func (g *WriteGate) serve(judges map[int32]kernel.Judge) {
	if g == nil {
		return
	}
	for _, nr := range append(kernel.Changes(), kernel.Opens()...) {
		judges[int32(nr)] = g.tell
	}
	for _, nr := range kernel.ModeChanges() {
		judges[nr] = g.tell
	}
}

func (g *WriteGate) tell(c *kernel.Call) unix.Errno {
	g.mu.Lock()
	g.threads[c.Thread] = c.Number
	g.mu.Unlock()
	if err := g.told(); err != nil {
		return unix.EAGAIN
	}
	if kernel.SetsGroupID(c) {
		return behalf.ChangeMode(c)
	}
	c.Continue()
	return 0
}

// mayBeIn reports whether a thread may be in a call, or on its way into it, and whether that is because it runs.
func mayBeIn(thread int, nr int32) (in, runs bool) {
	// A thread stops before the filter sees its call, or after the call.
	if s, err := proc.StatOf(thread); err == nil && strings.Contains("TtZX", s.State) {
		return false, false
	}
	dir := "/proc/" + strconv.Itoa(thread)
	text, err := os.ReadFile(dir + "/syscall")
	if err != nil {
		return !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, unix.ESRCH), false
	}
	number, _, _ := strings.Cut(string(text), " ") // of a thread that waits
	now, err := strconv.ParseInt(number, 10, 32)
	if err != nil || int32(now) != nr {
		return err != nil, err != nil
	}
	// One that waits for the other end of a pipe has found the pipe, and changes nothing any more.
	where, err := os.ReadFile(dir + "/wchan")
	return err != nil || string(where) != "wait_for_partner", false
}

const (
	stopTries = 50
	stopPause = time.Millisecond
)

// stops stops a thread, lets it go on, and reports whether it did: a thread stops outside of its calls only, or ends.
func stops(thread int) (stopped bool) {
	own := kernel.NewThread() // at its end the kernel lets go what has not stopped by then
	defer close(own)
	own.Do(func() {
		if unix.PtraceSeize(thread) != nil || unix.PtraceInterrupt(thread) != nil {
			return
		}
		var status unix.WaitStatus
		for range stopTries {
			pid, err := unix.Wait4(thread, &status, unix.WALL|unix.WNOHANG, nil)
			if stopped = err == nil && pid == thread; stopped {
				break
			}
			time.Sleep(stopPause)
		}
		if !status.Stopped() {
			return
		}
		signal := 0
		if event := int(status) >> 16; event == 0 { // it was about to get one
			signal = int(status.StopSignal())
		}
		_, _, _ = unix.Syscall6(unix.SYS_PTRACE, unix.PTRACE_DETACH, uintptr(thread), 0, uintptr(signal), 0, 0)
	})
	return stopped
}
