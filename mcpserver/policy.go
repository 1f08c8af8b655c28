package mcpserver

import (
	"context"
	"errors"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/mark3labs/mcp-go/mcp"

	"github.com/toolhost/toolhost/builtin"
	"github.com/toolhost/toolhost/guard"
	"github.com/toolhost/toolhost/guard/hostprogram"
	"github.com/toolhost/toolhost/guard/privatedir"
	"github.com/toolhost/toolhost/guard/sandbox"
	"github.com/toolhost/toolhost/guard/sandbox/baseline"
	"github.com/toolhost/toolhost/guard/settings"
	"github.com/toolhost/toolhost/resultstore"
)

// A policies holds the rules in force for each principal, compiled from the current settings.
type policies struct {
	cfg      *Config
	where    settings.Config
	settings *settings.Watcher
	reloads  reloads
	tools    *toolset
	reloaded func() // called after the settings have changed
	// hostCommands returns the command lines of other servers that run outside of the sandbox.
	hostCommands func(*settings.Settings) []guard.HostCommand
	runtime      *builtin.Runtime
	results      *resultstore.Store
	scratch      string
	private      *privatedir.Store                                            // nil if no state is kept
	planted      func(path string, link fs.FileInfo) (planted, replaces bool) // see [guard.Config.Planted]
	children     *children
	roots        callerRoots
	log          *slog.Logger

	compiled sync.Map      // principal, and the worktree it works in → compiledPolicy
	denyAll  *guard.Policy // for a principal for which rules could never be compiled

	mu            sync.Mutex
	compiledCount int                // entries of compiled
	warned        *settings.Settings // the settings whose warnings were logged
	// listed holds the digest of each list, keyed by the notification of its changes. listeners are called when a list
	// changes.
	listed    map[string]string
	listeners []func(method string)
}

// A compiledPolicy is the rules in force for a principal, and the settings that they were compiled from.
type compiledPolicy struct {
	settings *settings.Settings
	policy   *guard.Policy
	whole    bool // the directory of the principal's results is known
}

// open reads the settings.
func (p *policies) open(state string, baseline *baseline.Keeper) (err error) {
	if p.where, err = SettingsConfig(*p.cfg); err != nil {
		return err
	}
	p.where.StateDir = state
	baseline.Recover(p.where.Roots) // before the settings are read: a command may have planted some
	p.where.Withheld, p.where.Settled = baseline.Withheld, baseline.Settle().Settled
	p.planted = baseline.Settle().Planted
	if p.settings, err = settings.Watch(p.where, nil); err != nil {
		return err
	}
	p.scratch = scratchDir(p.cfg.Roots)
	hostprogram.Distrust(p.scratch)
	if state != "" {
		p.private = privatedir.Open(filepath.Join(state, "private"))
	}
	return nil
}

// start compiles the rules of the local principal, so that errors appear when the host is opened. The rules are used
// until the settings change.
func (p *policies) start() (*guard.Policy, error) {
	now := p.settings.Current()
	rules, err := p.compile(now, LocalPrincipal, nil)
	if err != nil {
		return nil, err
	}
	p.checkHostCommands(rules)
	p.listed = map[string]string{mcp.MethodNotificationToolsListChanged: p.tools.digest(rules)}
	p.compiled.Store(LocalPrincipal, compiledPolicy{settings: now, policy: rules})
	p.compiledCount++
	p.denyAll = rules.Refusing(errors.New("the rules could not be compiled; the log says why"))
	return rules, nil
}

// of returns the rules in force for a principal, compiled again if the settings have changed since its last call.
func (p *policies) of(principal string) *guard.Policy {
	return p.at(p.settings.Reload(), principal)
}

// forCall is of for a call, which may share the reload of another call. If tree is not nil, the call works in that
// worktree.
func (p *policies) forCall(a *Admission, tree *builtin.Worktree) *guard.Policy {
	if p.reloads.serves(a.reloads) {
		return p.in(tree, p.settings.Current(), a.principal)
	}
	n := p.reloads.begin()
	now := p.settings.Reload()
	p.reloads.done(n)
	return p.in(tree, now, a.principal)
}

// at returns the rules for a principal under these settings or newer ones.
func (p *policies) at(now *settings.Settings, principal string) *guard.Policy {
	return p.in(nil, now, principal)
}

// in is at for a principal that works in a worktree, or in the roots of the host if tree is nil.
func (p *policies) in(tree *builtin.Worktree, now *settings.Settings, principal string) *guard.Policy {
	place := principal
	if tree != nil {
		place += "\x00" + tree.Name
	}
	if was := p.last(place); was.settings == now && was.whole {
		return was.policy
	}
	p.mu.Lock() // two policies compiled from the same settings would count as different rules
	defer p.mu.Unlock()
	now = p.settings.Current() // newer if another call compiled first
	was := p.last(place)
	rules := was.policy
	if was.settings != now {
		compiled, err := p.compile(now, principal, tree)
		if err != nil {
			p.log.Error("the rules could not be compiled, the last ones stay in force", "error", err)
			now, compiled = was.settings, was.policy
		}
		rules = compiled
	}
	if rules == nil {
		return p.denyAll
	}
	// The directory of the results never moves, so its path is looked up once; saving a result recreates it if it is
	// missing. If it does not exist yet, there is nothing to read, and the next call looks again.
	caller := guard.Caller{Remote: p.cfg.Remote}
	dir := p.results.For(principal).Dir()
	if dir != "" {
		caller.Own = []string{dir}
	}
	if !isAgent(principal) { // an agent's list is shorter, and ends with the agent
		p.noteList(rules)
	}
	c := compiledPolicy{settings: now, policy: rules.For(caller), whole: dir != ""}
	if was.policy == nil {
		p.evict()
	}
	p.compiled.Store(place, c)
	return c.policy
}

// maxPolicies is the number of principals whose rules are cached.
const maxPolicies = 1024

// evict drops the rules of half of the principals if there are too many. The caller holds the lock.
func (p *policies) evict() {
	if p.compiledCount++; p.compiledCount <= maxPolicies {
		return
	}
	p.compiled.Range(func(principal, _ any) bool {
		p.compiled.Delete(principal)
		p.compiledCount--
		return p.compiledCount > maxPolicies/2
	})
}

// last returns the rules that were last compiled for a principal in a place, or the zero value.
func (p *policies) last(place string) compiledPolicy {
	last, _ := p.compiled.Load(place)
	b, _ := last.(compiledPolicy)
	return b
}

// checkHostCommands logs which command lines of the host are not run before a person agrees.
func (p *policies) checkHostCommands(rules *guard.Policy) {
	for _, err := range rules.Commands().CheckHostCommands() {
		p.log.Warn(err.Error())
	}
}

// compile compiles the settings, and logs each problem in them once. The caller holds the lock.
func (p *policies) compile(s *settings.Settings, principal string, tree *builtin.Worktree) (*guard.Policy, error) {
	own := p.narrow(s, principal)
	if own == nil {
		return p.denyAll.Refusing(errAgentEnded), nil
	}
	root := p.roots.of(p.children.caller(principal))
	if root != "" {
		own = p.rooted(own, root)
	}
	cfg := p.guardConfig(own, func() guard.Containment { return p.containment(own) })
	if root != "" {
		cfg.Others, cfg.Roots, cfg.ExplicitRoots = p.others(), []string{root}, true
	}
	cfg = inWorktree(tree, cfg)
	cfg.Scratch, cfg.Private = scratchOf(p.scratch, principal), p.private.Of(principal)
	cfg.HostCommands, cfg.Hooks = p.hostCommands(s), principal == builtin.HookPrincipal
	cfg.Planted = p.planted
	rules, err := guard.New(cfg)
	if err != nil {
		return nil, err
	}
	if p.warned != s {
		if p.warned != nil {
			p.checkHostCommands(rules)
			go p.reloaded()
		}
		p.warned = s
		for _, w := range rules.Warnings() {
			p.log.Warn(w)
		}
		for _, d := range p.sharedDenies(rules) {
			p.log.Warn(d.String(), "remedy", d.Remedy())
		}
	}
	if p.cfg.Refuse != nil {
		return rules.Refusing(p.cfg.Refuse), nil
	}
	return rules, nil
}

// sharedDenies returns the deny rules that remove a tool of this host but may be meant for Claude Code.
func (p *policies) sharedDenies(rules *guard.Policy) []guard.SharedDeny {
	var names []string
	for _, d := range p.tools.own {
		if d.Enabled(p.runtime) {
			names = append(names, d.Name)
		}
	}
	return rules.SharedDenies(p.where, names)
}

// noteList calls the listeners with the notification of each list that has changed. The caller holds the lock.
func (p *policies) noteList(rules *guard.Policy) {
	for method, digest := range map[string]string{
		mcp.MethodNotificationToolsListChanged:     p.tools.digest(rules),
		mcp.MethodNotificationPromptsListChanged:   p.tools.now().Prompts,
		mcp.MethodNotificationResourcesListChanged: p.tools.now().Resources,
	} {
		if digest == p.listed[method] {
			continue
		}
		p.listed[method] = digest
		for _, tell := range p.listeners {
			go tell(method)
		}
	}
}

// onList registers tell, which is called with the notification of each list that has changed.
func (p *policies) onList(tell func(method string)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.listeners = append(p.listeners, tell)
}

// follow reloads the settings when they change, not only at the next request. Changes to neighbouring files then wake
// the host too, so follow starts only once a client listens.
func (p *policies) follow() {
	p.settings.Follow(func(now *settings.Settings) { p.at(now, LocalPrincipal) })
}

// SettingsConfig returns the locations of the settings of a host with this configuration.
func SettingsConfig(cfg Config) (settings.Config, error) {
	cfg, err := cfg.complete()
	if err != nil {
		return settings.Config{}, err
	}
	home, _ := os.UserHomeDir() // without a home directory its settings are left out
	user, _ := os.UserConfigDir()
	return settings.Config{
		Roots: cfg.Roots, Home: home, UserConfigDir: user, StateDir: cfg.StateDir,
		Files: cfg.Settings, Allow: cfg.Allow, Deny: cfg.Deny, TrustWorkspace: cfg.TrustWorkspace,
		TrustDigest: cfg.TrustDigest, Log: cfg.Log,
	}, nil
}

// containment returns the containment of commands under these settings.
func (p *policies) containment(s *settings.Settings) guard.Containment {
	if !s.Sandbox.Enabled {
		return guard.Containment{Why: "sandbox.enabled is false"}
	}
	return p.runtime.Containment()
}

// guardConfig returns the input for compiling the rules. contain is called when the first command is judged.
func (p *policies) guardConfig(s *settings.Settings, contain func() guard.Containment) guard.Config {
	cfg := p.where
	files := slices.Concat(cfg.Names(), p.cfg.Obeyed)
	if cfg.UserConfigDir != "" {
		files = append(files, filepath.Join(cfg.UserConfigDir, "toolhost"))
	}
	if p.cfg.Contained {
		contained := *s
		contained.Sandbox.AllowUnsandboxedCommands, contained.Sandbox.ExcludedCommands = false, nil
		s = &contained
	}
	if p.cfg.CopyOf != "" {
		s = withCopied(s, cfg.Roots[0], p.cfg.CopyOf)
	}
	own := p.cfg.OwnFiles
	if p.cfg.AuditLog != "" {
		own = append(slices.Clip(own), p.cfg.AuditLog)
	}
	g := guard.Config{
		Roots: cfg.Roots, ExplicitRoots: p.cfg.RootsNamed, Home: cfg.Home, StateDir: p.cfg.StateDir,
		RuleFiles: files, OwnFiles: own, Settings: s, Contain: contain, Scratch: p.scratch,
		ExecGate: func() error { return execGate(contain()) },
	}
	if p.cfg.CopyOf != "" {
		g.Copy, g.CopyOf, g.Originals = cfg.Roots[0], p.cfg.CopyOf, []string{p.cfg.CopyOf}
	}
	return g
}

// withCopied returns the settings of a copy of a work tree. Deny and ask rules that are anchored in the copy are also
// anchored in the work tree.
func withCopied(s *settings.Settings, tree, of string) *settings.Settings {
	both := *s
	for _, list := range []*[]settings.Entry{&both.Deny, &both.Ask, &both.Sandbox.Filesystem.DenyRead} {
		for _, e := range slices.Clone(*list) {
			if e.Root == tree {
				e.Root = of
				*list = append(slices.Clip(*list), e)
			}
		}
	}
	return &both
}

// execGate returns nil if the programs of commands, contained or not, are judged when they start, and otherwise the
// reason.
func execGate(held guard.Containment) error {
	if err := sandbox.ExecGateWorks(sandbox.None); err != nil {
		return err
	}
	return sandbox.ExecGateWorks(sandbox.Backend(held.Name))
}

// A reloads lets calls that arrived together share one reload of the settings. A reload that began after a call arrived
// shows everything that the call must see, unless something that ran since then may have changed the settings.
type reloads struct {
	begun   atomic.Uint64
	ended   atomic.Uint64 // the number of the latest reload that has ended
	expired atomic.Uint64 // the value of begun when something that may have changed the settings had run
}

// begin returns the number of a reload that begins now.
func (r *reloads) begin() uint64 { return r.begun.Add(1) }

// done records that a reload has ended.
func (r *reloads) done(n uint64) { raise(&r.ended, n) }

// afterCall is deferred for each call that the gate let run. A call that ran exclusively, or its hooks, may have
// changed the settings, and the next call must see that. call is a pointer because hooks may replace the call.
func (r *reloads) afterCall(call **builtin.Call) {
	if *call == nil || !(*call).ConcurrencySafe {
		r.expire()
	}
}

// expire records that the settings may have changed.
func (r *reloads) expire() { raise(&r.expired, r.begun.Load()) }

// serves reports whether a completed reload is recent enough for a call. arrived is the number of reloads that had
// begun when the call arrived.
func (r *reloads) serves(arrived uint64) bool {
	return r.ended.Load() > max(arrived, r.expired.Load())
}

func raise(to *atomic.Uint64, n uint64) {
	for was := to.Load(); was < n && !to.CompareAndSwap(was, n); was = to.Load() {
	}
}

// rulesFor returns the rules for a call, for its worktree and its mode.
func rulesFor(ctx context.Context, h *Host, a *Admission) (*guard.Policy, error) {
	tree, err := h.runtime.Worktree(ctx, a.scope.Dir, a.scope.Conversation())
	if err != nil {
		return nil, err
	}
	if isAgent(a.principal) {
		tree = h.children.worktree(a)
	}
	return h.modes.policy(h.policies.forCall(a, tree), a.scope), nil
}

// worktree returns the worktree that a call works in, or nil.
func (c *children) worktree(a *Admission) *builtin.Worktree {
	if one := c.of(a.principal); one != nil { // an agent works where it was started
		return one.spec.Worktree
	}
	return a.scope.Dir.Worktree()
}

// inWorktree returns the configuration of the guard for work in a worktree. The rules of the workspace, as trusted by a
// person, apply there; settings files in the worktree are ignored.
func inWorktree(tree *builtin.Worktree, cfg guard.Config) guard.Config {
	if tree == nil {
		return cfg
	}
	cfg.Copy, cfg.CopyOf, cfg.Originals = tree.Tree(), tree.Source, slices.Concat(cfg.Roots, cfg.Originals)
	cfg.Roots, cfg.ExplicitRoots = tree.Roots(cfg.Roots), true
	return cfg
}
