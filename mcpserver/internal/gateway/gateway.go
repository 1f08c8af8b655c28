// Package gateway makes the tools of other MCP servers tools of this host: mcp__SERVER__TOOL. It starts each server at its first call, in a
// sandbox of its own, keeps what the server offered last, and withholds what has changed since a person saw it.
//
// It speaks both eras of the protocol to servers, over stdio and streamable HTTP. What servers send is kept as it came: nothing is lost
// by types, and nothing is believed.
package gateway

import (
	"context"
	"errors"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/toolhost/toolhost/builtin"
)

// Limits of servers and what they send.
const (
	maxMessage     = 32 << 20 // bytes of a line, or of an event
	maxPages       = 100      // of a list
	maxListed      = 10_000   // elements of a list
	maxListBytes   = 32 << 20
	maxListings    = 32       // callers whose resources are remembered of a server
	maxSchema      = 64 << 10 // bytes of the schema of a tool
	maxSchemaDepth = 32
	maxDescription = 2048 // characters
	maxResultText  = 30_000
	maxStructured  = 64 << 10
	maxStderr      = 20 // lines that are kept
	maxLine        = 500

	connectTime = 30 * time.Second
	probeTime   = time.Second      // for a server to answer in the modern era
	silence     = 5 * time.Minute  // without progress, of a call
	callTime    = 10 * time.Minute // of a call
	idleTime    = 10 * time.Minute // until a server is stopped
	firstList   = 2 * time.Second  // that the first list waits for servers that are not known
	lookers     = 2                // servers that are started at once to be looked at
	lookShare   = time.Second / 2  // until the next one may start

	processesOfCaller = 8
	processesOfHost   = 32

	backoffFirst = time.Second
	backoffMost  = time.Minute
	deathsToPark = 5
	deathsWithin = 10 * time.Minute
)

// A Config is what a [Gateway] works with.
type Config struct {
	// Servers returns the servers that are configured now, and what is wrong with the configuration.
	Servers func() ([]*Entry, []string)
	// Dir keeps what servers offered, and tokens; "": nothing is kept.
	Dir string
	// Start starts the process of a server for a caller.
	Start func(ctx context.Context, server, principal string, spec builtin.ServerSpec) (Process, error)
	// Roots are the directories that servers that see the workspace are told.
	Roots []string
	// Changed is told when the tools or the servers have changed; configured says that a person has changed which there are.
	Changed func(g *Gateway, configured bool)
	Version string
	Log     *slog.Logger
}

// A Process is a server that was started, and everything that descends from it.
type Process struct {
	Done <-chan struct{} // closed when the server itself has ended
	Kill func() error    // ends it all, and returns when nothing is left; called once
}

// A Gateway holds the other servers of a host. Use [Open], and close it.
type Gateway struct {
	cfg   Config
	tools atomic.Pointer[[]*builtin.Def]

	reloading, building sync.Mutex
	known               string // differs when what is known besides the tools does; guarded by building

	mu       sync.Mutex
	looking  bool // Look was called
	servers  map[string]*server
	live     map[string]*upstream // by key
	problems []string
	closed   bool

	looks  chan struct{} // a place for each that is looked at
	first  chan struct{} // closed when all that were unknown have been looked at
	late   chan struct{} // closed when a list waits no longer for them
	begun  sync.Once
	ctx    context.Context
	cancel context.CancelFunc
	work   sync.WaitGroup
	nextID atomic.Int64
	dial   func(*upstream, context.Context, *session) error // connects the wire of a session
}

// A server is one that is configured.
type server struct {
	*Entry
	store *store

	mu sync.Mutex
	failures
	since time.Time // of the last restart that a person asked for
	noted []string  // problems that were logged

	login sync.Mutex // one of its logins is changed

	lists   map[string]*listing      // of callers other than the local user, whose is in the store
	looking map[string]chan struct{} // closed when the list of a caller was looked at
}

// Open reads the configuration and what is known of its servers. It starts none.
func Open(cfg Config) *Gateway {
	g := &Gateway{cfg: cfg, servers: map[string]*server{}, live: map[string]*upstream{}, looks: make(chan struct{}, lookers), first: make(chan struct{}), late: make(chan struct{}), dial: (*upstream).open}
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
		g.servers[e.Name] = &server{Entry: e, store: openStore(g.cfg.Dir, e)}
	}
	var stale []*upstream
	for _, u := range g.live {
		if g.servers[u.srv.Name] != u.srv {
			stale = append(stale, u)
		}
	}
	looking := g.looking && !g.closed
	g.mu.Unlock()
	for _, p := range problems {
		g.cfg.Log.Warn(p)
	}
	for _, u := range stale {
		u.stop()
	}
	g.rebuild(true)
	if looking {
		for _, s := range g.unknown() {
			g.work.Go(func() { g.look(s, localPrincipal) })
		}
	}
}

// unknown returns the servers of which nothing is known.
func (g *Gateway) unknown() []*server {
	return slices.DeleteFunc(g.sorted(), func(s *server) bool { return s.Refused != "" || s.store.known(s.Hash()) })
}

// Tools returns the tools of all servers, ordered by name.
func (g *Gateway) Tools() []*builtin.Def { return *g.tools.Load() }

// sorted returns the servers by name.
func (g *Gateway) sorted() []*server {
	g.mu.Lock()
	defer g.mu.Unlock()
	return slices.SortedFunc(maps.Values(g.servers), func(a, b *server) int { return compareNames(a.Name, b.Name) })
}

// server returns the server of a name.
func (g *Gateway) server(name string) (*server, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if s := g.servers[name]; s != nil {
		return s, nil
	}
	return nil, errors.New("there is no server " + name + nearest(name, slices.Collect(maps.Keys(g.servers))))
}

// Look looks at the servers that are not known yet, in the background. Only its first call does anything.
func (g *Gateway) Look() {
	g.begun.Do(func() {
		g.mu.Lock()
		g.looking = true
		g.mu.Unlock()
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

// Wait waits until all servers are known, for [firstList] after the first look at most: one that does not answer must not keep the others
// off the list.
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
	defer time.AfterFunc(lookShare, leave).Stop() // one that does not answer must not hold up others
	u := &upstream{g: g, srv: s, key: "look " + s.Name, principal: principal}
	sess, err := u.acquire(g.ctx)
	if err != nil {
		g.cfg.Log.Warn("a server could not be asked for its tools", "server", s.Name, "error", err)
		g.cfg.Changed(g, false) // it is down now
		return
	}
	leave()
	if sess.first {
		sess.settle()
	}
	u.release(sess)
	u.stop()
}

// Close ends all servers.
func (g *Gateway) Close() error {
	g.mu.Lock()
	g.closed = true
	all := slices.Collect(maps.Values(g.live))
	g.mu.Unlock()
	g.cancel()
	var ends sync.WaitGroup
	for _, u := range all {
		ends.Go(u.stop)
	}
	ends.Wait()
	g.work.Wait()
	return nil
}

// stopIdle stops the servers that were not used for long.
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
