package execgate

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

// Calls returns the judges of the system calls that start a program or install a listener, by number.
func Calls(judge kernel.Judge) map[int32]kernel.Judge {
	judges := map[int32]kernel.Judge{unix.SYS_SECCOMP: judge}
	for _, nr := range kernel.AllExecs() {
		judges[int32(nr)] = judge
	}
	return judges
}

// Serve judges the programs of the processes under a filter until the last of them has ended. It takes over the
// filter's listener. The first program is the command itself, see [Gate].
func (g *Gate) Serve(listener int) error {
	l, err := kernel.NewListener(listener)
	if err != nil {
		return err
	}
	go l.Serve(Calls(g.Only(false)))
	return nil
}

// Only returns the [kernel.Judge] of a filter that holds one command alone. All processes of a confined command have
// the same root directory.
func (g *Gate) Only(confined bool) kernel.Judge {
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

// Marks finds the gates of the commands in one sandbox. Each command has its own UTS namespace, which its processes
// cannot leave.
type Marks struct {
	spawner place.Inode // the program of the process that starts commands
	root    behalf.Root

	mu    sync.Mutex
	known map[string]*mark // by the namespace as /proc names it
}

// A mark is the UTS namespace of a command.
type mark struct {
	ns    int           // a descriptor: while it is open, the namespace's number is not used again
	shell int           // the command's process
	known sync.Once     // makes sure that bound is closed once
	bound chan struct{} // closed when gate is set
	gate  *Gate         // nil if nothing is judged
}

// bind sets the gate, if it is not known yet.
func (m *mark) bind(g *Gate) {
	m.known.Do(func() {
		if m.gate = g; g != nil && m.shell != 0 {
			g.root(m.shell)
		}
		close(m.bound)
	})
}

// NewMarks returns the table for the commands that a process, spawner, starts.
func NewMarks(spawner int) (*Marks, error) {
	ms := &Marks{known: make(map[string]*mark)}
	var err error
	if ms.spawner, err = proc.ImageOf(spawner); err != nil {
		return nil, fmt.Errorf("sandbox: the program that starts commands: %w", err)
	}
	return ms, nil
}

// Answer is the [kernel.Judge] for the programs of all commands.
func (ms *Marks) Answer(c *kernel.Call) unix.Errno {
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

// find returns the mark of a namespace. The first program in an unknown namespace is the command's own, which the
// spawner starts; the host learns of the command only afterwards.
func (ms *Marks) find(c *kernel.Call, name string) (m *mark, first bool, err error) {
	ms.mu.Lock()
	defer ms.mu.Unlock()
	if m := ms.known[name]; m != nil {
		return m, false, nil
	}
	if id, err := proc.ImageOf(c.Thread); err != nil || id != ms.spawner || !c.Waits() {
		return nil, false, unix.EACCES
	}
	m = &mark{shell: c.Thread, bound: make(chan struct{})}
	if m.ns, err = unix.Open("/proc/"+strconv.Itoa(c.Thread)+"/ns/uts", unix.O_RDONLY|unix.O_CLOEXEC, 0); err != nil {
		return nil, false, err
	}
	ms.known[name] = m
	return m, true, nil
}

// Bind records which gate a namespace has. It may be called again for the same namespace.
func (ms *Marks) Bind(number uint64, g *Gate) {
	if ms == nil {
		return
	}
	ms.mu.Lock()
	defer ms.mu.Unlock()
	if m := ms.known[proc.MarkName(number)]; m != nil {
		m.bind(g)
	}
}

// Drop forgets a namespace that has no processes any more.
func (ms *Marks) Drop(number uint64) {
	if ms == nil {
		return
	}
	ms.mu.Lock()
	defer ms.mu.Unlock()
	ms.forget(proc.MarkName(number))
}

// forget is Drop for callers that hold the lock.
func (ms *Marks) forget(name string) {
	if m := ms.known[name]; m != nil {
		delete(ms.known, name)
		unix.Close(m.ns)
		m.shell = 0
		m.bind(New()) // refuses everything
	}
}

// Close forgets all namespaces.
func (ms *Marks) Close() {
	if ms == nil {
		return
	}
	ms.mu.Lock()
	defer ms.mu.Unlock()
	for name := range ms.known {
		ms.forget(name)
	}
}
