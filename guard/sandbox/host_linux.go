package sandbox

import (
	"context"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/toolhost/toolhost/guard/sandbox/connectgate"
	"github.com/toolhost/toolhost/guard/sandbox/internal/proc"
	"github.com/toolhost/toolhost/guard/sshagent"
)

// loggedIn has the judge of a command record that a process of it logs in by SSH, or why it does not.
func (s *Sandbox) loggedIn(n *insideProcess, k *connectgate.Connector, pid int, d sshagent.Destination,
	refused string) {
	who := connectgate.CallerOf(pid)
	gate, chain := s.hosts.Only(), []string(nil)
	if c := n.commandOf(who); c != nil {
		gate, chain = c.hosts, who.Chain(c.number())
	}
	if refused != "" {
		k.Refuse(d.Address(), refused)
	}
	if gate != nil {
		gate.Answer(context.Background(), connectgate.Connection{Host: d.Host, Port: d.Port, Chain: chain,
			Secret: "an SSH login as " + d.User, Refused: refused})
	}
}

const (
	// markTries is how often a command is looked for whose mark the host does not know yet, because it is being
	// started; markPause is the pause between two tries.
	markTries = 20
	markPause = 5 * time.Millisecond
)

// commandOf returns the command that a caller belongs to, or nil.
func (n *insideProcess) commandOf(who connectgate.Caller) *nsProcess {
	if who.Mark == "" {
		return nil
	}
	for try := 1; ; try++ {
		c, all := n.marked(who.Mark)
		if c != nil || all || try == markTries {
			return c
		}
		time.Sleep(markPause)
	}
}

// marked returns the command that has a mark, or nil. all says that each command has one.
func (n *insideProcess) marked(mark string) (c *nsProcess, all bool) {
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
