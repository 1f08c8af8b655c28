package remote

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"sync"
	"time"
)

const (
	// maxRelays is how many workspaces have a link at once.
	maxRelays = 10_000
	// maxStay is how long background tasks keep the link of a workspace that has no calls.
	maxStay = 12 * time.Hour
	// looks is how many times within the idle time it is checked whether the link of a workspace can be closed.
	looks = 10
	// lookTime is how long the far host may take to say whether tasks run, or to end what a caller has open.
	lookTime = 10 * time.Second
	// parkedEvery is how often a comment is sent to a client that waits for events of an idle workspace.
	parkedEvery = 15 * time.Second
)

// ErrManyRelays means that a caller, or all callers together, use the greatest allowed number of workspaces.
var ErrManyRelays = errors.New("too many workspaces are in use")

// A RelaysConfig configures [NewRelays].
type RelaysConfig struct {
	// Idle is after how long without a call and a background task the link of a workspace is closed.
	Idle time.Duration
	// PerCaller is in how many workspaces a caller may have a link.
	PerCaller int
	// Log receives why links fail.
	Log *slog.Logger
	// Done is called after the answer to each request but those that rest, see [Relays.Enter].
	Done func(workspace string, status int, took time.Duration)
}

// Relays keeps links to the far hosts of workspaces that are in use.
type Relays struct {
	RelaysConfig
	ctx    context.Context
	cancel context.CancelFunc
	nears  sync.WaitGroup

	mu     sync.Mutex
	open   map[string]*relay  // by key
	parked map[string]*parked // by key: those whose clients wait for events
}

// A relay is the link of one workspace. The fields after mutex are guarded by that of [Relays].
type relay struct {
	key, name string
	near      *Near
	proxy     http.Handler
	cancel    context.CancelFunc
	closed    chan struct{}

	busy    int // requests, without those that rest
	last    time.Time
	looking bool
	callers map[string]bool // all that have entered; true: the link counts as one of the caller's
}

// A parked is an idle workspace, for the clients that wait for its events.
type parked struct {
	woken   chan struct{} // closed when it has a link again
	clients int
}

// NewRelays returns a set without links. Close ends them.
func NewRelays(cfg RelaysConfig) *Relays {
	r := &Relays{RelaysConfig: cfg, open: map[string]*relay{}, parked: map[string]*parked{}}
	r.ctx, r.cancel = context.WithCancel(context.Background())
	go r.closeIdle()
	return r
}

// Close ends all links.
func (r *Relays) Close() {
	r.cancel()
	r.mu.Lock() // no link begins any more
	defer r.mu.Unlock()
	r.nears.Wait()
}

// Open returns how many workspaces have a link.
func (r *Relays) Open() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.open)
}

// A Workspace is what a caller enters.
type Workspace struct {
	// Caller is its principal, and Name how it calls the workspace.
	Caller, Name string
	// Key is equal for all callers whose requests go over one link.
	Key string
	// Bearer authorizes the requests of the caller at the far host.
	Bearer string
	// Dial returns what opens links. It is called when there is none.
	Dial func() (Dialer, error)
}

// Enter returns what answers one request of a caller. A request that rests waits for events: it does not keep the
// workspace from being idle.
func (r *Relays) Enter(w Workspace, rests bool) (http.Handler, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.ctx.Err() != nil {
		return nil, r.ctx.Err()
	}
	k := r.open[w.Key]
	if k == nil || !k.callers[w.Caller] {
		if !r.makeRoom(w.Caller, k == nil) {
			return nil, ErrManyRelays
		}
	}
	if k == nil {
		var err error
		if k, err = r.start(w); err != nil {
			return nil, err
		}
	}
	k.callers[w.Caller] = true
	if !rests {
		k.busy++
	}
	return &visit{r, k, w.Bearer, rests}, nil
}

// start begins the link of a workspace. The caller holds the lock.
func (r *Relays) start(w Workspace) (*relay, error) {
	dial, err := w.Dial()
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(r.ctx)
	k := &relay{key: w.Key, name: w.Name, cancel: cancel, closed: make(chan struct{}), last: time.Now(),
		callers: map[string]bool{}}
	k.near = NewNear(ctx, dial, nil,
		func(err error) { r.Log.Warn("a workspace has no link", "workspace", w.Name, "error", err) })
	k.proxy = Proxy(k.near, slog.NewLogLogger(r.Log.Handler(), slog.LevelDebug))
	r.nears.Go(func() { <-k.near.Done() })
	r.open[w.Key] = k
	if p := r.parked[w.Key]; p != nil {
		close(p.woken)
		delete(r.parked, w.Key)
	}
	return k, nil
}

// makeRoom closes the links that have rested longest, so that a caller may have one more, and reports false if they are
// all busy. A link that counts for another caller too stays open and is left to that caller: there are never more links
// than the callers may have together. The caller holds the lock.
func (r *Relays) makeRoom(caller string, fresh bool) bool {
	own, oldest, oldestOwn, shared := 0, (*relay)(nil), (*relay)(nil), (*relay)(nil)
	older := func(k, than *relay) bool { return k.busy == 0 && (than == nil || k.last.Before(than.last)) }
	for _, k := range r.open {
		if older(k, oldest) {
			oldest = k
		}
		switch {
		case !k.callers[caller]:
			continue
		case k.owners() > 1:
			shared = k
		case older(k, oldestOwn):
			oldestOwn = k
		}
		own++
	}
	if own >= r.PerCaller && shared != nil {
		shared.callers[caller] = false
		own--
	}
	for _, full := range []struct {
		is    bool
		close *relay
	}{{own >= r.PerCaller, oldestOwn}, {fresh && len(r.open) >= maxRelays, oldest}} {
		if full.is && full.close == nil {
			return false
		}
		if full.is {
			r.end(full.close)
		}
	}
	return true
}

// owners returns how many callers the link counts for. The caller holds the lock.
func (k *relay) owners() (n int) {
	for _, counts := range k.callers {
		if counts {
			n++
		}
	}
	return n
}

// end closes a link. The caller holds the lock.
func (r *Relays) end(k *relay) {
	if r.open[k.key] == k {
		delete(r.open, k.key)
		close(k.closed)
		k.cancel()
	}
}

// leave is the end of a request.
func (r *Relays) leave(k *relay, rests bool) {
	if rests {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	k.busy--
	k.last = time.Now()
}

// closeIdle closes the links of idle workspaces.
func (r *Relays) closeIdle() {
	tick := time.NewTicker(max(r.Idle/looks, time.Millisecond))
	defer tick.Stop()
	for {
		select {
		case <-r.ctx.Done():
			return
		case <-tick.C:
		}
		r.mu.Lock()
		for _, k := range r.open {
			if k.busy == 0 && time.Since(k.last) >= r.Idle && !k.looking {
				k.looking = true
				go r.look(k)
			}
		}
		r.mu.Unlock()
	}
}

// look closes the link of a workspace that has been idle, unless background tasks run there.
func (r *Relays) look(k *relay) {
	tasks := 0
	if _, _, reason := k.near.state(); reason == nil {
		ctx, cancel := context.WithTimeout(r.ctx, lookTime)
		defer cancel()
		_ = ReadAbout(ctx, k.near, TasksPath, &tasks) // a far host that does not answer is one without tasks
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	k.looking = false
	if rested := time.Since(k.last); k.busy == 0 && rested >= r.Idle && (tasks == 0 || rested > maxStay) {
		r.end(k)
	}
}

// Revoke ends all that a caller has open in the workspaces with a link.
func (r *Relays) Revoke(caller string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, k := range r.open {
		if _, entered := k.callers[caller]; !entered {
			continue
		}
		go func() {
			ctx, cancel := context.WithTimeout(r.ctx, lookTime)
			defer cancel()
			if _, err := k.near.ask(ctx, http.MethodPost, RevokePath+"?principal="+
				url.QueryEscape(caller)); err != nil {
				r.Log.Warn("what a revoked token has open in a workspace may go on", "workspace", k.name, "principal",
					caller, "error", err)
			}
		}()
	}
}

// A visit is one request of a caller in a workspace.
type visit struct {
	relays *Relays
	*relay
	bearer string
	rests  bool
}

type visitKey struct{}

// ServeHTTP implements http.Handler.
func (v *visit) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	defer v.relays.leave(v.relay, v.rests)
	seen, began := &statusWriter{ResponseWriter: w, status: http.StatusOK}, time.Now()
	r.Header.Set("Authorization", "Bearer "+v.bearer)
	if v.rests {
		r = r.WithContext(context.WithValue(r.Context(), visitKey{}, v))
	} else {
		defer func() { v.relays.Done(v.name, seen.status, time.Since(began)) }()
	}
	v.proxy.ServeHTTP(seen, r)
}

// idle reports whether the link was closed.
func (v *visit) idle() bool {
	select {
	case <-v.closed:
		return v.relays.ctx.Err() == nil
	default:
		return false
	}
}

// wait lets a client wait until the workspace has a link again, and writes a comment from time to time. The stream then
// ends, and the client opens another one.
func (v *visit) wait(ctx context.Context, p []byte) (int, error) {
	woken, leave := v.relays.park(v.key)
	defer leave()
	timer := time.NewTimer(parkedEvery)
	defer timer.Stop()
	select {
	case <-timer.C:
		return copy(p, ":\n\n"), nil
	case <-woken:
	case <-ctx.Done():
	case <-v.relays.ctx.Done():
	}
	return 0, io.EOF
}

// park returns what is closed when a workspace has a link.
func (r *Relays) park(key string) (woken <-chan struct{}, leave func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	p := r.parked[key]
	if p == nil {
		p = &parked{woken: make(chan struct{})}
		r.parked[key] = p
	}
	if p.clients++; r.open[key] != nil {
		close(p.woken)
		delete(r.parked, key)
	}
	return p.woken, func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		if p.clients--; p.clients == 0 && r.parked[key] == p {
			delete(r.parked, key)
		}
	}
}

// A statusWriter remembers the status of a response.
type statusWriter struct {
	http.ResponseWriter
	status int
}

// WriteHeader implements http.ResponseWriter.
func (w *statusWriter) WriteHeader(status int) {
	w.status = status
	w.ResponseWriter.WriteHeader(status)
}

// Unwrap lets http.ResponseController reach the connection.
func (w *statusWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }
