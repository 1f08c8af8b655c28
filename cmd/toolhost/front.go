package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/toolhost/toolhost/cmd/toolhost/internal/listen"
	"github.com/toolhost/toolhost/cmd/toolhost/internal/metrics"
	"github.com/toolhost/toolhost/cmd/toolhost/internal/remote"
	"github.com/toolhost/toolhost/guard/settings"
	"github.com/toolhost/toolhost/mcpserver"
	"github.com/toolhost/toolhost/mcpserver/audit"
	"github.com/toolhost/toolhost/mcpserver/auth"
)

// A front connects the callers of toolhost http --workspaces to the hosts of their workspaces. It keeps no state that
// another process with the same flags could not find.
type front struct {
	places places
	relays *remote.Relays
	audit  *audit.Log
	log    *slog.Logger
	count  *metrics.Workspaces
}

// places finds workspaces.
type places interface {
	// find returns the workspace that a caller names, or [mcpserver.ErrNoWorkspace].
	find(who auth.Identity, name string) (remote.Workspace, error)
}

// Enter implements [mcpserver.Workspaces].
func (f *front) Enter(_ context.Context, who auth.Identity, name string, rests bool) (http.Handler, error) {
	w, err := f.places.find(who, name)
	if err != nil {
		return nil, err
	}
	next, err := f.relays.Enter(w, rests)
	if errors.Is(err, remote.ErrManyRelays) {
		err = mcpserver.ErrManyWorkspaces
	}
	return next, err
}

// Log implements [mcpserver.Workspaces].
func (f *front) Log() *slog.Logger { return f.log }

// Record implements [mcpserver.Workspaces].
func (f *front) Record(rec audit.Record) error { return f.audit.Write(rec) }

// CountUnauthorized implements [mcpserver.Workspaces].
func (f *front) CountUnauthorized() { f.count.Unauthorized() }

// EndTasks implements [mcpserver.Workspaces]: the hosts of workspaces end all that the principal has open.
func (f *front) EndTasks(principal string) { f.relays.Revoke(principal) }

// maxWorkspaceName is the longest name of a workspace.
const maxWorkspaceName = 63

// isWorkspaceName reports whether a workspace may have this name: it is part of paths and of URLs.
func isWorkspaceName(name string) bool {
	const alphanumeric = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
	return name != "" && len(name) <= maxWorkspaceName && strings.Trim(name, alphanumeric+"._-") == "" &&
		strings.Contains(alphanumeric, name[:1]) && !strings.HasSuffix(name, ".")
}

// serveWorkspaces is toolhost http --workspaces.
func (f *hostFlags) serveWorkspaces(ctx context.Context, where string, network *networkFlags,
	callers *authFlags) error {
	if f.console.on || f.console.always || f.console.listen != "" {
		return usageError{errors.New("--workspaces: the host of each workspace has a console of its own, which toolhost " +
			"console opens")}
	}
	if len(f.roots) > 0 {
		return usageError{errors.New("--workspaces serves the workspaces that it names: leave the roots out")}
	}
	state, err := f.stateDirectory()
	if err != nil {
		return err
	}
	dir, pooled := state, remote.IsPool(where)
	if !pooled {
		if dir, err = ownRoot(where); err != nil {
			return usageError{fmt.Errorf("--workspaces: %w", err)}
		}
		if callers.issuer != "" {
			return usageError{errors.New("--workspaces DIR: access tokens do not say which directories they are for; make " +
				"named tokens, with toolhost token add NAME --root DIR/WORKSPACE")}
		}
	}
	cfg, err := f.config([]string{dir}, true)
	if err != nil {
		return err
	}
	cfg.StateDir = state
	found, err := mcpserver.SettingsConfig(cfg)
	if err != nil {
		return err
	}
	set := settings.Load(found).Workspaces
	l, notifier, err := network.open(cfg.Log)
	if err != nil {
		return err
	}
	defer l.Close() // already closed if the server has run
	single := func(file string) (string, string, bool, error) { return mcpserver.KeptToken(cfg.StateDir, file) }
	known, err := callers.open(ctx, single, cfg)
	if err != nil {
		return err
	}
	defer known.close()
	front := &front{log: cfg.Log}
	if front.audit, err = openFrontAudit(cfg); err != nil {
		return err
	}
	defer front.audit.Close()
	if pooled {
		pool, err := f.poolPlaces(where, set.PerCaller, cfg.Log)
		if err != nil {
			return err
		}
		go pool.suspend(ctx)
		front.places = pool
	} else if front.places, err = f.dirPlaces(dir, cfg, callers, network); err != nil {
		return err
	}
	relays := remote.RelaysConfig{Idle: set.Idle, PerCaller: set.PerCaller, Log: cfg.Log}
	front.count = metrics.NewWorkspaces(func() int { return front.relays.Open() })
	relays.Done = front.count.Done
	front.relays = remote.NewRelays(relays)
	defer front.relays.Close()
	ignoreSIGPIPE()
	scraped, err := f.serveFrontMetrics(ctx, front)
	if err != nil {
		return err
	}
	defer scraped()
	announce(os.Stderr, isTerminal(os.Stderr), l, known, mcpserver.WorkspacePath("NAME"),
		[]string{"the workspaces of " + where})
	notifier.NotifyReady(ctx, func() bool { return true })
	defer notifier.NotifyStopping(ctx)()
	known.Hosts, known.Inherited, known.Watch, known.Connections = network.hosts, l.Inherited, listen.Watch, l.Connections
	return mcpserver.ServeWorkspaces(ctx, front, l, known.HTTPConfig)
}

// openFrontAudit opens the audit log of requests that are refused before they reach a workspace. The hosts write
// their calls into the same file.
func openFrontAudit(cfg mcpserver.Config) (*audit.Log, error) {
	path := cmp.Or(cfg.AuditLog, filepath.Join(cfg.StateDir, auditFile))
	return audit.Open(audit.Config{
		Path: path, MaxSize: cfg.AuditMaxSize, Keep: cfg.AuditKeep, Optional: cfg.AuditLog == "",
		Warn: func(err error) { cfg.Log.Warn("the audit log is not rotated", "error", err) },
	})
}

// serveFrontMetrics serves metrics, if they are asked for, until the returned function is called.
func (f *hostFlags) serveFrontMetrics(ctx context.Context, front *front) (stop func(), err error) {
	if f.observe.metrics.Address == "" {
		return func() {}, nil
	}
	cfg := f.observe.metrics
	cfg.Version, cfg.Log = versionString(), front.log
	site, err := front.count.Listen(cfg)
	if err != nil {
		return nil, err
	}
	fmt.Fprintf(os.Stderr, "metrics on %s\n", site.URL())
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		if err := site.Serve(ctx, func() (none mcpserver.Stats) { return none }); err != nil {
			front.log.Error("metrics are not served any more", "error", err)
		}
	}()
	return func() { cancel(); <-ended }, nil
}

// addWorkspaces adds the flag of a server of many workspaces.
func addWorkspaces(cmd *cobra.Command, where *string) {
	cmd.Flags().StringVar(where, "workspaces", "",
		"serve each directory in `DIR` as a workspace of its own, at /w/NAME/mcp, to callers whose token has it or all of DIR as its root; or, at the same paths, the workspaces of each caller in a pool of agent-sandbox, sandbox://[CONTEXT@]NAMESPACE/POOL")
}
