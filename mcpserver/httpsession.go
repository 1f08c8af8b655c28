package mcpserver

import (
	"context"
	"crypto/rand"
	"errors"
	"net/http"
	"sync"
	"time"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"

	"toolhost/mcpserver/auth"
)

// MaxSessions is how many legacy sessions are remembered; beyond it the longest idle one goes of whoever has most.
const MaxSessions = 10_000

// A sessionTable makes and remembers the session ids of legacy clients. Ids are ours alone, and good for whom they
// were made: the library would accept any that look right, and would bind none to its principal.
type sessionTable struct {
	mu    sync.Mutex
	known map[string]*webSession
}

// A webSession is one session of a legacy client.
type webSession struct {
	principal string
	valid     context.Context // ends with the credential that opened it; nil: never
	used      time.Time
}

// over reports whether a session has ended by itself.
func (s *webSession) over(now time.Time) bool {
	return now.Sub(s.used) > SessionIdle || s.valid != nil && s.valid.Err() != nil
}

func newSessionTable() *sessionTable { return &sessionTable{known: map[string]*webSession{}} }

var _ server.SessionIdManagerResolver = (*sessionTable)(nil)

// ResolveSessionIdManager implements the library's interface: who calls sees its own sessions only.
func (t *sessionTable) ResolveSessionIdManager(r *http.Request) server.SessionIdManager {
	own := ownSessions{table: t}
	if r != nil {
		if c, ok := clientOf(r.Context()); ok {
			own.who = c.who
		}
	}
	return own
}

// ownSessions are the sessions of one principal; the zero principal has none.
type ownSessions struct {
	table *sessionTable
	who   auth.Identity
}

// Generate makes the id of a new session.
func (o ownSessions) Generate() string {
	id := rand.Text()
	now := time.Now()
	o.table.mu.Lock()
	defer o.table.mu.Unlock()
	if len(o.table.known) >= MaxSessions {
		o.table.forget(now)
	}
	if o.who.Principal != "" {
		o.table.known[id] = &webSession{principal: o.who.Principal, valid: o.who.Valid, used: now}
	}
	return id
}

// forget drops the sessions that are over, or else the longest idle one of the principal that has most, so that nobody
// pushes out another's. The caller holds the lock.
func (t *sessionTable) forget(now time.Time) {
	count, most := map[string]int{}, ""
	for id, s := range t.known {
		if s.over(now) {
			delete(t.known, id)
			continue
		}
		if count[s.principal]++; count[s.principal] > count[most] {
			most = s.principal
		}
	}
	oldest := ""
	for id, s := range t.known {
		if s.principal == most && (oldest == "" || s.used.Before(t.known[oldest].used)) {
			oldest = id
		}
	}
	if len(t.known) >= MaxSessions {
		delete(t.known, oldest)
	}
}

// errSession answers an id that is not one of the caller's; the library turns it into 404. Whether it is another's is
// not told.
var errSession = errors.New("this session is unknown or has ended: initialize again")

// Validate reports whether a session is alive.
func (o ownSessions) Validate(id string) (ended bool, err error) {
	now := time.Now()
	o.table.mu.Lock()
	defer o.table.mu.Unlock()
	s, ok := o.table.known[id]
	if !ok || s.principal != o.who.Principal {
		return false, errSession
	}
	if s.over(now) {
		delete(o.table.known, id)
		return false, errSession
	}
	s.used = now
	return false, nil
}

// Terminate ends a session.
func (o ownSessions) Terminate(id string) (notAllowed bool, err error) {
	o.table.mu.Lock()
	defer o.table.mu.Unlock()
	if s, ok := o.table.known[id]; ok && s.principal == o.who.Principal {
		delete(o.table.known, id)
	}
	return false, nil
}

// check holds the session id of a request before the library sees it, GET streams and answers of clients included,
// which the library looks for by id alone. It returns status 0 when the request may pass. A POST without an id passes
// here: it may be the initialize request. In the modern era there are no sessions, and an id is taken off.
func (t *sessionTable) check(r *http.Request, who auth.Identity) (status int, text string) {
	if mcp.IsModernProtocol(r.Header.Get(mcp.HeaderProtocolVersion)) {
		r.Header.Del(server.HeaderKeySessionID)
		return 0, ""
	}
	id := r.Header.Get(server.HeaderKeySessionID)
	if id == "" {
		if r.Method == http.MethodGet || r.Method == http.MethodDelete {
			return http.StatusBadRequest, "the Mcp-Session-Id header is missing"
		}
		return 0, ""
	}
	if _, err := (ownSessions{t, who}).Validate(id); err != nil {
		return http.StatusNotFound, err.Error()
	}
	return 0, ""
}
