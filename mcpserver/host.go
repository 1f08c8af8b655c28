// Package mcpserver serves the tools over MCP. It owns the pipeline that every call goes through, the scopes
// whose state calls work on, and the two transports. It is the only package that knows the MCP library.
//
// A program embeds a host with [Open] and a [Config], and serves it with [NewServer], [Server.ServeStdio] and
// [Server.ServeHTTP]. It adds tools with [builtin.Define] and [Config.CustomTools]. These are stable; the rest of
// what this package and those below it export is for the commands of this module.
package mcpserver

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"path/filepath"
	"time"

	"github.com/toolhost/toolhost/builtin"
	"github.com/toolhost/toolhost/guard/privatefile"
	"github.com/toolhost/toolhost/guard/sandbox"
	"github.com/toolhost/toolhost/guard/sandbox/baseline"
	"github.com/toolhost/toolhost/guard/settings"
	"github.com/toolhost/toolhost/mcpserver/audit"
	"github.com/toolhost/toolhost/mcpserver/auth"
	"github.com/toolhost/toolhost/mcpserver/internal/approvals"
	"github.com/toolhost/toolhost/mcpserver/internal/gateway"
	"github.com/toolhost/toolhost/mcpserver/internal/scope"
	"github.com/toolhost/toolhost/readstate"
	"github.com/toolhost/toolhost/resultstore"
)

// A Host holds the state that all calls share. It is created by [Open]. Close ends everything that it started.
type Host struct {
	cfg         Config
	log         *slog.Logger
	tools       *toolset
	stateDirErr error // why the state directory is not used; nil if it is used
	baseline    *baseline.Keeper
	policies    *policies
	seen        *readstate.Store
	results     *resultstore.Store
	runtime     *builtin.Runtime
	gateway     *gateway.Gateway
	scopes      *scope.Table
	hooks       *hookset
	approvals   *approver
	modes       *modes
	children    *children
	recorder    *recorder
	stateProbe  recent[error]
	counts      counts
	lull        lull // of changes in other servers
	clientTasks clientTasks
}

// Open starts a host. It fails if the configuration cannot be served. If something optional is missing, such as a
// writable state directory, it logs this and works without it.
func Open(cfg Config) (*Host, error) {
	cfg, err := cfg.complete()
	if err != nil {
		return nil, err
	}
	tools, err := newToolset(cfg)
	if err != nil {
		return nil, err
	}
	h := &Host{cfg: cfg, log: cfg.Log, tools: tools}
	h.policies = &policies{cfg: &h.cfg, tools: tools, log: h.log}
	h.policies.reloaded, h.policies.hostCommands = servers{h}.reload, servers{h}.commands
	h.children = newChildren(h)
	h.policies.children, h.tools.agentDirs = h.children, h.policies.agentDirs
	h.tools.skills = h.skills
	h.approvals = &approver{questions: approvals.New(), asker: cfg.Asker, policies: h.policies, log: h.log}
	h.recorder = &recorder{required: cfg.AuditLog != "", observers: audit.NewObservers(cfg.Observers), log: h.log}
	h.approvals.waiting.write = h.recorder.write
	if err := h.open(); err != nil {
		h.Close()
		return nil, err
	}
	return h, nil
}

func (h *Host) open() error {
	state := h.cfg.StateDir
	if h.stateDirErr = openStateDir(state); h.stateDirErr != nil {
		h.log.Warn("cannot use the state directory: state is lost when this process ends", "error", h.stateDirErr)
		state = ""
	}
	h.baseline = baseline.Open(state, h.log)
	if err := h.policies.open(state, h.baseline); err != nil {
		return err
	}
	if err := openTools(h); err != nil {
		return err
	}
	if err := h.openRuntime(state); err != nil {
		return err
	}
	rules, err := h.policies.start()
	if err != nil {
		return err
	}
	for _, file := range h.cfg.ownFiles() {
		if err := rules.PlantedLink(file); err != nil {
			return err
		}
	}
	if err := h.recorder.openAudit(h.cfg, state, rules); err != nil {
		return err
	}
	if h.seen, err = readstate.Open(readstate.Config{Dir: below(state, "readstate"), Logger: h.log}); err != nil {
		h.log.Warn("cannot store the read state: it is lost when this process ends", "error", err)
		if h.seen, err = readstate.Open(readstate.Config{Logger: h.log}); err != nil {
			return err
		}
	}
	if h.results, err = resultstore.Open(resultstore.Config{Dir: below(state, "results")}); err != nil {
		return err
	}
	h.policies.results = h.results
	h.modes = &modes{children: h.children, file: below(state, "modes.json"), host: rand.Text()}
	h.hooks = newHookset(h.policies, state)
	key, err := privatefile.Secret(state, "secret")
	if err != nil {
		h.log.Warn("cannot store the key of session handles: they end with this process", "error", err)
	}
	h.scopes = scope.New(scope.Config{Seen: h.seen, Gate: h.policies.gateOptions, Secret: key, Keys: h.cfg.ScopeKeys,
		Strict: h.cfg.StrictScope})
	h.gateway = servers{h}.open(state)
	return nil
}

// openTools adds the tools that the configuration and the settings ask for.
func openTools(h *Host) error {
	if err := h.tools.include(h.cfg.With); err != nil {
		return fmt.Errorf("--with: %w", err)
	}
	for _, e := range h.policies.settings.Current().ToolsWith {
		if err := h.tools.include([]string{e.Text}); err != nil {
			return fmt.Errorf("tools.with in %s: %w", e.File, err)
		}
	}
	return nil
}

// openRuntime opens the runtime of the tools.
func (h *Host) openRuntime(state string) (err error) {
	set := h.policies.settings.Current()
	cfg := builtin.RuntimeConfig{
		StateDir: state, Scratch: h.policies.scratch, Private: h.policies.private, Baseline: h.baseline,
		Seatbelt: set.Sandbox.Seatbelt,
		Search:   set.Search, CommandWait: h.cfg.CommandWait, Version: h.cfg.Version, Log: h.log,
	}
	h.runtime, err = builtin.OpenRuntime(cfg)
	h.policies.runtime, h.tools.runtime = h.runtime, h.runtime
	if err == nil && h.cfg.Contained {
		h.runtime.PrepareCell()
	}
	return err
}

// Warm prepares a principal's sandbox before the first command. It may take a moment.
func (h *Host) Warm(principal string) {
	keepChanges := h.policies.settings.Current().History.Commands != settings.Off
	if err := h.runtime.Warm(context.Background(), principal, h.policies.of(principal), keepChanges); err != nil {
		h.log.Warn("cannot start the sandbox before the first command", "error", err)
	}
	if h.cfg.OnWarm != nil {
		h.cfg.OnWarm()
	}
}

// Close ends everything the host started: commands first, then the stores.
func (h *Host) Close() error {
	var errs []error
	h.lull.stop()
	h.clientTasks.close()
	if h.gateway != nil {
		h.gateway.Close()
	}
	if h.hooks != nil {
		h.hooks.close()
	}
	if h.runtime != nil {
		errs = append(errs, h.runtime.Close())
	}
	if h.seen != nil {
		errs = append(errs, h.seen.Close())
	}
	if h.results != nil {
		errs = append(errs, h.results.Close())
	}
	if h.policies.settings != nil {
		errs = append(errs, h.policies.settings.Close())
	}
	h.approvals.waiting.close()
	errs = append(errs, h.recorder.audit.Close())
	return errors.Join(errs...)
}

// Log returns the logger of the host.
func (h *Host) Log() *slog.Logger { return h.log }

// Tools returns the tools that a caller sees: those served here, enabled, within its rights, and not denied by name.
func (h *Host) Tools(who auth.Identity) []*builtin.Def {
	return h.tools.listed(h.tools.now(), viewer{policy: h.policies.of(who.Principal), who: who})
}

// Admit enters a call in the queue of its scope. It never blocks, so that the reader of a transport can call it:
// calls are queued in the order of admission. session is the MCP session, if there is one.
func (h *Host) Admit(who auth.Identity, meta map[string]any, session string, stdio bool) *Admission {
	s, minted, err := h.scopes.Resolve(who.Principal, meta, session, stdio)
	if err != nil {
		return &Admission{principal: who.Principal, began: time.Now(), err: err}
	}
	a := h.admitTo(s, who)
	a.session = minted
	return a
}

// AdmitNamed is Admit for a call from the command line. Calls with the same name share their read state, also across
// processes. A call without a name shares nothing.
func (h *Host) AdmitNamed(name string) *Admission {
	if name == "" {
		return h.Admit(Local(), nil, "", true)
	}
	s := h.scopes.Named(LocalPrincipal, name)
	return h.admitTo(s, Local())
}

func (h *Host) admitTo(s *scope.Scope, who auth.Identity) *Admission {
	return &Admission{principal: s.Principal(), who: who, began: time.Now(), reloads: h.policies.reloads.begun.Load(),
		scope: s, ticket: s.Gate.Admit()}
}

// readmit is Admit for a call that is repeated with an answer. It uses the same scope, even if that was created for the
// call.
func (h *Host) readmit(a *Admission) *Admission {
	again := h.admitTo(a.scope, a.who)
	again.session = a.session
	return again
}

// gateOptions returns the settings of a scope's gate. They are read when the scope is created.
func (p *policies) gateOptions() scope.GateOptions {
	s := p.settings.Current()
	return scope.GateOptions{Parallel: s.Gate.Parallel, KeepSiblings: !s.Gate.SiblingAbort}
}

// KeepPort denies the port that the host listens on to the commands of all hosts with this state directory, even after
// this host has ended: otherwise a command could listen there and its clients would connect to it.
func (h *Host) KeepPort(addr net.Addr) {
	if h.stateDirErr != nil {
		return
	}
	if err := sandbox.RecordPort(h.policies.of(LocalPrincipal).Commands().Network().PortRecords, addr); err != nil {
		h.log.Warn("cannot record the port of this host: commands may listen on it after the host has ended", "address",
			addr, "error", err)
	}
}

func below(dir, name string) string {
	if dir == "" {
		return ""
	}
	return filepath.Join(dir, name)
}
