package sandbox

import (
	"errors"
	"io/fs"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/toolhost/toolhost/guard/sandbox/internal/behalf"
	"github.com/toolhost/toolhost/guard/sandbox/internal/kernel"
)

// WriteGateWorks reports why a [WriteGate] is told of nothing on this machine, or nil.
func WriteGateWorks() error { return kernel.NotifyWorks() }

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

// mayBeIn reports whether a thread may be in a call, or on its way into it.
func mayBeIn(thread int, nr int32) bool {
	text, err := os.ReadFile("/proc/" + strconv.Itoa(thread) + "/syscall")
	if err != nil {
		return !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, unix.ESRCH)
	}
	in, _, _ := strings.Cut(string(text), " ") // of a thread that waits
	now, err := strconv.ParseInt(in, 10, 32)
	return err != nil || int32(now) == nr
}
