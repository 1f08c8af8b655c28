package connectgate

import (
	"bytes"
	"net/netip"
	"os"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/toolhost/toolhost/guard/sandbox/internal/kernel"
	"github.com/toolhost/toolhost/guard/sandbox/internal/proc"
)

// A Caller is a process that has called connect(2). It is recorded while the call waits: later the process may run
// another program, or may have passed its socket on.
type Caller struct {
	pid     int
	started uint64
	name    string // as the kernel reports it
	Mark    string // the command that the process belongs to, see package proc
	Program Program
}

// maxCallers is for how many sockets the caller is remembered, at least. The sockets that connected last are kept.
const maxCallers = 4096

// note records who connects a socket. It reports false if the caller did not wait to the end: then the number may
// belong to another process, and nothing is recorded.
func (k *Connector) note(c *kernel.Call, fd int) bool {
	var st unix.Stat_t
	if unix.Fstat(fd, &st) != nil {
		return true // the socket is gone, so no connection comes of it
	}
	pid, _ := strconv.Atoi(c.Status()["Tgid"]) // 0 is no process
	who := named(pid)
	who.Program = programOf(c.Thread)
	who.Mark, _ = proc.MarkOf(c.Thread) // "" is a process of no command
	if !c.Waits() {
		return false
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if len(k.callers) >= maxCallers {
		k.older, k.callers = k.callers, make(map[uint32]Caller)
	}
	k.callers[uint32(st.Ino)] = who
	return true
}

// programOf returns the program that a thread runs.
func programOf(thread int) (p Program) {
	dir := "/proc/" + strconv.Itoa(thread)
	path, err := os.Readlink(dir + "/exe")
	if err != nil {
		return p
	}
	its, err := os.Stat(dir + "/exe")
	ours, errOurs := os.Stat(path)
	if err == nil && errOurs == nil && os.SameFile(its, ours) {
		p.Path = path
	}
	line, _ := os.ReadFile(dir + "/cmdline") // if this fails, the program is recorded without arguments
	for arg := range bytes.SplitSeq(bytes.TrimRight(line[:min(len(line), maxCallerArgs)], "\x00"), []byte{0}) {
		p.Args = append(p.Args, string(arg))
	}
	return p
}

// maxCallerArgs is how much of a program's arguments is recorded, in bytes. The name of a script is among the first.
const maxCallerArgs = 4096

// CallerOf returns what is known of a process, except its program.
func CallerOf(pid int) Caller {
	who := named(pid)
	who.Mark, _ = proc.MarkOf(pid) // "" is a process of no command
	return who
}

// named returns the name of a process and when it was started.
func named(pid int) Caller {
	who := Caller{pid: pid}
	if s, err := proc.StatOf(pid); err == nil {
		who.name, who.started = strings.ToValidUTF8(s.Name, "?"), s.Started
	}
	return who
}

// CallerOf returns the process that made a command's connection, or the zero Caller if it is not known.
func (k *Connector) CallerOf(from, to netip.AddrPort) Caller {
	if k == nil {
		return Caller{}
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	for table := range k.inside {
		inode, err := table.TCP(netip.AddrPortFrom(from.Addr().Unmap(), from.Port()),
			netip.AddrPortFrom(to.Addr().Unmap(), to.Port()))
		if err != nil {
			continue
		}
		if who, ok := k.callers[inode]; ok {
			return who
		}
		return k.older[inode]
	}
	return Caller{}
}

// LeadOutside sets whether connections to addresses outside the loopback interface go to a TUN device.
func (k *Connector) LeadOutside(yes bool) { k.outside.Store(yes) }

// Chain returns the names of the programs from the command's own process, own, down to the caller, in the form of
// [Connection].Chain.
func (who Caller) Chain(own int) (chain []string) {
	if s, err := proc.StatOf(who.pid); err != nil || s.Started != who.started { // the process has ended
		return []string{who.name}
	}
	pid := who.pid
	for len(chain) < proc.MaxChain {
		s, err := proc.StatOf(pid)
		if err != nil {
			break
		}
		chain = append(chain, strings.ToValidUTF8(s.Name, "?"))
		now, err := os.Readlink("/proc/" + strconv.Itoa(s.Parent) + "/ns/uts")
		if pid == own || err != nil || now != who.Mark {
			break
		}
		pid = s.Parent
	}
	slices.Reverse(chain)
	// A forked process that has not started a program yet has its parent's name.
	if chain = slices.Compact(chain); pid == own && len(chain) > 1 {
		chain = chain[1:]
	}
	return chain
}
