package mcpserver

import (
	"os"
	"path/filepath"
	"slices"

	"github.com/toolhost/toolhost/guard"
	"github.com/toolhost/toolhost/guard/sandbox"
	"github.com/toolhost/toolhost/guard/settings"
)

// The rules in force for each principal, of the settings as they are.

// compiledPolicy are the rules in force for a principal, and the settings they were made of.
type compiledPolicy struct {
	settings *settings.Settings
	policy   *guard.Policy
	whole    bool // the directory of the principal's results is known
}

// policy is the snapshot of the rules in force for a principal, compiled when the settings have changed since its
// last call.
func (h *Host) policy(principal string) *guard.Policy {
	return h.policyOf(h.settings.Reload(), principal)
}

// policyFor is policy for a call, which may make do with the look of another.
func (h *Host) policyFor(a *Admission) *guard.Policy {
	if h.reloads.serves(a.reloads) {
		return h.policyOf(h.settings.Current(), a.principal)
	}
	n := h.reloads.begin()
	now := h.settings.Reload()
	h.reloads.done(n)
	return h.policyOf(now, a.principal)
}

func (h *Host) policyOf(now *settings.Settings, principal string) *guard.Policy {
	if was := h.boundTo(principal); was.settings == now && was.whole && was.policy.Current() {
		return was.policy
	}
	h.mu.Lock() // two policies of the same settings would count as different rules
	defer h.mu.Unlock()
	now = h.settings.Current() // which are newer if others were faster
	was := h.boundTo(principal)
	rules := was.policy
	if was.settings != now || !was.policy.Current() {
		compiled, err := h.compile(now, principal)
		if err != nil {
			h.log.Error("the rules could not be compiled, the last ones stay in force", "error", err)
			now, compiled = was.settings, was.policy
		}
		rules = compiled
	}
	if rules == nil {
		return h.denyAll
	}
	// The directory of the results stays where it is, so it is asked for once: a result that is kept makes it
	// again if it is gone. Without one there is nothing to read, and the next call asks again.
	caller := guard.Caller{Principal: principal, Remote: h.cfg.Remote}
	dir := h.results.For(principal).Dir()
	if dir != "" {
		caller.Own = []string{dir}
	}
	h.noteList(rules)
	b := compiledPolicy{settings: now, policy: rules.For(caller), whole: dir != ""}
	if was.policy == nil {
		h.makeRoom()
	}
	h.bound.Store(principal, b)
	return b.policy
}

// maxBound is for how many principals rules are kept compiled.
const maxBound = 1024

// makeRoom forgets the rules of half of the principals when there are too many. The caller holds the lock.
func (h *Host) makeRoom() {
	if h.bounds++; h.bounds <= maxBound {
		return
	}
	h.bound.Range(func(principal, _ any) bool {
		h.bound.Delete(principal)
		h.bounds--
		return h.bounds > maxBound/2
	})
}

// boundTo is what is bound to a principal, nothing at first.
func (h *Host) boundTo(principal string) compiledPolicy {
	last, _ := h.bound.Load(principal)
	b, _ := last.(compiledPolicy)
	return b
}

// compile makes rules of settings, and tells once what is wrong with them. The caller holds the lock.
func (h *Host) compile(s *settings.Settings, principal string) (*guard.Policy, error) {
	cfg := h.guardConfig(s, func() guard.Containment { return h.containment(s) })
	cfg.Scratch, cfg.Private = scratchOf(h.scratch, principal), h.private.Of(principal)
	rules, err := guard.New(cfg)
	if err != nil {
		return nil, err
	}
	if h.warned != s {
		h.warned = s
		for _, w := range rules.Warnings() {
			h.log.Warn(w)
		}
		for _, d := range h.sharedDenies(rules) {
			h.log.Warn(d.String(), "remedy", d.Remedy())
		}
	}
	return rules, nil
}

// sharedDenies are the denies meant for Claude Code, perhaps, that take a tool of this host away.
func (h *Host) sharedDenies(rules *guard.Policy) []guard.SharedDeny {
	var names []string
	for _, d := range h.tools {
		if d.Enabled(h.box) {
			names = append(names, d.Name)
		}
	}
	return rules.SharedDenies(h.where, names)
}

// SettingsConfig says where the settings of a host with this configuration are.
func SettingsConfig(cfg Config) (settings.Config, error) {
	cfg, err := cfg.complete()
	if err != nil {
		return settings.Config{}, err
	}
	home, _ := os.UserHomeDir() // without one its settings are left out
	user, _ := os.UserConfigDir()
	return settings.Config{
		Roots: cfg.Roots, Home: home, UserConfigDir: user, StateDir: cfg.StateDir,
		Files: cfg.Settings, Allow: cfg.Allow, Deny: cfg.Deny, TrustWorkspace: cfg.TrustWorkspace, Log: cfg.Log,
	}, nil
}

// containment is what holds commands under these settings.
func (h *Host) containment(s *settings.Settings) guard.Containment {
	if !s.Sandbox.Enabled {
		return guard.Containment{Why: "sandbox.enabled is false"}
	}
	return h.box.Containment()
}

// guardConfig is what the rules are made of. What contains commands is asked for when the first is judged.
func (h *Host) guardConfig(s *settings.Settings, contain func() guard.Containment) guard.Config {
	cfg := h.where
	files := slices.Concat(cfg.Names(), h.cfg.Obeyed)
	if cfg.UserConfigDir != "" {
		files = append(files, filepath.Join(cfg.UserConfigDir, "toolhost"))
	}
	own := h.cfg.OwnFiles
	if h.cfg.AuditLog != "" {
		own = append(slices.Clip(own), h.cfg.AuditLog)
	}
	return guard.Config{
		Roots: cfg.Roots, ExplicitRoots: h.cfg.Named, Home: cfg.Home, StateDir: h.cfg.StateDir,
		RuleFiles: files, OwnFiles: own, Settings: s, Contain: contain, Scratch: h.scratch, Absent: &h.absent,
		ExecGate: func() error { return execGate(contain()) },
	}
}

// execGate says why the programs of commands are not judged when they start: of those that something contains, and of those that run
// outside of it all the same.
func execGate(held guard.Containment) error {
	if err := sandbox.ExecGateWorks(sandbox.None); err != nil {
		return err
	}
	return sandbox.ExecGateWorks(sandbox.Backend(held.Name))
}
