package main

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"strings"
	"time"

	"github.com/toolhost/toolhost/cmd/toolhost/internal/remote"
	"github.com/toolhost/toolhost/mcpserver"
	"github.com/toolhost/toolhost/mcpserver/auth"
)

const (
	// suspendEvery is the interval at which unused sandboxes are looked for.
	suspendEvery = time.Minute
	// listTime is how long the API server may take to list the workspaces of a caller.
	listTime = 10 * time.Second
)

// A pool is a warm pool of agent-sandbox, see [remote.Pool].
type pool interface {
	// Workspaces returns the names of the workspaces that a principal has.
	Workspaces(ctx context.Context, principal string) ([]string, error)
	// SuspendUnused suspends the sandboxes that nothing uses.
	SuspendUnused(ctx context.Context) (int, error)
}

// poolPlaces are the workspaces of a pool. Each caller has the workspaces that it names.
type poolPlaces struct {
	pool pool
	dial func(principal, name string) remote.Dialer
	most int // workspaces of one caller
	log  *slog.Logger
}

// poolPlaces returns the workspaces of a pool, whose hosts have the flags of this command.
func (f *hostFlags) poolPlaces(where string, most int, log *slog.Logger) (*poolPlaces, error) {
	of, err := remote.ParsePool(where)
	if err != nil {
		return nil, usageError{err}
	}
	args, settings, err := f.frontArguments()
	if err != nil {
		return nil, err
	}
	return &poolPlaces{pool: of, most: most, log: log, dial: func(principal, name string) remote.Dialer {
		l := remote.NewLauncher(of.Claim(principal, name).Target(), "")
		l.Version, l.Args, l.Settings = versionString(), args, settings
		return l.Dial
	}}, nil
}

// find implements [places]. A workspace of a pool has no root that a token could name.
func (p *poolPlaces) find(who auth.Identity, name string) (w remote.Workspace, err error) {
	if !isWorkspaceName(name) || who.Root != "" {
		return w, mcpserver.ErrNoWorkspace
	}
	return remote.Workspace{
		Caller: who.Principal, Name: name, Key: who.Principal + "\x00" + name, Bearer: auth.RelayBearer(who),
		Dial: func() (remote.Dialer, error) { return p.limited(who.Principal, name, p.dial(who.Principal, name)), nil },
	}, nil
}

// limited returns a dialer that makes no workspace for a caller that has as many as it may have. Two servers that
// make one at the same time may exceed the limit by one each.
func (p *poolPlaces) limited(principal, name string, dial remote.Dialer) remote.Dialer {
	counted := false
	return func(ctx context.Context, moving func()) (io.ReadWriteCloser, error) {
		if !counted {
			if err := p.count(ctx, principal, name); err != nil {
				return nil, err
			}
			counted = true
		}
		return dial(ctx, moving)
	}
}

// count returns an error if a caller may not have this workspace in addition to those that it has.
func (p *poolPlaces) count(ctx context.Context, principal, name string) error {
	ctx, cancel := context.WithTimeout(ctx, listTime)
	defer cancel()
	has, err := p.pool.Workspaces(ctx, principal)
	switch {
	case err != nil:
		return fmt.Errorf("the workspaces of the caller cannot be listed: %w", err)
	case len(has) >= p.most && !slices.Contains(has, name):
		return remote.Refuse(fmt.Errorf("you have %d workspaces, which are the most (workspaces.perCaller): use one of %s, "+
			"or have the owner of this server delete one",
			len(has), strings.Join(has, ", ")))
	}
	return nil
}

// suspend suspends the sandboxes that nothing uses until ctx is done.
func (p *poolPlaces) suspend(ctx context.Context) {
	tick := time.NewTicker(suspendEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		if n, err := p.pool.SuspendUnused(ctx); err != nil && ctx.Err() == nil {
			p.log.Warn("sandboxes that nothing uses are not suspended", "error", err)
		} else if n > 0 {
			p.log.Info("sandboxes that nothing uses were suspended", "count", n)
		}
	}
}
