package sandbox

import (
	"bytes"
	"context"
	"net/netip"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/toolhost/toolhost/guard/sandbox/internal/kernel"
	"github.com/toolhost/toolhost/guard/sandbox/internal/proc"
	"github.com/toolhost/toolhost/guard/sshagent"
)

// A caller is a process that has called connect(2). It is noted while the call waits: later it may run another program,
// or have passed its socket on.
type caller struct {
	pid     int
	started uint64
	name    string // as the kernel calls it
	mark    string // of its command
	program Program
}

// maxCallers is how many sockets have their caller noted, at least: those that connected last.
const maxCallers = 4096

// note notes who connects a socket, and reports whether the caller has waited all the while: what was read of another
// process is not noted.
func (k *connector) note(c *kernel.Call, fd int) bool {
	var st unix.Stat_t
	if unix.Fstat(fd, &st) != nil {
		return true // which no connection survives
	}
	who := caller{program: programOf(c.Thread)}
	who.pid, _ = strconv.Atoi(c.Status()["Tgid"]) // 0 is no process
	if s, err := proc.StatOf(who.pid); err == nil {
		who.name, who.started = strings.ToValidUTF8(s.Name, "?"), s.Started
	}
	who.mark, _ = proc.MarkOf(c.Thread) // "" is no command's
	if !c.Waits() {
		return false
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if len(k.callers) >= maxCallers {
		k.older, k.callers = k.callers, make(map[uint32]caller)
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

// callerOf returns who made a command's connection; the zero caller if that is not known.
func (k *connector) callerOf(from, to netip.AddrPort) caller {
	if k == nil {
		return caller{}
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
	return caller{}
}

// loggedIn has the judge of a command record that a process of it logs in by SSH, or why it does not.
func (s *Sandbox) loggedIn(n *namespaces, k *connector, pid int, d sshagent.Destination, refused string) {
	who := caller{pid: pid}
	if st, err := proc.StatOf(pid); err == nil {
		who.name, who.started = strings.ToValidUTF8(st.Name, "?"), st.Started
	}
	who.mark, _ = proc.MarkOf(pid) // "" is no command's
	gate, chain := s.hosts.only(), []string(nil)
	if c := n.commandOf(who); c != nil {
		gate, chain = c.hosts, who.chain(c.number())
	}
	if refused != "" {
		k.refuse(d.Address(), refused)
	}
	if gate != nil {
		gate.answer(context.Background(), Connection{Host: d.Host, Port: d.Port, Chain: chain, Secret: "an SSH login as " + d.User, Refused: refused})
	}
}

const (
	// markTries is how often a command is looked for while one is started, whose mark the host does not know yet, and
	// markPause the pause between.
	markTries = 20
	markPause = 5 * time.Millisecond
)

// commandOf returns the command that a caller belongs to, or nil.
func (n *namespaces) commandOf(who caller) *nsProcess {
	if who.mark == "" {
		return nil
	}
	for try := 1; ; try++ {
		c, all := n.marked(who.mark)
		if c != nil || all || try == markTries {
			return c
		}
		time.Sleep(markPause)
	}
}

// marked returns the command that has a mark, or nil. all means that each command has one.
func (n *namespaces) marked(mark string) (c *nsProcess, all bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	all = true
	for _, other := range n.commands {
		switch {
		case proc.MarkName(other.mark) == mark:
			c = other
		case other.mark == 0:
			all = false
		}
	}
	return c, all
}

// chain returns the programs from that of the caller's command, whose process is own, down to the caller, as
// [Connection].Chain has them.
func (who caller) chain(own int) (chain []string) {
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
		if pid == own || err != nil || now != who.mark {
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

// number returns the number of the command's process as the host sees it; 0 if it has ended.
func (c *nsProcess) number() (pid int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.pidfd < 0 {
		return 0
	}
	info, _ := os.ReadFile("/proc/self/fdinfo/" + strconv.Itoa(c.pidfd)) // without /proc there is no number
	for line := range strings.Lines(string(info)) {
		if number, ok := strings.CutPrefix(line, "Pid:"); ok {
			pid, _ = strconv.Atoi(strings.TrimSpace(number))
		}
	}
	return max(pid, 0)
}
