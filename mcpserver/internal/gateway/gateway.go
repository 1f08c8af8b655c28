// Package gateway offers the tools of other MCP servers as mcp__SERVER__TOOL. It starts each server at its first
// call, in its own sandbox, stores the list of what the server offers, and withholds definitions that have changed
// since a person has reviewed them.
//
// It supports both eras of the protocol, over stdio and streamable HTTP. Definitions are stored as raw JSON, so that no
// member is lost, and are not trusted.
package gateway

import (
	"context"
	"errors"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/toolhost/toolhost/builtin"
	"github.com/toolhost/toolhost/guard"
)

// Limits of servers and what they send.
const (
	maxMessage     = 32 << 20 // bytes of a line, or of an event
	maxPages       = 100      // of a list
	maxListed      = 10_000   // elements of a list
	maxListBytes   = 32 << 20
	maxListings    = 32       // callers whose resources are kept for a server
	maxSchema      = 64 << 10 // bytes of the schema of a tool
	maxSchemaDepth = 32
	maxDescription = 2048 // characters
	maxResultText  = 30_000
	maxStructured  = 64 << 10
	maxStderr      = 20 // last lines
	maxLine        = 500

	connectTime = 30 * time.Second
	silence     = 5 * time.Minute  // of a call without progress
	callTime    = 10 * time.Minute // of a call
	idleTime    = 10 * time.Minute // until a server is stopped
	lookers     = 2                // new servers that are started at once
	lookShare   = time.Second / 2  // until the next one may start

	processesOfCaller = 8
	processesOfHost   = 32

	backoffFirst = time.Second
	backoffMost  = time.Minute
	deathsToPark = 5
	deathsWithin = 10 * time.Minute
)

// Limits that are longer in tests: a machine that runs many tests needs more time to start a server.
var (
	probeTime = time.Second     // for a response in the modern era
	firstList = 2 * time.Second // how long the first list waits for new servers
)

// A Config configures a [Gateway].
type Config struct {
	// Servers returns the configured servers, and problems of the configuration.
	Servers func() ([]*Entry, []string)
	// Dir stores what servers offer, and logins. If it is empty, nothing is stored.
	Dir string
	// Start starts the process of a server for a caller.
	Start func(ctx context.Context, server, principal string, spec builtin.ServerSpec) (*builtin.ServerProcess, error)
	// MayRun returns an error if a command line must not run outside of the sandbox.
	MayRun func(guard.HostCommand) error
	// Roots are the directories of the workspace.
	Roots []string
	// Changed is called after the tools or the servers have changed; configured means that the configuration has.
	Changed func(g *Gateway, configured bool)
	// Web returns the addresses that a login may lead to. Without it, these are public ones and those of the server's
	// own network.
	Web     func() guard.Web
	Version string
	Log     *slog.Logger
}

// A Gateway manages the other servers of a host. [Open] creates one; it must be closed.
type Gateway struct {
	cfg   Config
	tools atomic.Pointer[[]*builtin.Def]

	reloading, building sync.Mutex
	known               string // a digest of what is known besides the tools; guarded by building

	mu       sync.Mutex
	looking  bool // Look was called
	servers  map[string]*server
	live     map[string]*upstream // by key
	problems []string             // of the configuration, not yet reported
	closed   bool

	looks  chan struct{} // a semaphore for look
	first  chan struct{} // closed when look has ended for all new servers
	late   chan struct{} // closed firstList after the first Look
	begun  sync.Once
	ctx    context.Context
	cancel context.CancelFunc
	work   sync.WaitGroup
	nextID atomic.Int64
	dial   func(*upstream, context.Context, *session) error // connects the wire of a session
}

// A server is a configured server.
type server struct {
	*Entry
	store *store

	mu sync.Mutex
	failures
	since time.Time // of the last restart that a person asked for
	noted []string  // problems that were logged

	login sync.Mutex // held while a login is changed

	lists   map[string]*listing      // by principal; that of the local user is in the store
	looking map[string]chan struct{} // by principal, closed when look has ended

	refused refusedHosts
}

// Open reads the configuration and what is stored about the servers. It starts no server.
func Open(cfg Config) *Gateway {
	g := &Gateway{cfg: cfg, servers: map[string]*server{}, live: map[string]*upstream{},
		looks: make(chan struct{}, lookers), first: make(chan struct{}), late: make(chan struct{}), dial: (*upstream).open}
	g.ctx, g.cancel = context.WithCancel(context.Background())
	g.tools.Store(&[]*builtin.Def{})
	g.Reload()
	g.work.Go(g.stopIdle)
	return g
}

// Reload reads the configuration again. A server whose entry has changed is stopped.
func (g *Gateway) Reload() {
	g.reloading.Lock()
	defer g.reloading.Unlock()
	entries, problems := g.cfg.Servers()
	g.mu.Lock()
	was := g.servers
	g.servers, g.problems = map[string]*server{}, problems
	for _, e := range entries {
		if s := was[e.Name]; s != nil && s.Hash() == e.Hash() && s.Refused == e.Refused {
			g.servers[e.Name] = s
			continue
		}
		g.servers[e.Name] = &server{Entry: e, store: openStore(g.cfg.Dir, e, g.cfg.Log)}
	}
	stale := map[string][]*upstream{} // by server
	for _, u := range g.live {
		if g.servers[u.srv.Name] != u.srv {
			stale[u.srv.Name] = append(stale[u.srv.Name], u)
		}
	}
	looking, closed := g.looking, g.closed
	g.mu.Unlock()
	if looking {
		g.report()
	}
	g.rebuild(true)
	if closed {
		return
	}
	anew := map[string]*server{}
	if looking {
		for _, s := range g.unknown() {
			anew[s.Name] = s
			stale[s.Name] = slices.Clip(stale[s.Name])
		}
	}
	for name, old := range stale { // a server that does not end must not delay the others
		g.work.Go(func() {
			stopAll(old)
			if s := anew[name]; s != nil {
				g.look(s, localPrincipal)
			}
		})
	}
}

// stopAll stops connections, and returns when all have ended.
func stopAll(all []*upstream) {
	var ends sync.WaitGroup
	for _, u := range all {
		ends.Go(u.stop)
	}
	ends.Wait()
}

// unknown returns the servers about which nothing is stored.
func (g *Gateway) unknown() []*server {
	return slices.DeleteFunc(g.sorted(), func(s *server) bool { return s.Refused != "" || s.store.known(s.Hash()) })
}

// Tools returns the tools of all servers, ordered by name.
func (g *Gateway) Tools() []*builtin.Def { return *g.tools.Load() }

// sorted returns the servers by name.
func (g *Gateway) sorted() []*server {
	g.mu.Lock()
	defer g.mu.Unlock()
	return slices.SortedFunc(maps.Values(g.servers), func(a, b *server) int { return strings.Compare(a.Name, b.Name) })
}

// server returns the server of a name.
func (g *Gateway) server(name string) (*server, error) {
	g.report()
	g.mu.Lock()
	defer g.mu.Unlock()
	if s := g.servers[name]; s != nil {
		return s, nil
	}
	return nil, errors.New("there is no server " + name + nearest(name, slices.Collect(maps.Keys(g.servers))))
}

// report logs the problems of the configuration once. It is called where servers are used, because many commands open a
// host for something else.
func (g *Gateway) report() {
	g.mu.Lock()
	problems := g.problems
	g.problems = nil
	g.mu.Unlock()
	for _, p := range problems {
		g.cfg.Log.Warn(p)
	}
}

// Look starts the unknown servers in the background to list what they offer. Only the first call has an effect.
func (g *Gateway) Look() {
	g.begun.Do(func() {
		g.mu.Lock()
		g.looking = true
		g.mu.Unlock()
		g.report()
		time.AfterFunc(firstList, func() { close(g.late) })
		var all sync.WaitGroup
		for _, s := range g.unknown() {
			all.Go(func() { g.look(s, localPrincipal) })
		}
		g.work.Go(func() {
			all.Wait()
			close(g.first)
		})
	})
}

// Wait waits until all servers are known, at most until [firstList] after the first Look: a server that does not
// answer must not delay the list of the others.
func (g *Gateway) Wait(ctx context.Context) {
	g.Look()
	select {
	case <-g.first:
	case <-g.late:
	case <-ctx.Done():
	}
}

// look starts a server to learn what it offers to a caller, and stops it.
func (g *Gateway) look(s *server, principal string) {
	select {
	case g.looks <- struct{}{}:
	case <-g.ctx.Done():
		return
	}
	leave := sync.OnceFunc(func() { <-g.looks })
	defer leave()
	defer time.AfterFunc(lookShare, leave).Stop() // a server that does not answer must not delay others
	if err := g.try(g.ctx, &upstream{g: g, srv: s, principal: principal, patient: true},
		leave); err != nil {
		g.cfg.Log.Warn("cannot list the tools of a server", "server", s.Name, "error", err)
		g.cfg.Changed(g, false) // its state has changed
	}
}

// try connects to a server, and stops it when it has listed what it offers. It calls connected before it waits for
// tools that the server adds.
func (g *Gateway) try(ctx context.Context, u *upstream, connected func()) error {
	defer u.stop()
	sess, err := u.acquire(ctx)
	if err != nil {
		return err
	}
	if connected(); sess.first {
		sess.settle()
	}
	u.release(sess)
	return nil
}

// Close ends all servers.
func (g *Gateway) Close() error {
	g.mu.Lock()
	g.closed = true
	all := slices.Collect(maps.Values(g.live))
	g.mu.Unlock()
	g.cancel()
	stopAll(all)
	g.work.Wait()
	return nil
}

// stopIdle stops servers that were not used for idleTime, and reads what other hosts have stored.
func (g *Gateway) stopIdle() {
	tick := time.NewTicker(idleTime / 10)
	defer tick.Stop()
	for {
		select {
		case <-g.ctx.Done():
			return
		case <-tick.C:
			g.mu.Lock()
			all := slices.Collect(maps.Values(g.live))
			g.mu.Unlock()
			for _, u := range all {
				u.stopIfIdle(idleTime)
			}
			changed := false
			for _, s := range g.sorted() {
				changed = s.store.refresh() || changed
			}
			if changed {
				g.rebuild(false)
			}
		}
	}
}
