package gateway

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"path/filepath"
	"sync"
	"time"
)

// An upstream is the connection of one conversation, or of one caller, to a server. It connects at the first use, and
// again after the connection was lost.
type upstream struct {
	g         *Gateway
	srv       *server
	principal string
	patient   bool // it waits until a start has ended, whatever the server writes

	// alone is held by a call that must not run concurrently with others. It is nil if conversations share the connection.
	alone chan struct{}

	pages pages

	mu       sync.Mutex
	live     *session
	forPages bool            // see opensPages
	starting *start          // nil if no start is in progress
	closing  <-chan struct{} // closed when the last session that was idle has ended; nil if there was none
	users    int
	used     time.Time
}

// A start is an attempt to connect.
type start struct {
	cancel context.CancelFunc
	done   chan struct{} // closed when err is set
	err    error
	noisy  chan struct{} // closed when noise is set
	noise  error
	w      wire // nil until the server was started
}

// sharing returns the "share" of the entry. It is ignored in entries of a project.
func (s *server) sharing() string {
	if s.Trust == Project {
		return ""
	}
	return s.Share
}

// upstreamFor returns the upstream of a call. Conversations of a caller share one if the server is stateless.
func (g *Gateway) upstreamFor(s *server, principal, scope string) *upstream {
	share := s.sharing()
	if share == "" && s.Type == typeHTTP && s.store.era() == modernEra {
		share = "caller"
	}
	key, shared := s.Name, true
	switch share {
	case "host":
		principal = localPrincipal
	case "caller":
		key += "\x00" + principal
	default:
		key += "\x00" + principal + "\x00" + scope
		shared = false
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	u := g.live[key]
	if u == nil || u.srv != s {
		u = &upstream{g: g, srv: s, principal: principal}
		if !shared {
			u.alone = make(chan struct{}, 1)
		}
		if g.closed {
			return u
		}
		g.live[key] = u
	}
	return u
}

// acquire returns a connected session. It must be released.
func (u *upstream) acquire(ctx context.Context) (*session, error) {
	for {
		restart := u.srv.restarted()
		u.mu.Lock()
		if u.live != nil && u.users == 0 && u.live.began.Before(restart) {
			old := u.live
			u.live = nil
			u.mu.Unlock()
			old.w.close()
			continue
		}
		if u.live != nil {
			select {
			case <-u.live.w.ended():
				u.live = nil
			default:
				u.users++
				u.used = time.Now()
				s := u.live
				u.mu.Unlock()
				return s, nil
			}
		}
		if u.starting == nil {
			if err := u.srv.mayStart(); err != nil {
				u.mu.Unlock()
				return nil, err
			}
			u.forPages = pagesOf(ctx)
			u.start()
		}
		now := u.starting
		u.mu.Unlock()
		noisy := now.noisy
		if u.patient {
			noisy = nil
		}
		select {
		case <-now.done:
		case <-noisy:
			return nil, now.noise
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
		if now.err != nil {
			return nil, now.err
		}
	}
}

// start connects in the background: a cancelled call does not stop it, nor wait for it. The caller holds the lock.
func (u *upstream) start() {
	ctx, cancel := context.WithTimeout(u.g.ctx, connectTime)
	now, closing := &start{cancel: cancel, done: make(chan struct{}), noisy: make(chan struct{})}, u.closing
	u.starting, u.closing = now, nil
	go func() {
		defer cancel()
		if closing != nil {
			<-closing
		}
		go u.listenForNoise(now)
		s, err := u.connect(ctx)
		u.mu.Lock()
		defer u.mu.Unlock()
		u.starting, u.live, now.err = nil, s, err
		u.srv.slow("")
		close(now.done)
	}()
}

// listenForNoise tells the callers that wait for a start if the server is not ready after noiseTime and has written
// something else than messages. The start goes on: some servers log while they load.
func (u *upstream) listenForNoise(now *start) {
	tick := time.NewTicker(noiseTime)
	defer tick.Stop()
	for {
		select {
		case <-now.done:
			return
		case <-tick.C:
		}
		if u.tellNoise(now) {
			u.g.cfg.Changed(u.g, false) // its state has changed
			return
		}
		tick.Reset(noiseTime / 5)
	}
}

// tellNoise tells the callers that wait for a start what the server has written, if it has.
func (u *upstream) tellNoise(now *start) bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	w := now.w
	if w == nil || u.starting != now || w.unexpected() == "" {
		return false
	}
	now.noise = fmt.Errorf("it is not ready after %s; a later attempt may succeed%s", noiseTime, w.words())
	u.srv.slow(now.noise.Error())
	close(now.noisy)
	return true
}

// takeTurn waits for the earlier calls on the connection that must run alone, each for at most most. leave ends the
// turn; it may be called twice.
func (u *upstream) takeTurn(ctx context.Context, most time.Duration) (leave func(), err error) {
	if u.alone == nil {
		return func() {}, nil
	}
	select {
	case u.alone <- struct{}{}:
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	end := sync.OnceFunc(func() { <-u.alone })
	if most <= 0 {
		return end, nil
	}
	limit := time.AfterFunc(most, end)
	return func() { limit.Stop(); end() }, nil
}

func (u *upstream) release(*session) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.users--
	u.used = time.Now()
}

// connect starts the server, negotiates the version, and fetches the lists.
func (u *upstream) connect(ctx context.Context) (*session, error) {
	s, err := u.begin(ctx)
	if err != nil && u.renewed(err) {
		s, err = u.begin(ctx)
	}
	if errors.Is(ctx.Err(), context.Canceled) { // the server was stopped: no waiting call may use it, or start it again
		if err == nil {
			s.w.close()
		}
		return nil, errStopped
	}
	if err != nil {
		if ctx.Err() != nil {
			err = fmt.Errorf("it was not ready within %s: %w", connectTime, err)
		}
		if auth, ok := errors.AsType[*authError](err); ok {
			u.remember(auth)
		}
		if u.principal == localPrincipal || !isAuth(err) { // the credentials of one caller must not affect others
			u.srv.failed(err)
		}
		return nil, err
	}
	u.srv.connected()
	u.follow(s)
	return s, nil
}

// begin tries once to connect.
func (u *upstream) begin(ctx context.Context) (*session, error) {
	s := &session{u: u, began: time.Now(), first: !u.srv.store.seen()}
	if err := u.g.dial(u, ctx, s); err != nil {
		return nil, err
	}
	u.mu.Lock()
	if u.starting != nil {
		u.starting.w = s.w
	}
	u.mu.Unlock()
	err := s.agree(ctx, u.srv.store.era())
	if err == nil {
		err = s.learn(ctx)
	}
	if err == nil {
		s.w.initialized()
		return s, nil
	}
	if !isDeath(err) {
		err = fmt.Errorf("%w%s", err, s.w.words())
	}
	s.w.close()
	return nil, err
}

// renewed reports whether the server refused the credentials of a request and there are new ones. Such a request has
// not run.
func (u *upstream) renewed(err error) bool {
	auth, ok := errors.AsType[*authError](err)
	if !ok {
		return false
	}
	e, err := u.srv.expanded()
	return err == nil && (e.HeadersHelper != "" || loginOf(&u.g.cfg, u.srv, e, u.principal).refused(auth))
}

// remember stores the challenge to a request of the local user.
func (u *upstream) remember(auth *authError) {
	if e, err := u.srv.expanded(); err == nil && u.principal == localPrincipal {
		loginOf(&u.g.cfg, u.srv, e, u.principal).remember(auth)
	}
}

func isDeath(err error) bool {
	_, ok := errors.AsType[*errDied](err)
	return ok
}

// follow watches for the end of a session, and subscribes to changes of the lists.
func (u *upstream) follow(s *session) {
	if w, ok := s.w.(*httpWire); ok && s.era == legacyEra {
		asked := make(chan struct{})
		go w.listen(sync.OnceFunc(func() { close(asked) }))
		select { // the stream must be open before a call: the server may answer the call on it
		case <-asked:
		case <-time.After(probeTime):
		}
	}
	if t := s.capabilities.Tools; s.era == modernEra && t != nil && t.ListChanged {
		go s.request(u.g.ctx, "subscriptions/listen",
			map[string]any{"notifications": map[string]any{"toolsListChanged": true}})
	}
	go func() {
		<-s.w.ended()
		s.noteEnd()
	}()
}

// noteEnd records the death of the server once.
func (s *session) noteEnd() {
	if isStopped(s.w) {
		s.end.Do(func() {
			if why := s.w.why(); isDeath(why) {
				s.u.srv.died(why)
			}
		})
	}
}

// open connects the wire.
func (u *upstream) open(ctx context.Context, s *session) error {
	if u.srv.Refused != "" {
		return errors.New(u.srv.Refused)
	}
	e, err := u.srv.expanded()
	if err != nil {
		return err
	}
	if e.Type == typeHTTP {
		login := loginOf(&u.g.cfg, u.srv, e, u.principal)
		headers := u.headers(e, login)
		if _, err := headers(ctx); err != nil { // before the probe, whose timeout is short
			return err
		}
		w := newHTTPWire(e, headers, s)
		w.client.Transport = prover{w.client.Transport, login}
		s.w = w
		return nil
	}
	if err := u.g.makeRoom(u); err != nil {
		return err
	}
	return u.openProcess(ctx, e, s)
}

// headers returns a function that returns the headers for a request.
func (u *upstream) headers(e *Entry, login *login) func(context.Context) (http.Header, error) {
	helped := sync.OnceValues(func() (map[string]string, error) { return runHelper(u.g.ctx, u.g.cfg, e) })
	return func(ctx context.Context) (http.Header, error) {
		all := http.Header{}
		token, err := login.header(ctx)
		if err != nil {
			return nil, err
		}
		if token != "" {
			all.Set("Authorization", token)
		}
		more, err := helped()
		if err != nil {
			return nil, err
		}
		for _, headers := range []map[string]string{e.Headers, more} {
			for name, value := range headers {
				all.Set(name, value)
			}
		}
		return all, nil
	}
}

// declared returns the client capabilities for a server. pages says that the client shows the addresses of pages.
func (u *upstream) declared(pages bool) map[string]any {
	elicitation := map[string]any{}
	if pages {
		elicitation = map[string]any{"form": map[string]any{}, "url": map[string]any{}}
	}
	return map[string]any{"elicitation": elicitation, "roots": map[string]any{}}
}

// pagesKey is the context key of [builtin.Client].OpensPages of the call.
type pagesKey struct{}

func pagesOf(ctx context.Context) bool {
	pages, _ := ctx.Value(pagesKey{}).(bool)
	return pages
}

// opensPages reports whether the client of the call that started the connection shows the addresses of pages.
func (u *upstream) opensPages() bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.forPages
}

// roots returns the response to roots/list. It is empty for a server that does not see the workspace.
func (u *upstream) roots() json.RawMessage {
	list := []map[string]string{}
	if u.srv.workspace() {
		for _, root := range u.g.cfg.Roots {
			list = append(list, map[string]string{"uri": (&url.URL{Scheme: "file", Path: filepath.ToSlash(root)}).String(),
				"name": filepath.Base(root)})
		}
	}
	return marshal(map[string]any{"roots": list})
}

// stopSession closes a session that must not be used again.
func (u *upstream) stopSession(s *session) {
	u.mu.Lock()
	if u.live == s {
		u.live = nil
	}
	u.mu.Unlock()
	s.w.close()
}
