package mcpserver

import (
	"crypto/rand"
	"errors"
	"net/http"
	"sync"
	"time"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"
)

// MaxSessions is how many legacy sessions are remembered; beyond it the longest idle one goes.
const MaxSessions = 10_000

// A sessionTable makes and remembers the session ids of legacy clients. Ids are ours alone: the library
// would accept any that look right, and would bind none to its principal.
type sessionTable struct {
	principal string

	mu    sync.Mutex
	known map[string]time.Time // last use
}

func newSessionTable(principal string) *sessionTable {
	return &sessionTable{principal: principal, known: map[string]time.Time{}}
}

var _ server.SessionIdManagerResolver = (*sessionTable)(nil)

// ResolveSessionIdManager implements the library's interface: the table serves every request.
func (t *sessionTable) ResolveSessionIdManager(*http.Request) server.SessionIdManager { return t }

// Generate makes the id of a new session.
func (t *sessionTable) Generate() string {
	id := rand.Text()
	now := time.Now()
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.known) >= MaxSessions {
		t.forget(now)
	}
	t.known[id] = now
	return id
}

// forget drops the sessions that have been idle too long, or else the longest idle one. The caller holds the lock.
func (t *sessionTable) forget(now time.Time) {
	oldest := ""
	for id, used := range t.known {
		if now.Sub(used) > SessionIdle {
			delete(t.known, id)
		} else if oldest == "" || used.Before(t.known[oldest]) {
			oldest = id
		}
	}
	if len(t.known) >= MaxSessions {
		delete(t.known, oldest)
	}
}

// errSession answers an id that is not one of ours; the library turns it into 404.
var errSession = errors.New("this session is unknown or has ended: initialize again")

// Validate reports whether a session is alive.
func (t *sessionTable) Validate(id string) (ended bool, err error) {
	now := time.Now()
	t.mu.Lock()
	defer t.mu.Unlock()
	used, ok := t.known[id]
	if !ok || now.Sub(used) > SessionIdle {
		delete(t.known, id)
		return false, errSession
	}
	t.known[id] = now
	return false, nil
}

// Terminate ends a session.
func (t *sessionTable) Terminate(id string) (notAllowed bool, err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.known, id)
	return false, nil
}

// check holds the session id of a legacy request before the library sees it, GET streams included, which
// the library never validates. It returns status 0 when the request may pass. A POST without an id passes
// here: it may be the initialize request.
func (t *sessionTable) check(r *http.Request) (status int, text string) {
	if mcp.IsModernProtocol(r.Header.Get(mcp.HeaderProtocolVersion)) {
		return 0, ""
	}
	id := r.Header.Get(server.HeaderKeySessionID)
	if id == "" {
		if r.Method == http.MethodGet || r.Method == http.MethodDelete {
			return http.StatusBadRequest, "the Mcp-Session-Id header is missing"
		}
		return 0, ""
	}
	if _, err := t.Validate(id); err != nil {
		return http.StatusNotFound, err.Error()
	}
	return 0, ""
}
