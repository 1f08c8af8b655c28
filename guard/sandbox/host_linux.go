package sandbox

import (
	"net/netip"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"
)

// socketOf returns the inode of the socket of a command's connection; 0 if it is not found.
func (k *connector) socketOf(from, to netip.AddrPort) uint32 {
	if k == nil {
		return 0
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	for table := range k.inside {
		if inode, err := table.TCP(netip.AddrPortFrom(from.Addr().Unmap(), from.Port()), netip.AddrPortFrom(to.Addr().Unmap(), to.Port())); err == nil {
			return inode
		}
	}
	return 0
}

const (
	// markTries is how often a process is looked for while a command is started, whose mark the host does not know yet, and
	// markPause the pause between.
	markTries = 20
	markPause = 5 * time.Millisecond
)

// holder returns the command of which a process holds a socket, and the programs down to that process as [Connection].Chain has
// them. It reports false if no process is found: it may have closed the socket, or its user may not read it.
func (n *namespaces) holder(inode uint32) (c *nsProcess, chain []string, ok bool) {
	if inode == 0 {
		return nil, nil, false
	}
	for try := 1; ; try++ {
		commands, last, all := n.marked()
		if pid, mark := holderOf(inode, last, commands); pid != 0 {
			n.mu.Lock()
			n.connected = pid
			n.mu.Unlock()
			return commands[mark], chainIn(pid, commands[mark].number(), mark), true
		}
		if all || try == markTries {
			return nil, nil, false
		}
		time.Sleep(markPause)
	}
}

// marked returns the commands by their marks, and the process that connected last. all means that each command has one.
func (n *namespaces) marked() (commands map[string]*nsProcess, last int, all bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	commands = make(map[string]*nsProcess, len(n.commands))
	for _, c := range n.commands {
		commands[markName(c.mark)] = c
	}
	_, fresh := commands[markName(0)]
	return commands, n.connected, !fresh
}

// holderOf returns a process of a command that holds a socket, and the command's mark; 0 if there is none. A program often connects
// several times: so the process that did last is looked at first.
func holderOf(inode uint32, last int, commands map[string]*nsProcess) (pid int, mark string) {
	socket := "socket:[" + strconv.FormatUint(uint64(inode), 10) + "]"
	all, _ := processes() // without /proc none is found
	for _, pid := range append([]int{last}, all...) {
		mark, err := os.Readlink("/proc/" + strconv.Itoa(pid) + "/ns/uts")
		if err == nil && commands[mark] != nil && holdsFile(pid, socket) {
			return pid, mark
		}
	}
	return 0, ""
}

// holdsFile reports whether a process has a file open that /proc names so.
func holdsFile(pid int, name string) bool {
	path := "/proc/" + strconv.Itoa(pid) + "/fd"
	dir, err := os.Open(path)
	if err != nil {
		return false
	}
	defer dir.Close()
	names, _ := dir.Readdirnames(-1) // what it has read counts
	return slices.ContainsFunc(names, func(fd string) bool {
		link, err := os.Readlink(path + "/" + fd)
		return err == nil && link == name
	})
}

// chainIn returns the programs from that of a command, whose process is own, down to one of its processes, all of which have a mark.
func chainIn(pid, own int, mark string) (chain []string) {
	for len(chain) < maxChain {
		s, err := statOf(pid)
		if err != nil {
			break
		}
		chain = append(chain, strings.ToValidUTF8(s.name, "?"))
		if now, err := os.Readlink("/proc/" + strconv.Itoa(s.parent) + "/ns/uts"); pid == own || err != nil || now != mark {
			break
		}
		pid = s.parent
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
