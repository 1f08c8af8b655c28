package sandbox

import (
	"fmt"
	"strconv"
	"sync"

	"golang.org/x/sys/unix"

	"github.com/toolhost/toolhost/guard/sandbox/internal/behalf"
	"github.com/toolhost/toolhost/guard/sandbox/internal/kernel"
	"github.com/toolhost/toolhost/guard/sandbox/internal/place"
	"github.com/toolhost/toolhost/guard/sandbox/internal/proc"
)

// serveCalls answers the calls of the processes under a filter until the last one has ended. files are what
// appendListener has returned: none, or the filter's listener, and with it the table of Unix sockets if k makes their
// connections. execs judges the programs that they start.
func serveCalls(files []int, k *connector, execs kernel.Judge) error {
	if len(files) == 0 {
		return nil
	}
	judges := map[int32]kernel.Judge{}
	for _, nr := range kernel.AllExecs() {
		judges[int32(nr)] = execs
	}
	judges[unix.SYS_SECCOMP] = execs
	for _, nr := range kernel.ModeChanges() {
		judges[nr] = behalf.ChangeMode
	}
	if len(files) == 2 && k != nil {
		return k.serve(files[0], files[1], judges)
	}
	closeAll(files[1:])
	l, err := kernel.NewListener(files[0])
	if err != nil {
		return err
	}
	go l.Serve(judges)
	return nil
}

// only returns the [kernel.Judge] of a listener under which there is one command. The processes of a confined one have
// all the same root directory.
func (g *ExecGate) only(confined bool) kernel.Judge {
	var root *behalf.Root
	if confined {
		root = &behalf.Root{}
	}
	return func(c *kernel.Call) unix.Errno {
		if g.begin(c) {
			return 0
		}
		return g.answer(c, root)
	}
}

// execMarks finds the gates of the commands in one sandbox. Each command has its own UTS namespace, which its processes
// cannot leave.
type execMarks struct {
	spawner place.Inode // the program of the process that starts commands
	root    behalf.Root

	mu    sync.Mutex
	known map[string]*execMark // by the namespace as /proc names it
}

// execMark is the namespace of a command.
type execMark struct {
	ns    int           // keeps its number from being used again
	shell int           // the command's process
	known sync.Once     // closes bound
	bound chan struct{} // closed when gate is set
	gate  *ExecGate     // nil: nothing is judged
}

// bind sets the gate, if it is not known yet.
func (m *execMark) bind(g *ExecGate) {
	m.known.Do(func() {
		if m.gate = g; g != nil && m.shell != 0 {
			g.root(m.shell)
		}
		close(m.bound)
	})
}

// newExecMarks returns the table for commands that a process starts.
func newExecMarks(spawner int) (*execMarks, error) {
	ms := &execMarks{known: make(map[string]*execMark)}
	var err error
	if ms.spawner, err = proc.ImageOf(spawner); err != nil {
		return nil, fmt.Errorf("sandbox: the program that starts commands: %w", err)
	}
	return ms, nil
}

// answer is the [kernel.Judge] of the programs of all commands.
func (ms *execMarks) answer(c *kernel.Call) unix.Errno {
	name, err := proc.MarkOf(c.Thread)
	if err != nil {
		return unix.EACCES
	}
	m, first, err := ms.find(c, name)
	switch {
	case !c.Waits():
		return unix.EINTR
	case err != nil:
		return behalf.Errno(err)
	case first:
		c.Continue()
		return 0
	}
	<-m.bound
	if m.gate == nil {
		c.Continue()
		return 0
	}
	return m.gate.answer(c, &ms.root)
}

// find returns the mark of a namespace. The first program in one that is not known is the command's own, which the
// spawner starts: the host learns of the command when that has been done.
func (ms *execMarks) find(c *kernel.Call, name string) (m *execMark, first bool, err error) {
	ms.mu.Lock()
	defer ms.mu.Unlock()
	if m := ms.known[name]; m != nil {
		return m, false, nil
	}
	if id, err := proc.ImageOf(c.Thread); err != nil || id != ms.spawner || !c.Waits() {
		return nil, false, unix.EACCES
	}
	m = &execMark{shell: c.Thread, bound: make(chan struct{})}
	if m.ns, err = unix.Open("/proc/"+strconv.Itoa(c.Thread)+"/ns/uts", unix.O_RDONLY|unix.O_CLOEXEC, 0); err != nil {
		return nil, false, err
	}
	ms.known[name] = m
	return m, true, nil
}

// bind notes whose namespace one is, which may be done again.
func (ms *execMarks) bind(number uint64, g *ExecGate) {
	if ms == nil {
		return
	}
	ms.mu.Lock()
	defer ms.mu.Unlock()
	if m := ms.known[proc.MarkName(number)]; m != nil {
		m.bind(g)
	}
}

// drop forgets a namespace that has no processes.
func (ms *execMarks) drop(number uint64) {
	if ms == nil {
		return
	}
	ms.mu.Lock()
	defer ms.mu.Unlock()
	ms.forget(proc.MarkName(number))
}

// forget is drop for callers that hold the lock.
func (ms *execMarks) forget(name string) {
	if m := ms.known[name]; m != nil {
		delete(ms.known, name)
		unix.Close(m.ns)
		m.shell = 0
		m.bind(NewExecGate()) // refuses everything
	}
}

// close forgets all namespaces.
func (ms *execMarks) close() {
	if ms == nil {
		return
	}
	ms.mu.Lock()
	defer ms.mu.Unlock()
	for name := range ms.known {
		ms.forget(name)
	}
}
