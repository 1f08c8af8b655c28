package httpserver

import (
	"container/list"
	"context"
	"crypto/rand"
	"errors"
	"net/http"
	"sync"
	"time"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"

	"github.com/toolhost/toolhost/mcpserver/auth"
	"github.com/toolhost/toolhost/mcpserver/internal/jsonrpc"
	"github.com/toolhost/toolhost/mcpserver/internal/transport"
)

// MaxSessions limits the legacy sessions. Above it, the longest idle session of the principal with the most is ended.
const MaxSessions = 10_000

// A sessionTable creates and validates the session ids of legacy clients, and binds each to its principal. The library
// would accept every id of the right form, from any principal.
type sessionTable struct {
	limit int
	ended func(principal, id string) // called for sessions that the client did not end; may be nil

	mu           sync.Mutex
	known        map[string]*list.Element // of *session, by id
	byUsed       *list.List               // of *session, the longest idle one first
	perPrincipal map[string]int           // number of sessions
}

// A session is one session of a legacy client.
type session struct {
	id, principal string
	valid         context.Context // done when the credential that opened the session is revoked; nil: never
	ctx           context.Context // done when the session ends
	cancel        context.CancelCauseFunc
	used          time.Time
}

// expired reports whether a session was idle for too long or its credential was revoked.
func (s *session) expired(now time.Time) bool {
	return now.Sub(s.used) > SessionIdle || s.valid != nil && s.valid.Err() != nil
}

func newSessionTable(most int) *sessionTable {
	return &sessionTable{limit: most, known: map[string]*list.Element{}, byUsed: list.New(),
		perPrincipal: map[string]int{}}
}

var _ server.SessionIdManagerResolver = (*sessionTable)(nil)

// ResolveSessionIdManager implements server.SessionIdManagerResolver. A caller sees only the sessions of its principal.
func (t *sessionTable) ResolveSessionIdManager(r *http.Request) server.SessionIdManager {
	own := principalSessions{table: t}
	if r != nil {
		own.who = transport.PeerOf(r.Context()).Who
	}
	return own
}

// principalSessions are the sessions of one principal; the zero principal has none.
type principalSessions struct {
	table *sessionTable
	who   auth.Identity
}

// Generate implements server.SessionIdManager.
func (o principalSessions) Generate() string {
	t, id := o.table, rand.Text()
	if o.who.Principal == "" {
		return id
	}
	t.mu.Lock()
	gone := t.makeRoom(time.Now())
	s := &session{id: id, principal: o.who.Principal, valid: o.who.Valid, used: time.Now()}
	s.ctx, s.cancel = context.WithCancelCause(context.Background())
	t.known[id] = t.byUsed.PushBack(s)
	t.perPrincipal[o.who.Principal]++
	t.mu.Unlock()
	t.notifyEnded(gone)
	return id
}

// makeRoom drops the sessions that have been idle too long. If the table is still full, it drops the longest idle
// session of the principal with the most, so that no principal evicts the sessions of others. The caller holds the
// lock, and calls notifyEnded after it has released it.
func (t *sessionTable) makeRoom(now time.Time) (gone []*session) {
	for e := t.byUsed.Front(); e != nil && now.Sub(e.Value.(*session).used) > SessionIdle; e = t.byUsed.Front() {
		gone = append(gone, t.drop(e, nil))
	}
	if len(t.known) < t.limit {
		return gone
	}
	most := ""
	for principal, n := range t.perPrincipal {
		if n > t.perPrincipal[most] || n == t.perPrincipal[most] && principal < most {
			most = principal
		}
	}
	for e := t.byUsed.Front(); e != nil; e = e.Next() {
		if e.Value.(*session).principal == most {
			return append(gone, t.drop(e, nil))
		}
	}
	return gone
}

// drop removes a session and cancels its context with cause. The caller holds the lock.
func (t *sessionTable) drop(e *list.Element, cause error) *session {
	s := t.byUsed.Remove(e).(*session)
	delete(t.known, s.id)
	s.cancel(cause)
	if t.perPrincipal[s.principal]--; t.perPrincipal[s.principal] == 0 {
		delete(t.perPrincipal, s.principal)
	}
	return s
}

// notifyEnded calls t.ended for sessions that were dropped. The caller does not hold the lock.
func (t *sessionTable) notifyEnded(gone []*session) {
	for _, s := range gone {
		if t.ended != nil {
			t.ended(s.principal, s.id)
		}
	}
}

// errSession is the same for a session that does not exist and one of another principal. The library answers it with
// 404.
var errSession = errors.New("this session is unknown or has ended: initialize again")

// Validate implements server.SessionIdManager. It marks the session as used.
func (o principalSessions) Validate(id string) (ended bool, err error) {
	t, now := o.table, time.Now()
	t.mu.Lock()
	e, ok := t.known[id]
	if !ok || e.Value.(*session).principal != o.who.Principal {
		t.mu.Unlock()
		return false, errSession
	}
	s := e.Value.(*session)
	if s.expired(now) {
		t.drop(e, nil)
		t.mu.Unlock()
		t.notifyEnded([]*session{s})
		return false, errSession
	}
	s.used = now
	t.byUsed.MoveToBack(e)
	t.mu.Unlock()
	return false, nil
}

// errEnded is the cause of cancelling a call if its client ends the session.
var errEnded = errors.New("the client has ended the session of this call, and the call with it")

// Terminate implements server.SessionIdManager: the client ends the session.
func (o principalSessions) Terminate(id string) (notAllowed bool, err error) {
	o.table.mu.Lock()
	defer o.table.mu.Unlock()
	if e, ok := o.table.known[id]; ok && e.Value.(*session).principal == o.who.Principal {
		o.table.drop(e, errEnded)
	}
	return false, nil
}

// count returns the number of sessions that have not expired.
func (t *sessionTable) count(now time.Time) (n int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, e := range t.known {
		if !e.Value.(*session).expired(now) {
			n++
		}
	}
	return n
}

// bindContext returns a context that is done when a session ends. The library does not end the streams of a session.
func (t *sessionTable) bindContext(ctx context.Context, id string) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(ctx)
	t.mu.Lock()
	defer t.mu.Unlock()
	e, ok := t.known[id]
	if !ok {
		cancel()
		return ctx, cancel
	}
	forget := context.AfterFunc(e.Value.(*session).ctx, cancel)
	return ctx, func() { forget(); cancel() }
}

// onEnd cancels a call when its client ends the session. A session that makeRoom drops does not cancel its calls.
func (t *sessionTable) onEnd(id string, cancel context.CancelCauseFunc) (forget func() bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	e, ok := t.known[id]
	if !ok {
		return func() bool { return true }
	}
	ctx := e.Value.(*session).ctx
	return context.AfterFunc(ctx, func() {
		if cause := context.Cause(ctx); errors.Is(cause, errEnded) {
			cancel(cause)
		}
	})
}

// codeNoSession is the error code of the official SDKs for an unknown session. Some releases of Claude Code, such as
// 2.1.101, start a new session only after a 404 with this code.
const codeNoSession = -32001

// check validates the session id of a request. It covers GET streams and responses of clients, which the library
// finds by id without asking for the principal. A POST without an id passes: it may be the initialize request. The
// modern era has no sessions: check removes the id.
func (t *sessionTable) check(r *http.Request, who auth.Identity) (status int, refused *jsonrpc.Error) {
	if mcp.IsModernProtocol(r.Header.Get(mcp.HeaderProtocolVersion)) {
		r.Header.Del(server.HeaderKeySessionID)
		return 0, nil
	}
	id := r.Header.Get(server.HeaderKeySessionID)
	if id == "" {
		if r.Method == http.MethodGet || r.Method == http.MethodDelete {
			return http.StatusBadRequest, &jsonrpc.Error{Code: mcp.INVALID_REQUEST,
				Text: "the Mcp-Session-Id header is missing"}
		}
		return 0, nil
	}
	if _, err := (principalSessions{t, who}).Validate(id); err != nil {
		return http.StatusNotFound, &jsonrpc.Error{Code: codeNoSession, Text: err.Error()}
	}
	return 0, nil
}

// end releases what is kept for a session after it has ended.
func (d *handler) end(principal, id string) {
	d.events.end(id)
	d.host.EndSession(principal, id)
}

// forget ends a session that the table has dropped. It sends the library a DELETE, because that is the only way to end
// one there before it has been idle for [SessionIdle].
func (d *handler) forget(principal, id string) {
	r, err := http.NewRequestWithContext(d.base, http.MethodDelete, Endpoint, nil)
	if err != nil {
		return // not reached: Endpoint is a valid URL
	}
	r.Header.Set(server.HeaderKeySessionID, id)
	d.next.ServeHTTP(&discardWriter{header: http.Header{}}, r)
	d.end(principal, id)
}

// A discardWriter discards a response.
type discardWriter struct{ header http.Header }

func (u *discardWriter) Header() http.Header         { return u.header }
func (u *discardWriter) WriteHeader(int)             {}
func (u *discardWriter) Write(p []byte) (int, error) { return len(p), nil }
