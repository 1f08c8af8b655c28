package mcpserver

import (
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/toolhost/toolhost/builtin"
	"github.com/toolhost/toolhost/guard"
	"github.com/toolhost/toolhost/guard/sandbox"
	"github.com/toolhost/toolhost/guard/settings"
	"github.com/toolhost/toolhost/mcpserver/audit"
	"github.com/toolhost/toolhost/mcpserver/auth"
	"github.com/toolhost/toolhost/mcpserver/internal/stdio"
)

// StartCell starts an agent in a cell of the sandbox. This host serves the agent over the socket of the cell as the
// principal of who, under the rules of that principal. Closing the cell ends everything that the agent has started.
func (s *Server) StartCell(ctx context.Context, who auth.Identity, spec builtin.CellSpec) (_ *builtin.Cell, err error) {
	h := s.host
	life, stop := context.WithCancel(context.WithoutCancel(ctx))
	var serving sync.WaitGroup
	dir, socket, err := listenInCell()
	over := func() {
		stop()
		serving.Wait()
		_ = os.RemoveAll(dir)
	}
	defer func() {
		if err != nil {
			over()
		}
	}()
	if err != nil {
		return nil, err
	}
	serving.Go(func() { s.serveCell(life, who, socket) })
	if spec.Prepare != nil {
		if err := spec.Prepare(&spec, dir, socket.Addr().String()); err != nil {
			return nil, err
		}
	}
	policy, err := h.policies.cell(who.Principal, spec, dir)
	if err != nil {
		return nil, err
	}
	if err := checkFiles(policy, spec.Files); err != nil {
		return nil, fmt.Errorf("%s cannot be started: %w", spec.Name, err)
	}
	gaps := cellGaps(h, policy, spec)
	if len(gaps) > 0 && (!spec.Weaker || !policy.Commands().Containment().Writes) {
		return nil, fmt.Errorf("the sandbox of this machine is incomplete: %s. `toolhost doctor` says how to get it; "+
			"--weaker accepts a sandbox that contains only files and processes", strings.Join(gaps, "; "))
	}
	spec.Sockets = append(slices.Clip(spec.Sockets), socket.Addr().String())
	spec.NoExecGate = spec.NoExecGate ||
		sandbox.ExecGateWorks(sandbox.Backend(policy.Commands().Containment().Name)) != nil
	env, err := cellEnv(h, life, who, policy, spec)
	if err != nil {
		return nil, err
	}
	began := time.Now()
	cell, err := env.StartCell(ctx, spec)
	if err != nil {
		return nil, err
	}
	cell.Gaps, cell.Closed = gaps, func() {
		over()
		_ = h.recorder.write(audit.Record{Time: began, Principal: who.Principal, Scope: env.Scope, Tool: env.Tool,
			Command: strings.Join(spec.Argv, " "), Verdict: guard.Allow.String(),
			Millis: float64(time.Since(began).Microseconds()) / 1000}) // it logs its errors
	}
	return cell, nil
}

// cellEnv returns the environment of a program in a cell.
func cellEnv(h *Host, life context.Context, who auth.Identity, policy *guard.Policy,
	spec builtin.CellSpec) (*builtin.Env, error) {
	a := h.Admit(who, nil, "", true)
	if a.Leave(); a.err != nil {
		return nil, a.err
	}
	call := &execCall{host: h, ctx: life, admission: a, req: Request{Tool: "run: " + spec.Name}}
	env := h.env(a, policy, call.req)
	// The rules are the caller's: an agent's withhold tools, and the program in the cell is not a tool.
	rules := h.children.caller(who.Principal)
	env.Execs = &builtin.Execs{
		Policy: func() *guard.Policy { return h.policies.in(spec.Worktree, h.policies.settings.Reload(), rules) },
		Ask:    call.ask, Known: call.isAlwaysAllowed, Tell: call.audit, Hosts: policy.Commands().Network().Asks,
	}
	return env, nil
}

// cellPrefix is the prefix of the directories of cells in the cache directory of the user.
const cellPrefix = "cell-"

// listenInCell creates a directory for a cell and listens on a socket in it.
func listenInCell() (dir string, l net.Listener, err error) {
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", nil, fmt.Errorf("cannot find a directory for the socket of the cell: %w", err)
	}
	parent := filepath.Join(cache, "toolhost")
	if err := os.MkdirAll(parent, 0o700); err != nil {
		return "", nil, err
	}
	removeDeadCells(parent)
	if dir, err = os.MkdirTemp(parent, cellPrefix); err != nil {
		return "", nil, err
	}
	if dir, err = filepath.EvalSymlinks(dir); err != nil {
		return "", nil, err
	}
	l, err = net.Listen("unix", filepath.Join(dir, "mcp.sock"))
	return dir, l, err
}

// removeDeadCells removes the directories of hosts that were killed: those on which nothing listens and that are not
// new.
func removeDeadCells(parent string) {
	dirs, _ := filepath.Glob(filepath.Join(parent, cellPrefix+"*")) // the pattern is valid
	for _, dir := range dirs {
		info, err := os.Stat(dir)
		if err != nil || time.Since(info.ModTime()) < time.Minute {
			continue
		}
		if conn, err := net.Dial("unix", filepath.Join(dir, "mcp.sock")); err == nil {
			conn.Close()
			continue
		}
		_ = os.RemoveAll(dir)
	}
}

// maxCellClients bounds how many connections of a cell are served at once.
const maxCellClients = 32

// serveCell serves MCP on a socket. Each connection is served like stdio.
func (s *Server) serveCell(ctx context.Context, who auth.Identity, l net.Listener) {
	defer context.AfterFunc(ctx, func() { l.Close() })()
	var clients sync.WaitGroup
	defer clients.Wait()
	places := make(chan struct{}, maxCellClients)
	for {
		conn, err := l.Accept()
		if err != nil {
			return
		}
		select {
		case places <- struct{}{}:
		default:
			conn.Close()
			continue
		}
		clients.Go(func() {
			defer func() { <-places }()
			defer conn.Close()
			end := context.AfterFunc(ctx, func() { _ = conn.(*net.UnixConn).CloseRead() })
			defer end()
			if err := stdio.Serve(ctx, adapter{Server: s, cell: true}, who, "", conn, conn, nil); err != nil {
				s.host.log.Warn("a client in a cell", "error", err)
			}
		})
	}
}

// cell compiles the rules for an agent. They deny changes to dir, the directory of the cell.
func (p *policies) cell(principal string, c builtin.CellSpec, dir string) (*guard.Policy, error) {
	set := *p.settings.Reload()
	entries := func(list []settings.Entry, texts []string, format string) []settings.Entry {
		list = slices.Clip(list)
		for _, text := range texts {
			list = append(list, settings.Entry{Text: fmt.Sprintf(format, filepath.ToSlash(text)), File: "toolhost run"})
		}
		return list
	}
	set.Sandbox.Network.AllowedDomains = entries(set.Sandbox.Network.AllowedDomains, c.Hosts, "%s")
	set.Sandbox.Filesystem.AllowWrite = entries(set.Sandbox.Filesystem.AllowWrite, c.Writable, "%s")
	set.Sandbox.Filesystem.DenyWrite = entries(set.Sandbox.Filesystem.DenyWrite, []string{dir}, "%s")
	set.Allow = entries(set.Allow, c.Open, "Read(/%s)")
	if c.ReadOnly {
		roots := p.where.Roots
		if c.Worktree != nil {
			roots = append(slices.Clip(roots), c.Worktree.Tree())
		}
		set.Sandbox.Filesystem.DenyWrite = entries(set.Sandbox.Filesystem.DenyWrite, roots, "%s")
	}
	cfg := p.guardConfig(&set, func() guard.Containment { return p.containment(&set) })
	if c.Roots != nil {
		cfg.Roots, cfg.ExplicitRoots = c.Roots, true
	}
	cfg = inWorktree(c.Worktree, cfg)
	cfg.Scratch, cfg.Private = scratchOf(p.scratch, principal), p.private.Of(principal)
	cfg.HostCommands = p.hostCommands(&set)
	rules, err := guard.New(cfg)
	if err != nil {
		return nil, err
	}
	return rules.For(guard.Caller{Remote: p.cfg.Remote,
		Own: []string{p.results.For(principal).Dir()}}), nil
}

// cellGaps returns the protections that an agent in a cell relies on and that this machine lacks.
func cellGaps(h *Host, policy *guard.Policy, spec builtin.CellSpec) (gaps []string) {
	held := policy.Commands().Containment()
	report := h.runtime.SandboxReport()
	for _, g := range []struct {
		held bool
		what string
	}{
		{held.Writes, "writes outside of the workspace"}, {held.Denies, "denied and protected files"},
		{report.Enforces.Network, "the network"}, {report.Enforces.Processes, "the end of what the agent starts"},
	} {
		if !g.held {
			gaps = append(gaps, "it does not hold "+g.what)
		}
	}
	if len(gaps) > 0 && held.Why != "" {
		gaps[len(gaps)-1] += " (" + strings.TrimSuffix(held.Why, ".") + ")"
	}
	if err := sandbox.ExecGateWorks(sandbox.Backend(held.Name)); err != nil && !spec.NoExecGate && held.Writes {
		gaps = append(gaps, "programs are not judged when they start ("+err.Error()+")")
	}
	return gaps
}
