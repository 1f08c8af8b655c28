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

// A Caller is a process that has called connect(2). It is noted while the call waits: later it may run another program,
// or have passed its socket on.
type Caller struct {
	pid     int
	started uint64
	name    string // as the kernel calls it
	Mark    string // of its command, see package proc
	Program Program
}

// maxCallers is how many sockets have their caller noted, at least: those that connected last.
const maxCallers = 4096

// note notes who connects a socket, and reports whether the caller has waited all the while: what was read of another
// process is not noted.
func (k *Connector) note(c *kernel.Call, fd int) bool {
	var st unix.Stat_t
	if unix.Fstat(fd, &st) != nil {
		return true // which no connection survives
	}
	pid, _ := strconv.Atoi(c.Status()["Tgid"]) // 0 is no process
	who := named(pid)
	who.Program = programOf(c.Thread)
	who.Mark, _ = proc.MarkOf(c.Thread) // "" is no command's
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

// programOf returns what a thread runs.
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
	line, _ := os.ReadFile(dir + "/cmdline") // without them it has no arguments
	for arg := range bytes.SplitSeq(bytes.TrimRight(line[:min(len(line), maxCallerArgs)], "\x00"), []byte{0}) {
		p.Args = append(p.Args, string(arg))
	}
	return p
}

// maxCallerArgs is how much of the arguments of a program is noted, in bytes. The name of a script is among the first.
const maxCallerArgs = 4096

// CallerOf returns what is known of a process, but for its program.
func CallerOf(pid int) Caller {
	who := named(pid)
	who.Mark, _ = proc.MarkOf(pid) // "" is no command's
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

// CallerOf returns who made a command's connection; the zero Caller if that is not known.
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

// LeadOutside says whether what is not for the loopback interface of commands goes to a TUN device.
func (k *Connector) LeadOutside(yes bool) { k.outside.Store(yes) }

// Chain returns the programs from that of the caller's command, whose process is own, down to the caller, as
// [Connection].Chain has them.
func (who Caller) Chain(own int) (chain []string) {
	if s, err := proc.StatOf(who.pid); err != nil || s.Started != who.started { // it has ended
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
	// A copy of its parent that has not started a program has its name, too.
	if chain = slices.Compact(chain); pid == own && len(chain) > 1 {
		chain = chain[1:]
	}
	return chain
}
