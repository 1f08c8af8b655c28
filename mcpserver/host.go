// Package mcpserver serves the tools over MCP. It owns the pipeline that every call goes through, the scopes
// whose state calls work on, and the two transports; it is the only package that knows the MCP library.
package mcpserver

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/toolhost/toolhost/builtin"
	"github.com/toolhost/toolhost/guard"
	"github.com/toolhost/toolhost/guard/hook"
	"github.com/toolhost/toolhost/guard/privatedir"
	"github.com/toolhost/toolhost/guard/sandbox/baseline"
	"github.com/toolhost/toolhost/guard/settings"
	"github.com/toolhost/toolhost/mcpserver/audit"
	"github.com/toolhost/toolhost/mcpserver/auth"
	"github.com/toolhost/toolhost/mcpserver/internal/gate"
	"github.com/toolhost/toolhost/mcpserver/internal/question"
	"github.com/toolhost/toolhost/mcpserver/internal/statedir"
	"github.com/toolhost/toolhost/mcpserver/observe"
	"github.com/toolhost/toolhost/mcpserver/scope"
	"github.com/toolhost/toolhost/readstate"
	"github.com/toolhost/toolhost/resultstore"
)

// A Host holds what all calls share. Use [Open], and close it: what it started ends with it.
type Host struct {
	cfg         Config
	log         *slog.Logger
	tools       []*builtin.Def // ordered by name
	where       settings.Config
	stateDirErr error // why the state directory is not used; nil: it is
	scratch     string
	private     *privatedir.Store // nil where no state is kept
	baseline    *baseline.Keeper
	settings    *settings.Watcher
	reloads     reloads // at the settings
	seen        *readstate.Store
	results     *resultstore.Store
	box         *builtin.Toolbox
	scopes      *scope.Table
	hooks       *hook.Runner
	questions   *question.Book
	always      always
	suspensions suspensions
	audit       *audit.Log
	stateProbe  stateProbe
	observers   *observe.Observers
	counts      counts
	// uncontained is set once a command has run that nothing held and no person approved.
	uncontained atomic.Bool
	hooksLoose  sync.Once // says that hooks run uncontained that should not

	bound   sync.Map // principal → bound
	absent  guard.AbsentFiles
	denyAll *guard.Policy // for a principal for whom no rules could ever be compiled: it denies everything

	mu     sync.Mutex
	bounds int                // how many are in bound
	warned *settings.Settings // whose warnings were logged
	// listed are the tools that the rules leave on the list, and listeners are told when they have become others.
	listed    []string
	listeners []func()
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
	h := &Host{cfg: cfg, log: cfg.Log, tools: tools, questions: question.New(), observers: observe.New(cfg.Observers)}
	if err := h.open(); err != nil {
		h.Close()
		return nil, err
	}
	return h, nil
}

func (h *Host) open() error {
	state := h.cfg.StateDir
	if h.stateDirErr = statedir.Open(state); h.stateDirErr != nil {
		h.log.Warn("the state directory cannot be used: nothing outlives this process", "error", h.stateDirErr)
		state = ""
	}
	var err error
	if h.where, err = SettingsConfig(h.cfg); err != nil {
		return err
	}
	h.where.StateDir = state
	h.baseline = baseline.Open(state, h.log)
	h.baseline.Recover(h.where.Roots) // before settings are read: a command may have left some
	h.where.Withheld = h.baseline.Withheld
	if h.settings, err = settings.Watch(h.where, nil); err != nil {
		return err
	}
	h.scratch = scratchDir(h.cfg.Roots)
	if state != "" {
		h.private = privatedir.Open(filepath.Join(state, "private"))
	}
	if err := h.openToolbox(state); err != nil {
		return err
	}
	// Here it shows what cannot be served. What was compiled is used, unless the settings change before the first call.
	now := h.settings.Current()
	rules, err := h.compile(now, LocalPrincipal)
	if err != nil {
		return err
	}
	for _, file := range h.ownFiles() {
		if err := rules.PlantedLink(file); err != nil {
			return err
		}
	}
	if err := h.openAudit(state, rules); err != nil {
		return err
	}
	if h.seen, err = readstate.Open(readstate.Config{Dir: below(state, "readstate"), Logger: h.log}); err != nil {
		h.log.Warn("what is read is known until this process ends only", "error", err)
		if h.seen, err = readstate.Open(readstate.Config{Logger: h.log}); err != nil {
			return err
		}
	}
	if h.results, err = resultstore.Open(resultstore.Config{Dir: below(state, "results"), Log: h.log}); err != nil {
		return err
	}
	h.hooks = h.newHookRunner()
	key, err := statedir.Secret(state, "secret")
	if err != nil {
		h.log.Warn("session handles end with this process", "error", err)
	}
	h.scopes = scope.New(scope.Config{Seen: h.seen, Gate: h.gateOptions, Secret: key, Keys: h.cfg.ScopeKeys, Strict: h.cfg.StrictScope})
	h.listed = h.enabled(rules)
	h.bound.Store(LocalPrincipal, compiledPolicy{settings: now, policy: rules})
	h.bounds++
	h.denyAll = rules.Refusing(errors.New("the rules could not be compiled; the log says why"))
	return nil
}

// openToolbox opens what the tools work with.
func (h *Host) openToolbox(state string) (err error) {
	cfg := builtin.ToolboxConfig{StateDir: state, Scratch: h.scratch, Private: h.private, Baseline: h.baseline, Search: h.settings.Current().Search, Log: h.log}
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
	if h.cfg.Warmed != nil {
		h.cfg.Warmed()
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

// Admit takes the place of a call in its scope. It never blocks, so that the reader of a transport can
// call it: the order of arrival is the order of the calls. session is the MCP session, if there is one.
func (h *Host) Admit(who auth.Identity, meta map[string]any, session string, stdio bool) *Admission {
	s, minted, err := h.scopes.Resolve(who.Principal, meta, session, stdio)
	if err != nil {
		return &Admission{principal: who.Principal, began: time.Now(), err: err}
	}
	a := h.admitTo(s, who.Rights)
	a.session = minted
	return a
}

func (h *Host) admitTo(s *scope.Scope, rights auth.Rights) *Admission {
	return &Admission{principal: s.Principal(), rights: rights, began: time.Now(), reloads: h.reloads.begun.Load(), scope: s, ticket: s.Gate.Arrive()}
}

// readmit takes the place of a call that is repeated with an answer: in the same scope, also one made for it.
func (h *Host) readmit(a *Admission) *Admission {
	again := h.admitTo(a.scope, a.rights)
	again.session = a.session
	return again
}

// gateOptions are the settings of a scope's gate, read when the scope begins.
func (h *Host) gateOptions() gate.Options {
	s := h.settings.Current()
	return gate.Options{Parallel: s.Gate.Parallel, KeepSiblings: !s.Gate.SiblingAbort}
}

// openAudit opens the log that was asked for, or else the one in the state directory as far as that goes.
func (h *Host) openAudit(state string, rules *guard.Policy) error {
	path := h.cfg.AuditLog
	if path == "" && state == "" {
		return nil
	}
	if path == "" {
		path = filepath.Join(state, "audit.jsonl")
	}
	log, err := audit.Open(audit.Config{
		Path: path, MaxSize: h.cfg.AuditMaxSize, Keep: h.cfg.AuditKeep, Optional: h.cfg.AuditLog == "", Exposed: h.cfg.AuditLog != "" && rules.Exposed(path),
		Warn: func(err error) { h.log.Warn("the audit log is not rotated", "error", err) },
	})
	if err != nil && h.cfg.AuditLog == "" {
		h.log.Warn("calls are not recorded", "error", err)
		return nil
	}
	h.audit = log
	return err
}

// ownFiles are the files, outside of the state directory, that the host opens by a name it was given.
func (h *Host) ownFiles() []string {
	own := slices.Concat(h.cfg.OwnFiles, h.cfg.Obeyed)
	if h.cfg.AuditLog != "" {
		own = append(own, h.cfg.AuditLog)
	}
	return own
}

// served returns the tools that were asked for by name, or all, with the custom ones and those of the extension, ordered by name.
func served(cfg Config) ([]*builtin.Def, error) {
	tools := builtin.All()
	if len(cfg.Tools) > 0 {
		tools = slices.DeleteFunc(tools, func(d *builtin.Def) bool { return !slices.Contains(cfg.Tools, d.Name) })
	}
	tools = append(tools, cfg.CustomTools...)
	for _, t := range cfg.Extension.Tools {
		d, err := t.def()
		if err != nil {
			return nil, err
		}
		tools = append(tools, d)
	}
	slices.SortFunc(tools, func(a, b *builtin.Def) int { return strings.Compare(a.Name, b.Name) })
	for i := range len(tools) - 1 {
		if tools[i].Name == tools[i+1].Name {
			return nil, fmt.Errorf("there are two tools of the name %q", tools[i].Name)
		}
	}
	return tools, nil
}

func below(dir, name string) string {
	if dir == "" {
		return ""
	}
	return filepath.Join(dir, name)
}
