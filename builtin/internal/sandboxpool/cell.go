package sandboxpool

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/toolhost/toolhost/guard"
	"github.com/toolhost/toolhost/guard/sandbox"
	"github.com/toolhost/toolhost/guard/sandbox/connectgate"
	"github.com/toolhost/toolhost/guard/settle"
)

// A Cell defines how the sandbox of a server differs from that of commands.
type Cell struct {
	// Domains are the hosts that it reaches, instead of those of the rules.
	Domains []string
	// Reaches reports whether a host of Domains is still reached. Nil: all are.
	Reaches func(host string) bool
	// Workspace shows the workspace as commands see it. Without it the workspace is hidden.
	Workspace bool
	// Shown are files and directories that are visible read-only, unless they are hidden from commands.
	Shown []string
	// Secrets are put into requests to some of Domains.
	Secrets []sandbox.Secret
}

// AcquireCell is Acquire for the sandbox of one server, which no other process shares: key is used once.
func (cs *Pool) AcquireCell(ctx context.Context, key string, policy *guard.Policy, cell *Cell) (*Sandbox, error) {
	return cs.acquire(ctx, key, policy, kind{cell: cell})
}

// openSession starts a sandbox with a session for its server, if that sees the workspace, or its agent. Where the
// system does not tell of its changes, the session is a task.
func (cs *Pool) openSession(c *Sandbox, agent bool,
	start func(*sandbox.WriteGate) (*sandbox.Sandbox, error)) (box *sandbox.Sandbox, err error) {
	if c.cell == nil && !agent || len(c.dirs()) == 0 {
		return start(nil)
	}
	program := settle.Program{Keep: c.policy.Commands().KeepsChanges(), IsAgent: agent, Log: cs.warn}
	var clean func() []string
	program.Wake = func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		clean = cs.Cleanup()
		cs.baseline.Begin(c.dirs(), c.guarded)
	}
	program.Rest = func(ended bool) []string {
		defer cs.baseline.End(c.dirs())
		if !ended {
			cs.baseline.CutOff(c.dirs())
		}
		return clean()
	}
	if sandbox.WriteGateWorks() == nil {
		var session *settle.Session
		gate := sandbox.NewWriteGate(func() error { return session.Wrote() })
		program.Quiet = gate.Quiet
		if session, err = cs.baseline.Settle().Session(c.dirs(), program); err != nil {
			return nil, err
		}
		if box, err = start(gate); err == nil {
			c.session = session
			return box, nil
		}
		cs.warn(session.End())
	}
	cs.log.Warn("changes of a program cannot be told from those of a person: they are settled when it has ended")
	program.Quiet = nil
	if c.session, err = cs.baseline.Settle().Session(c.dirs(), program); err != nil {
		return nil, err
	}
	if box, err = start(nil); err != nil {
		cs.warn(c.session.End())
		c.session = nil
	}
	return box, err
}

func (cs *Pool) warn(notes []string) {
	for _, note := range notes {
		cs.log.Warn(note)
	}
}

// EndSession settles what the program of a server or an agent has changed, once everything that it has started has
// ended, and returns notes.
func (c *Sandbox) EndSession() []string {
	if c.session == nil {
		return nil
	}
	return c.session.End()
}

// Enter begins a call of the server in the sandbox. leave ends it.
func (c *Sandbox) Enter() (leave func(), err error) {
	if c.session == nil {
		return func() {}, nil
	}
	return c.session.Enter()
}

// seesWorkspace reports whether the sandbox shows the workspace; that of commands, which has no Cell, does.
func (l *Cell) seesWorkspace() bool { return l == nil || l.Workspace }

// confine replaces the view of files that commands have by that of a server.
func (l *Cell) confine(c *Sandbox) {
	if c.cell = l; l == nil {
		return
	}
	p := &c.paths
	hidden := slices.Concat(p.Masked, p.Denied)
	shown := slices.DeleteFunc(slices.Clone(l.Shown), func(path string) bool {
		real, err := filepath.EvalSymlinks(path)
		return err != nil || within(path, hidden) || within(real, hidden)
	})
	if l.seesWorkspace() {
		p.Shown = append(slices.Clone(p.Shown), shown...)
		return
	}
	scratch := c.policy.Commands().Scratch()
	shown = slices.DeleteFunc(shown, func(path string) bool { return showsWorkspace(path, scratch, c.paths.Writable) })
	for _, dir := range p.Writable {
		if dir != scratch {
			p.Masked = append(p.Masked, dir)
		}
	}
	p.Writable, p.Shown = []string{scratch}, shown
	p.ReadOnly, p.Control, c.held = nil, guard.ControlPaths{}, nil
}

// showsWorkspace reports whether a path is a directory that is one of those that commands write, holds one, or lies
// in one.
func showsWorkspace(path, scratch string, writable []string) bool {
	real, err := filepath.EvalSymlinks(path)
	if err != nil {
		return true
	}
	if info, err := os.Stat(real); err == nil && !info.IsDir() {
		return false // the program itself
	}
	return slices.ContainsFunc(writable, func(dir string) bool {
		if dir == scratch {
			return false
		}
		if at, err := filepath.EvalSymlinks(dir); err == nil {
			dir = at
		}
		return within(real, []string{dir}) || within(dir, []string{real})
	})
}

// resolve looks a host up that is still reached.
func (l *Cell) resolve(ctx context.Context, host string) ([]netip.Addr, error) {
	if l.Reaches != nil && !l.Reaches(host) {
		return nil, fmt.Errorf("%s can be reached only until the server has started", host)
	}
	return net.DefaultResolver.LookupNetIP(ctx, "ip", host)
}

// SpawnServer starts a server with exactly these variables and those that point into the sandbox. The server's own have
// precedence. hosts judges its connections.
func (c *Sandbox) SpawnServer(argv []string, dir string, env []string, files []*os.File,
	hosts *connectgate.Gate) (sandbox.Process, error) {
	all := slices.Clone(env)
	for _, entry := range slices.Concat(c.scratch, c.box.Env()) {
		name, _, _ := strings.Cut(entry, "=")
		if !slices.ContainsFunc(env, func(own string) bool { return strings.HasPrefix(own, name+"=") }) {
			all = append(all, entry)
		}
	}
	return c.box.Spawn(sandbox.Spec{Argv: argv, Dir: dir, Env: all, Files: files, Hosts: hosts})
}
