package mcpserver

import (
	"sync/atomic"
	"time"

	"github.com/toolhost/toolhost/builtin"
)

// Stats is what a host holds at this moment.
type Stats struct {
	// Scopes counts the scopes that are remembered, by what names them: handle, mcp-session, process, principal,
	// command line, or the key in _meta.
	Scopes map[string]int
	// Sessions are the legacy MCP sessions over HTTP.
	Sessions int
	// Tasks are the background tasks that run.
	Tasks int
	// ResultBytes is the size of the results that are kept, of all hosts on this state directory. It may be as
	// old as [statsAge].
	ResultBytes int64
	// AuditFailures counts the calls that could not be recorded, or were refused because of that.
	AuditFailures uint64
	// AuthFailures counts the requests that were refused for want of a valid credential.
	AuthFailures uint64
	// Sandbox is what contains commands; empty when nothing does. Enforces tells what it holds.
	Sandbox  string
	Enforces map[string]bool
	// Search is what is cached of each root for searches.
	Search map[string]builtin.SearchStats
}

// counts are the counters of a host that are in no other part of it.
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

// statsAge is how old the size of a directory may be, which takes a walk to compute.
const statsAge = 15 * time.Second
