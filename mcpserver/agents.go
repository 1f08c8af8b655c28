package mcpserver

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/toolhost/toolhost/builtin"
	"github.com/toolhost/toolhost/guard/settings"
	"github.com/toolhost/toolhost/mcpserver/auth"
	"github.com/toolhost/toolhost/mcpserver/doctor"
	"github.com/toolhost/toolhost/mcpserver/internal/scope"
)

// A child is an agent that runs for a caller. It is a separate principal.
type child struct {
	spec   builtin.CellSpec
	parent string       // the principal of the caller
	scope  *scope.Scope // of the caller
	depth  int          // 1 if no agent started it
	// ask puts a question to the person of the caller while its call waits. It is nil if the caller's client cannot be
	// asked.
	ask func(ctx context.Context, q *Question) *Answer
}

// children holds the running agents by principal.
type children struct {
	host   *Host
	server func() (*Server, error) // the server that serves them

	mu  sync.Mutex
	all map[string]*child
}

func newChildren(h *Host) *children {
	return &children{host: h, all: map[string]*child{},
		server: sync.OnceValues(func() (*Server, error) { return NewServer(h) })}
}

// of returns the agent of a principal, or nil if the principal is not an agent.
func (c *children) of(principal string) *child {
	if !isAgent(principal) {
		return nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.all[principal]
}

func (c *children) set(principal string, now *child) {
	c.mu.Lock()
	if c.all[principal] = now; now == nil {
		delete(c.all, principal)
	}
	c.mu.Unlock()
	c.host.policies.forget(principal)
}

// forgetRules drops the compiled rules of all agents, after a change of the tools that they were compiled for.
func (c *children) forgetRules() {
	c.mu.Lock()
	all := slices.Collect(maps.Keys(c.all))
	c.mu.Unlock()
	for _, principal := range all {
		c.host.policies.forget(principal)
	}
}

// caller returns the principal at the root of an agent's chain of callers. For other principals it returns principal
// itself.
func (c *children) caller(principal string) string {
	for one := c.of(principal); one != nil; one = c.of(principal) {
		principal = one.parent
	}
	return principal
}

// label returns the name of an agent in questions, or "" if the principal is not an agent.
func (c *children) label(principal string) string {
	if one := c.of(principal); one != nil {
		return "agent " + one.spec.Agent.ID + " (" + one.spec.Agent.Type + ")"
	}
	return ""
}

// asker returns the function that puts an agent's questions to the person of its caller, or nil if that person cannot
// be asked.
func (c *children) asker(principal string) func(context.Context, *Question) *Answer {
	one := c.of(principal)
	if one == nil || one.ask == nil || one.spec.Agent.Call.Err() != nil {
		return nil
	}
	return one.ask
}

// offer adds to env what the call needs to start agents.
func (c *children) offer(ctx context.Context, env *builtin.Env, a *Admission, req Request) *builtin.Env {
	h := c.host
	set := h.policies.settings.Current().Agent
	depth := 1
	if one := c.of(a.principal); one != nil {
		depth = one.depth + 1
	}
	if set.Runner.Text == "" || h.cfg.AgentRunner == nil || depth > set.Depth {
		return env
	}
	offered := &env.Agents
	offered.Find = func() error { return h.cfg.AgentRunner(h, set.Runner.Text, env) }
	offered.Dirs, offered.MaxTurns, offered.MaxTokens, offered.MaxTime = h.policies.agentDirs, set.MaxTurns, set.MaxTokens,
		set.MaxTime
	offered.Start = func(spec builtin.CellSpec) (*builtin.Cell, func(), error) {
		one := &child{spec: spec, parent: a.principal, scope: a.scope, depth: depth}
		if req.AskUser != nil {
			one.ask = func(asks context.Context, q *Question) *Answer {
				ctx, cancel := context.WithCancel(ctx) // ctx carries the session of the client
				defer cancel()
				defer context.AfterFunc(asks, cancel)()
				return req.AskUser(ctx, q)
			}
		}
		return c.start(ctx, one, a.who)
	}
	return env
}

// isAgent reports whether a principal is an agent, running or ended.
func isAgent(principal string) bool {
	return strings.HasPrefix(principal, builtin.CellSpec{}.Agent.Principal())
}

// start starts an agent in a cell.
func (c *children) start(ctx context.Context, one *child, who auth.Identity) (*builtin.Cell, func(), error) {
	server, err := c.server()
	if err != nil {
		return nil, nil, err
	}
	principal, spec := one.spec.Agent.Principal(), &one.spec
	spec.ReadOnly = spec.Agent.ReadOnly || c.host.modes.isPlanning(one.scope) ||
		c.host.policies.settings.Current().DefaultMode == settings.ModePlan
	for up := c.of(one.parent); up != nil; up = c.of(up.parent) {
		spec.ReadOnly = spec.ReadOnly || up.spec.ReadOnly
	}
	c.set(principal, one)
	end := func() {
		c.host.runtime.StopTasks(principal)
		c.host.runtime.ForgetSandbox(principal)
	}
	gone := func() {
		end()
		c.set(principal, nil)
		c.host.policies.removeScratch(principal)
	}
	cell, err := server.StartCell(ctx, auth.Identity{Principal: principal, Rights: who.Rights, Servers: who.Servers},
		*spec)
	if err != nil {
		gone()
		return nil, nil, err
	}
	closed := cell.Closed
	cell.Closed = func() {
		closed() // no further call can arrive
		gone()
	}
	return cell, end, nil
}

// errAgentEnded is the reason why an agent that is not running is denied everything.
var errAgentEnded = errors.New("this agent has ended")

// strictness lists the permission modes, strictest first.
var strictness = []string{settings.ModePlan, settings.ModeDontAsk, settings.ModeDefault, settings.ModeAcceptEdits,
	settings.ModeAuto, settings.ModeBypass}

// narrow returns the settings of a principal. For an agent these are the settings of its caller, restricted further. It
// returns nil for an agent that has ended.
func (p *policies) narrow(set *settings.Settings, principal string) *settings.Settings {
	if !isAgent(principal) {
		return set
	}
	one := p.children.of(principal)
	if one == nil {
		return nil
	}
	if set = p.narrow(set, one.parent); set == nil {
		return nil
	}
	narrowed := *set
	narrowed.Sandbox.AllowUnsandboxedCommands, narrowed.Sandbox.ExcludedCommands = false, nil
	if mode := one.spec.Agent.Mode; mode != "" && slices.Index(strictness, mode) < slices.Index(strictness,
		set.DefaultMode) {
		narrowed.DefaultMode, narrowed.DefaultModeFrom = mode, settings.Entry{Text: mode, File: "the agent " +
			one.spec.Agent.Type}
	}
	narrowed.Deny = slices.Clip(narrowed.Deny)
	for _, name := range p.withheld(one, set.Agent.Depth) {
		narrowed.Deny = append(narrowed.Deny, settings.Entry{Text: name, File: "the agent " + one.spec.Agent.Type})
	}
	return &narrowed
}

// withheld returns the names of the tools that an agent does not get.
func (p *policies) withheld(one *child, depth int) (names []string) {
	now, has := p.tools.now(), one.spec.Agent
	for _, d := range now.all {
		// Finding a tool does not permit calling it.
		finder := d.Server == "" && (d.Name == toolSearchName || d.Name == toolCallName)
		switch {
		case d.Name == agentTool && one.depth >= depth, strings.HasSuffix(d.Name, "Worktree"),
			slices.Contains(has.Denied, d.Name):
			names = append(names, d.Name)
		case len(has.Tools) > 0 && !lists(has.Tools, d) && !finder && d.Name != "TaskOutput" && d.Name != "TaskStop":
			names = append(names, d.Name)
		}
	}
	for _, name := range has.Denied { // tools of other servers, which may not be known yet, by any of their names
		if strings.HasPrefix(name, foreignHandler) {
			names = append(names, name)
		}
	}
	for _, s := range now.Servers { // tools that are not yet known
		all := foreignHandler + s.Name
		named := slices.ContainsFunc(has.Tools, func(name string) bool {
			name = strings.TrimPrefix(name, ownPrefix)
			return name == all || strings.HasPrefix(name, all+"__")
		})
		if len(has.Tools) > 0 && !named || has.Servers != nil && !slices.Contains(has.Servers, s.Name) {
			names = append(names, all)
		}
	}
	return names
}

// lists reports whether a list of an agent names a tool: by its name, a pattern, or the name of its server, each with
// or without the prefix that clients add.
func lists(list []string, d *builtin.Def) bool {
	return slices.ContainsFunc(list, func(name string) bool {
		name = strings.TrimPrefix(name, ownPrefix)
		if d.Server == "" {
			return name == d.Name
		}
		matches, err := path.Match(name, d.Name)
		return err == nil && matches || name == "mcp__"+d.Server || name == d.Listed && name != ""
	})
}

// agentTool is the name of the tool that starts agents.
const agentTool = "Agent"

// forget drops the compiled rules of a principal.
func (p *policies) forget(principal string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.compiled.Range(func(place, _ any) bool {
		if whose, _, _ := strings.Cut(place.(string), "\x00"); whose == principal {
			p.compiled.Delete(place)
			p.compiledCount--
		}
		return true
	})
}

// removeScratch removes the directory for temporary files of a principal that has ended.
func (p *policies) removeScratch(principal string) {
	if dir := scratchOf(p.scratch, principal); dir != "" {
		if err := os.RemoveAll(dir); err != nil {
			p.log.Warn("the temporary files of an agent could not be removed", "error", err)
		}
	}
}

// agentDirs returns the directories with agent definitions.
func (p *policies) agentDirs() []string {
	roots, user := p.definitionDirs("agents")
	if user == "" {
		return roots
	}
	return append(roots, user)
}

// definitionDirs returns the directories with definitions of a kind: those of the trusted roots and that of the user.
func (p *policies) definitionDirs(kind string) (roots []string, user string) {
	all, err := settings.ListTrusted(p.where)
	trusted := map[string]bool{}
	for _, t := range all {
		trusted[t.Root] = true
	}
	if err != nil {
		p.log.Warn("no definitions of the workspace are used", "kind", kind, "error", err)
	}
	for _, root := range p.where.Roots {
		real, err := filepath.EvalSymlinks(root)
		if err == nil && (p.where.TrustWorkspace || trusted[real]) {
			roots = append(roots, filepath.Join(real, ".claude", kind))
		}
	}
	if p.where.Home != "" {
		own := filepath.Join(p.where.Home, ".claude", kind)
		real, _ := filepath.EvalSymlinks(own) // the user may have moved it
		user = cmp.Or(real, own)
	}
	return roots, user
}

// examine returns the doctor's findings about agents and skills.
func (c *children) examine() (all []doctor.Finding) {
	p := c.host.policies
	if c.host.tools.has(skillTool) {
		k := p.skills(p.of(LocalPrincipal))
		loaded, wrong := k.Load()
		for _, s := range loaded {
			if _, err := s.Files(k.MayRead); err != nil {
				wrong = errors.Join(wrong, fmt.Errorf("%s: skills/list leaves the skill out: %w", s.Dir, err))
			}
		}
		all = faulty("skills", wrong)
	}
	runner := p.settings.Current().Agent.Runner
	if runner.Text == "" || c.host.cfg.AgentRunner == nil {
		return all
	}
	var env builtin.Env
	if err := c.host.cfg.AgentRunner(c.host, runner.Text, &env); err != nil {
		all = append(all, doctor.Finding{Level: doctor.LevelWarn, About: "agent", Text: err.Error(),
			Remedy: "install it, or correct agent.runner in " + runner.Where()})
	} else {
		all = append(all, doctor.Finding{Level: doctor.LevelOK, About: "agent", Text: env.Agents.Runner.Name +
			" runs as " + env.Agents.Runner.Command})
	}
	_, wrong := c.host.runtime.AgentTypes(p.agentDirs())
	return append(all, faulty("agent", wrong)...)
}

// faulty returns a finding for each line of an error about files with definitions.
func faulty(about string, wrong error) (all []doctor.Finding) {
	if wrong == nil {
		return nil
	}
	for line := range strings.Lines(wrong.Error()) {
		all = append(all, doctor.Finding{Level: doctor.LevelWarn, About: about, Text: strings.TrimSpace(line),
			Remedy: "correct the file"})
	}
	return all
}
