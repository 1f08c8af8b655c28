// Package mcpserver serves the tools over MCP. It owns the pipeline that every call goes through, the scopes
// whose state calls work on, and the two transports; it is the only package that knows the MCP library.
package mcpserver

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"toolhost/builtin"
	"toolhost/guard"
	"toolhost/guard/hook"
	"toolhost/guard/settings"
	"toolhost/mcpserver/audit"
	"toolhost/mcpserver/auth"
	"toolhost/mcpserver/internal/gate"
	"toolhost/mcpserver/internal/statedir"
	"toolhost/readstate"
	"toolhost/resultstore"
)

// A Host holds what all calls share. Use [Open], and close it: what it started ends with it.
type Host struct {
	cfg        Config
	log        *slog.Logger
	tools      []*builtin.Def // ordered by name
	where      settings.Config
	unkept     error // why the state directory is not used; nil: it is
	scratch    string
	settings   *settings.Watcher
	looks      looks // at the settings
	seen       *readstate.Store
	results    *resultstore.Store
	box        *builtin.Toolbox
	scopes     *scopeTable
	hooks      *hook.Runner
	questions  *questions
	audit      *audit.Log
	stateProbe stateProbe
	observers  observers
	counts     counts
	// uncontained is set once a command has run that nothing held and no person approved.
	uncontained atomic.Bool

	bound   sync.Map      // principal → bound
	nothing *guard.Policy // for a principal for whom no rules could ever be compiled: it denies everything

	mu     sync.Mutex
	bounds int                // how many are in bound
	warned *settings.Settings // whose warnings were logged
}

// Open starts a host. Its errors are those of a configuration that cannot be served; what is merely
// missing, such as a writable state directory, is done without and logged.
func Open(cfg Config) (*Host, error) {
	cfg, err := cfg.complete()
	if err != nil {
		return nil, err
	}
	tools, err := served(cfg)
	if err != nil {
		return nil, err
	}
	h := &Host{cfg: cfg, log: cfg.Log, tools: tools, questions: newQuestions(), observers: observers{all: cfg.Observers}}
	if err := h.open(); err != nil {
		h.Close()
		return nil, err
	}
	return h, nil
}

func (h *Host) open() error {
	state := h.cfg.StateDir
	if h.unkept = statedir.Open(state); h.unkept != nil {
		h.log.Warn("the state directory cannot be used: nothing outlives this process", "error", h.unkept)
		state = ""
	}
	var err error
	if h.where, err = SettingsConfig(h.cfg); err != nil {
		return err
	}
	h.where.StateDir = state
	if h.settings, err = settings.Watch(h.where, nil); err != nil {
		return err
	}
	if err := h.openAudit(state); err != nil {
		return err
	}
	if err := h.openToolbox(state); err != nil {
		return err
	}
	if h.seen, err = readstate.Open(readstate.Config{Dir: below(state, "readstate"), Logger: h.log}); err != nil {
		h.log.Warn("what is read is known until this process ends only", "error", err)
		if h.seen, err = readstate.Open(readstate.Config{Logger: h.log}); err != nil {
			return err
		}
	}
	if h.results, err = resultstore.Open(resultstore.Config{Dir: below(state, "results")}); err != nil {
		return err
	}
	h.hooks = h.newHookRunner()
	key, err := statedir.Secret(state, "secret")
	if err != nil {
		h.log.Warn("session handles end with this process", "error", err)
	}
	h.scopes = newScopeTable(scopeConfig{seen: h.seen, gate: h.gateOptions, secret: key, keys: scopeKeys(h.cfg.ScopeKeys), strict: h.cfg.StrictScope})
	// Here it shows what cannot be served. What was compiled is used, unless the settings change before the first call.
	now := h.settings.Current()
	rules, err := h.compile(now, LocalPrincipal)
	if err != nil {
		return err
	}
	h.bound.Store(LocalPrincipal, bound{settings: now, policy: rules})
	h.bounds++
	h.nothing = rules.Refusing(errors.New("the rules could not be compiled; the log says why"))
	return nil
}

// openToolbox opens what the tools work with.
func (h *Host) openToolbox(state string) (err error) {
	h.scratch = scratchDir(h.cfg.Roots)
	cfg := builtin.ToolboxConfig{StateDir: state, Scratch: h.scratch, Search: h.settings.Current().Search, Log: h.log}
	if h.cfg.Ahead {
		cfg.Root = h.cfg.Roots[0]
	}
	h.box, err = builtin.OpenToolbox(cfg)
	return err
}

// Warm starts ahead of the first command what a principal's commands run in. It may take a moment.
func (h *Host) Warm(principal string) {
	if err := h.box.Warm(context.Background(), principal, h.policy(principal)); err != nil {
		h.log.Warn("the sandbox could not be started ahead", "error", err)
	}
}

// Close ends everything the host started: commands first, then the stores.
func (h *Host) Close() error {
	var errs []error
	if h.hooks != nil {
		h.hooks.Close()
	}
	if h.box != nil {
		errs = append(errs, h.box.Close())
	}
	if h.seen != nil {
		errs = append(errs, h.seen.Close())
	}
	if h.results != nil {
		errs = append(errs, h.results.Close())
	}
	if h.settings != nil {
		errs = append(errs, h.settings.Close())
	}
	errs = append(errs, h.audit.Close())
	return errors.Join(errs...)
}

// Arrive takes the place of a call in its scope. It never blocks, so that the reader of a transport can
// call it: the order of arrival is the order of the calls. session is the MCP session, if there is one.
func (h *Host) Arrive(who auth.Identity, meta map[string]any, session string, stdio bool) *Arrival {
	s, minted, err := h.scopes.resolve(who.Principal, meta, session, stdio)
	if err != nil {
		return &Arrival{principal: who.Principal, began: time.Now(), err: err}
	}
	a := h.arriveIn(s, who.Rights)
	a.session = minted
	return a
}

func (h *Host) arriveIn(s *scope, rights auth.Rights) *Arrival {
	return &Arrival{principal: s.key.principal, rights: rights, began: time.Now(), look: h.looks.begun.Load(), scope: s, ticket: s.gate.Arrive()}
}

// arriveAgain takes the place of a call that is repeated with an answer: in the same scope, also one made for it.
func (h *Host) arriveAgain(a *Arrival) *Arrival {
	again := h.arriveIn(a.scope, a.rights)
	again.session = a.session
	return again
}

// bound are the rules in force for a principal, and the settings they were made of.
type bound struct {
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
func (h *Host) policyFor(a *Arrival) *guard.Policy {
	if h.looks.serves(a.look) {
		return h.policyOf(h.settings.Current(), a.principal)
	}
	n := h.looks.begin()
	now := h.settings.Reload()
	h.looks.done(n)
	return h.policyOf(now, a.principal)
}

func (h *Host) policyOf(now *settings.Settings, principal string) *guard.Policy {
	if was := h.boundTo(principal); was.settings == now && was.whole {
		return was.policy
	}
	h.mu.Lock() // two policies of the same settings would count as different rules
	defer h.mu.Unlock()
	now = h.settings.Current() // which are newer if others were faster
	was := h.boundTo(principal)
	rules := was.policy
	if was.settings != now {
		compiled, err := h.compile(now, principal)
		if err != nil {
			h.log.Error("the rules could not be compiled, the last ones stay in force", "error", err)
			now, compiled = was.settings, was.policy
		}
		rules = compiled
	}
	if rules == nil {
		return h.nothing
	}
	// The directory of the results stays where it is, so it is asked for once: a result that is kept makes it
	// again if it is gone. Without one there is nothing to read, and the next call asks again.
	caller := guard.Caller{Principal: principal, Remote: h.cfg.Remote}
	dir := h.results.For(principal).Dir()
	if dir != "" {
		caller.Own = []string{dir}
	}
	b := bound{settings: now, policy: rules.For(caller), whole: dir != ""}
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
func (h *Host) boundTo(principal string) bound {
	last, _ := h.bound.Load(principal)
	b, _ := last.(bound)
	return b
}

// compile makes rules of settings, and tells once what is wrong with them. The caller holds the lock.
func (h *Host) compile(s *settings.Settings, principal string) (*guard.Policy, error) {
	cfg := h.guardConfig(s, func() guard.Containment { return h.containment(s) })
	cfg.Scratch = scratchOf(h.scratch, principal)
	rules, err := guard.New(cfg)
	if err != nil {
		return nil, err
	}
	if h.warned != s {
		h.warned = s
		for _, w := range rules.Warnings() {
			h.log.Warn(w)
		}
	}
	return rules, nil
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
	files := slices.Clone(cfg.Files)
	if cfg.UserConfigDir != "" {
		files = append(files, filepath.Join(cfg.UserConfigDir, "toolhost"))
	}
	return guard.Config{
		Roots: cfg.Roots, ExplicitRoots: h.cfg.Named, Home: cfg.Home, StateDir: h.cfg.StateDir,
		RuleFiles: files, Settings: s, Contain: contain, Scratch: h.scratch,
	}
}

// gateOptions are the settings of a scope's gate, read when the scope begins.
func (h *Host) gateOptions() gate.Options {
	s := h.settings.Current()
	return gate.Options{Parallel: s.Gate.Parallel, KeepSiblings: !s.Gate.SiblingAbort}
}

// openAudit opens the log that was asked for, or else the one in the state directory as far as that goes.
func (h *Host) openAudit(state string) error {
	path := h.cfg.AuditLog
	if path == "" && state == "" {
		return nil
	}
	if path == "" {
		path = filepath.Join(state, "audit.jsonl")
	}
	log, err := audit.Open(audit.Config{
		Path: path, MaxSize: h.cfg.AuditMaxSize, Keep: h.cfg.AuditKeep, Optional: h.cfg.AuditLog == "",
		Warn: func(err error) { h.log.Warn("the audit log is not rotated", "error", err) },
	})
	if err != nil && h.cfg.AuditLog == "" {
		h.log.Warn("calls are not recorded", "error", err)
		return nil
	}
	h.audit = log
	return err
}

// served are the tools that were asked for by name, or all, and those of the extension; ordered by name.
func served(cfg Config) ([]*builtin.Def, error) {
	tools := builtin.All()
	if len(cfg.Tools) > 0 {
		tools = slices.DeleteFunc(tools, func(d *builtin.Def) bool { return !slices.Contains(cfg.Tools, d.Name) })
	}
	for _, t := range cfg.Extension.Tools {
		d, err := t.def()
		if err != nil {
			return nil, err
		}
		tools = append(tools, d)
	}
	slices.SortFunc(tools, func(a, b *builtin.Def) int { return strings.Compare(a.Name, b.Name) })
	return tools, nil
}

func below(dir, name string) string {
	if dir == "" {
		return ""
	}
	return filepath.Join(dir, name)
}

// headline names a call in one short line, as "Bash(make test)".
func headline(tool, command string) string {
	const longest = 60
	line, _, _ := strings.Cut(command, "\n")
	if r := []rune(line); len(r) > longest {
		line = string(r[:longest]) + "…"
	}
	return fmt.Sprintf("%s(%s)", tool, line)
}
