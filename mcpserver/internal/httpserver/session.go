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

// MaxSessions is how many legacy sessions are remembered; beyond it the longest idle one of the principal with most goes.
const MaxSessions = 10_000

// A sessionTable makes and remembers the session ids of legacy clients. Ids are ours alone, and good for whom they
// were made: the library would accept any that look right, and would bind none to its principal.
type sessionTable struct {
	limit int // at once
	// ended is called for a session that its client did not end. Nil: it is not called.
	ended func(principal, id string)

	mu           sync.Mutex
	known        map[string]*list.Element // of *session
	byUsed       *list.List               // the longest idle one first
	perPrincipal map[string]int           // principal → how many sessions it has
}

// A session is one session of a legacy client.
type session struct {
	id, principal string
	valid         context.Context // ends with the credential that opened it; nil: never
	ctx           context.Context // ends with the session
	cancel        context.CancelCauseFunc
	used          time.Time
}

// expired reports whether a session has ended by itself.
func (s *session) expired(now time.Time) bool {
	return now.Sub(s.used) > SessionIdle || s.valid != nil && s.valid.Err() != nil
}

func newSessionTable(most int) *sessionTable {
	return &sessionTable{limit: most, known: map[string]*list.Element{}, byUsed: list.New(), perPrincipal: map[string]int{}}
}

var _ server.SessionIdManagerResolver = (*sessionTable)(nil)

// ResolveSessionIdManager implements the library's interface: who calls sees its own sessions only.
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

// Generate makes the id of a new session.
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

// makeRoom drops the sessions that have been idle too long, and else the longest idle one of the principal that has
// most, so that no principal pushes out another's. The caller holds the lock, and tells of what was dropped when it does not.
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

// drop forgets a session, for a reason if somebody wanted it. The caller holds the lock.
func (t *sessionTable) drop(e *list.Element, why error) *session {
	s := t.byUsed.Remove(e).(*session)
	delete(t.known, s.id)
	s.cancel(why)
	if t.perPrincipal[s.principal]--; t.perPrincipal[s.principal] == 0 {
		delete(t.perPrincipal, s.principal)
	}
	return s
}

// notifyEnded tells of sessions that were dropped. The caller does not hold the lock.
func (t *sessionTable) notifyEnded(gone []*session) {
	for _, s := range gone {
		if t.ended != nil {
			t.ended(s.principal, s.id)
		}
	}
}

// errSession answers an id that is not one of the caller's; the library turns it into 404. Whether it is another's is
// not told.
var errSession = errors.New("this session is unknown or has ended: initialize again")

// Validate reports whether a session is alive.
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

// errEnded is why a call was cancelled whose client has ended the session.
var errEnded = errors.New("the client has ended the session of this call, and the call with it")

// Terminate ends a session, as its client has asked.
func (o principalSessions) Terminate(id string) (notAllowed bool, err error) {
	o.table.mu.Lock()
	defer o.table.mu.Unlock()
	if e, ok := o.table.known[id]; ok && e.Value.(*session).principal == o.who.Principal {
		o.table.drop(e, errEnded)
	}
	return false, nil
}

// count tells how many sessions have not ended.
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

// bindContext ends a context when a session ends: the library lets a stream go on without its session.
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

// onEnd cancels a call when its client ends the session. One that is dropped for want of room takes no call with it.
func (t *sessionTable) onEnd(id string, cancel context.CancelCauseFunc) (forget func() bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	e, ok := t.known[id]
	if !ok {
		return func() bool { return true }
	}
	life := e.Value.(*session).ctx
	return context.AfterFunc(life, func() {
		if why := context.Cause(life); errors.Is(why, errEnded) {
			cancel(why)
		}
	})
}

// codeNoSession is the code with which servers of the official SDKs say that a session is unknown. Some releases of Claude Code,
// such as 2.1.101, begin a new session on a 404 with this code alone.
const codeNoSession = -32001

// check holds the session id of a request before the library sees it, GET streams and answers of clients included,
// which the library looks for by id alone. It returns no fault when the request may pass. A POST without an id passes
// here: it may be the initialize request. In the modern era there are no sessions, and an id is taken off.
func (t *sessionTable) check(r *http.Request, who auth.Identity) (status int, no *jsonrpc.Error) {
	if mcp.IsModernProtocol(r.Header.Get(mcp.HeaderProtocolVersion)) {
		r.Header.Del(server.HeaderKeySessionID)
		return 0, nil
	}
	id := r.Header.Get(server.HeaderKeySessionID)
	if id == "" {
		if r.Method == http.MethodGet || r.Method == http.MethodDelete {
			return http.StatusBadRequest, &jsonrpc.Error{Code: mcp.INVALID_REQUEST, Text: "the Mcp-Session-Id header is missing"}
		}
		return 0, nil
	}
	if _, err := (principalSessions{t, who}).Validate(id); err != nil {
		return http.StatusNotFound, &jsonrpc.Error{Code: codeNoSession, Text: err.Error()}
	}
	return 0, nil
}

// end forgets what is kept for a session that is no more: the table has dropped it, or its client has ended it.
func (d *handler) end(principal, id string) {
	d.events.end(id)
	d.host.EndSession(principal, id)
}

// forget also lets the library forget a session that the table has dropped: it has no other way to be told than its
// client's, and would remember it until it has been idle for [SessionIdle].
func (d *handler) forget(principal, id string) {
	r, err := http.NewRequestWithContext(d.base, http.MethodDelete, Endpoint, nil)
	if err != nil {
		return // its address is a constant
	}
	r.Header.Set(server.HeaderKeySessionID, id)
	d.next.ServeHTTP(&discardWriter{header: http.Header{}}, r)
	d.end(principal, id)
}

// An discardWriter response goes nowhere.
type discardWriter struct{ header http.Header }

func (u *discardWriter) Header() http.Header         { return u.header }
func (u *discardWriter) WriteHeader(int)             {}
func (u *discardWriter) Write(p []byte) (int, error) { return len(p), nil }
