package mcpserver

import (
	"sync/atomic"
	"time"

	"github.com/toolhost/toolhost/builtin"
)

// Stats describes the current state of a host.
type Stats struct {
	// Scopes counts the scopes that are held, by how they are named: handle, mcp-session, process, principal,
	// command line, or the key in _meta.
	Scopes map[string]int
	// Sessions is the number of legacy MCP sessions over HTTP.
	Sessions int
	// Tasks is the number of running background tasks.
	Tasks int
	// ResultBytes is the size of the stored results of all hosts on this state directory. It may be [statsAge]
	// old.
	ResultBytes int64
	// AuditFailures counts the calls that could not be recorded, or were refused because of that.
	AuditFailures uint64
	// AuthFailures counts the requests that were refused because they had no valid credential.
	AuthFailures uint64
	// Sandbox is the name of the containment of commands, or empty. Enforces describes what it enforces.
	Sandbox  string
	Enforces map[string]bool
	// Search describes the search cache of each root.
	Search map[string]builtin.SearchStats
}

// counts holds the counters of a host that no other part keeps.
type counts struct {
	sessions     atomic.Pointer[func(now time.Time) int] // nil until HTTP is served
	unauthorised atomic.Uint64                           // requests without a valid credential
	results      recent[int64]
}

// sessionsNow returns how many legacy sessions there are.
func (c *counts) sessionsNow() int {
	if alive := c.sessions.Load(); alive != nil {
		return (*alive)(time.Now())
	}
	return 0
}

// statsAge is how long the size of a directory is reused. Computing it takes a walk.
const statsAge = 15 * time.Second
