package sandboxpool

import (
	"fmt"
	"math"
	"net"
	"slices"
	"strings"
	"sync"

	"github.com/toolhost/toolhost/guard/hostpreset"
	"github.com/toolhost/toolhost/guard/settle"
)

// Cleanup returns a function that removes what a command must not leave: a protected path that did not exist before,
// git settings that execute something, and hooks. The function returns notes on everything that was removed since
// Cleanup.
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

// dirs are the directories that commands may write and other programs read.
func (c *Sandbox) dirs() []string {
	if c.discard {
		return nil
	}
	return slices.DeleteFunc(slices.Clone(c.paths.Writable),
		func(dir string) bool { return dir == c.policy.Commands().Scratch() })
}

// holdHooks protects directories of hooks from commands. New ones are added to the paths of the policy.
func (c *Sandbox) holdHooks(hooks []string) {
	made := slices.ContainsFunc(hooks, func(path string) bool { return !slices.Contains(c.paths.ReadOnly, path) })
	if made {
		c.paths = c.policy.Commands().SandboxPaths()
	}
	c.held = slices.DeleteFunc(hooks, func(path string) bool { return slices.Contains(c.paths.ReadOnly, path) })
}

// Enter begins a command in the sandbox: the protected files that an earlier command has changed are exchanged in. It
// returns notes on what has happened to them meanwhile.
func (cs *Pool) Enter(c *Sandbox) (*settle.Command, []string, error) {
	return cs.baseline.Settle().Begin(c.dirs(), c.policy.Commands().KeepsChanges())
}

// maxRefusals limits the refusals that are kept for the running commands.
const maxRefusals = 200

// refusals are the hosts that a sandbox has refused. It is not known which command has used a host: all commands that
// were running get the notice.
type refusals struct {
	mu      sync.Mutex
	notes   []string
	dropped int // number of refusals that were dropped
}

// since adds the fresh refusals, and returns those after the first n and the new total.
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

// Refusing returns a function that returns notes on the hosts and ports that are refused after the call of Refusing,
// and on how to allow them.
func (c *Sandbox) Refusing() func() []string {
	_, from := c.refusals.since(math.MaxInt, c.refused())
	return func() []string {
		notes, _ := c.refusals.since(from, c.refused())
		return notes
	}
}

// refused returns notes on the hosts and Unix sockets that were refused, and the ports that were not published, since
// the last call.
func (c *Sandbox) refused() []string {
	var notes []string
	for _, r := range c.box.Refused() {
		why := strings.TrimSuffix(r.Why, ".")
		if c.discard && (why == unlistedHost || why == unlistedSocket) {
			why = "plan mode closes the network, and a person is asked anew"
		}
		notes = append(notes, refusal(r.Host, r.Program, why))
	}
	for _, w := range c.box.Withheld() {
		notes = append(notes, fmt.Sprintf("Port %d is not published on the host: %s. Inside the sandbox it can be reached; "+
			"listen on another port to publish it.", w.Port, w.Why))
	}
	return notes
}

// Reasons of the sandbox that a setting of a person changes.
const (
	unlistedHost   = "it is not in sandbox.network.allowedDomains"
	unlistedSocket = "it was not made in the sandbox, and is not in sandbox.network.allowUnixSockets"
)

// refusal returns a note on a host or Unix socket that was refused to a program, and on how it can be allowed.
func refusal(host, program, why string) string {
	what, place := "host", host
	if program != "" {
		place += " (" + program + ")"
	}
	if strings.HasPrefix(host, "/") {
		what = "Unix socket"
	}
	switch why {
	case "no connection is made for it, because its memory cannot be read; make the program readable":
		what = "program"
	case unlistedHost:
		name, _, err := net.SplitHostPort(host)
		if err != nil || name == "localhost" { // the port says which service
			name = host
		}
		note := fmt.Sprintf("The sandbox refused the host %s: %s. A person can add it: toolhost allow-host %s",
			place, why, name)
		if preset := hostpreset.With(name); preset != "" {
			note += fmt.Sprintf(" (with the other hosts of %s: toolhost allow-host --preset %s)", preset, preset)
		}
		return note
	case unlistedSocket:
		why += ", to which a person can add it"
	case "it is denied by sandbox.network.deniedDomains":
		why += ", which only a person can change"
	}
	return fmt.Sprintf("The sandbox refused the %s %s: %s.", what, place, why)
}
