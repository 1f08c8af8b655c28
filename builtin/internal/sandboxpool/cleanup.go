package sandboxpool

import (
	"fmt"
	"math"
	"net"
	"slices"
	"strings"
	"sync"
)

// Cleanup returns what takes away what a command must not leave behind, and tells of all that was taken away since now: a
// protected path that did not exist before, git settings that execute something, and hooks.
func (cs *Pool) Cleanup() func() []string {
	_, from := cs.baseline.Since(math.MaxInt)
	return func() []string {
		err := cs.baseline.Check()
		notes, _ := cs.baseline.Since(from)
		if err != nil {
			notes = append(notes, err.Error())
		}
		return notes
	}
}

// dirs are the directories that commands may write and other programs look into.
func (c *Sandbox) dirs() []string {
	return slices.DeleteFunc(slices.Clone(c.paths.Writable), func(dir string) bool { return dir == c.policy.Commands().Scratch() })
}

// holdHooks has directories of hooks kept from commands. Those that were just made are among the paths of the policy from now on.
func (c *Sandbox) holdHooks(hooks []string) {
	made := slices.ContainsFunc(hooks, func(path string) bool { return !slices.Contains(c.paths.ReadOnly, path) })
	if made {
		c.paths = c.policy.Commands().SandboxPaths()
	}
	c.held = slices.DeleteFunc(hooks, func(path string) bool { return slices.Contains(c.paths.ReadOnly, path) })
}

// maxRefusals bounds how many refusals are kept for the commands that run.
const maxRefusals = 200

// refusals are the hosts that a sandbox refused. Which command asked for one is not known: each that ran then gets the notice.
type refusals struct {
	mu      sync.Mutex
	notes   []string
	dropped int // how many are no longer kept
}

// since returns what was refused since so many refusals, with the fresh ones, and how many there are by now.
func (r *refusals) since(from int, fresh []string) (notes []string, count int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.notes = append(r.notes, fresh...)
	if over := len(r.notes) - maxRefusals; over > 0 {
		r.notes, r.dropped = slices.Delete(r.notes, 0, over), r.dropped+over
	}
	for _, note := range r.notes[min(max(from-r.dropped, 0), len(r.notes)):] {
		if !slices.Contains(notes, note) {
			notes = append(notes, note)
		}
	}
	return notes, r.dropped + len(r.notes)
}

// Refusing notes how many hosts and ports commands were refused so far, and returns what tells those that follow, and what can be done about it.
func (c *Sandbox) Refusing() func() []string {
	_, from := c.refusals.since(math.MaxInt, c.refused())
	return func() []string {
		notes, _ := c.refusals.since(from, c.refused())
		return notes
	}
}

// refused tells which hosts and Unix sockets were refused, and which ports were not published, since the last call.
func (c *Sandbox) refused() []string {
	var notes []string
	for _, r := range c.box.Refused() {
		notes = append(notes, refusal(r.Host, strings.TrimSuffix(r.Why, ".")))
	}
	for _, w := range c.box.Withheld() {
		notes = append(notes, fmt.Sprintf("Port %d is not published on the host: %s. Inside the sandbox it can be reached; listen on another port to publish it.", w.Port, w.Why))
	}
	return notes
}

// refusal says which host or Unix socket was refused, and who can change that.
func refusal(host, why string) string {
	what := "host"
	if strings.HasPrefix(host, "/") {
		what = "Unix socket"
	}
	switch why {
	case "no connection is made for it, because its memory cannot be read; make the program readable":
		what = "program"
	case "it is not in sandbox.network.allowedDomains":
		name, _, err := net.SplitHostPort(host)
		if err != nil {
			name = host
		}
		return fmt.Sprintf("The sandbox refused the host %s: %s. A person can add it: toolhost allow-host %s", host, why, name)
	case "it was not made in the sandbox, and is not in sandbox.network.allowUnixSockets":
		why += ", to which a person can add it"
	case "it is denied by sandbox.network.deniedDomains":
		why += ", which only a person can change"
	}
	return fmt.Sprintf("The sandbox refused the %s %s: %s.", what, host, why)
}
