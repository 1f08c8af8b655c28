package httpserver

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/toolhost/toolhost/mcpserver/internal/jsonrpc"
	"github.com/toolhost/toolhost/mcpserver/internal/transport"
)

// Limits of the HTTP server in addition to those of every host.
const (
	// SessionIdle is how long an idle legacy session lives: longer than the longest command.
	SessionIdle = time.Hour
	// headerTime bounds how long a client may take to send its headers, and a body that the server does not wait for.
	headerTime = 10 * time.Second
	// bodyTime bounds how long a client may take to send a message: [transport.MaxMessage] at about 300 KB a second.
	bodyTime = 2 * time.Minute
	// writeTime bounds how long a client may leave data unread.
	writeTime = time.Minute
	// idleTime is how long a connection without a request is kept.
	idleTime = 2 * time.Minute
	// maxHeader bounds the headers of a request, in bytes.
	maxHeader = 64 << 10
	// MaxStreams is how many streams of legacy sessions may be open without a call.
	MaxStreams = 2048
	// maxInitialize bounds the message that begins a legacy session, in bytes: the client's description in it is kept
	// as long as the session.
	maxInitialize = 64 << 10
	// retryAfter is how long a client should wait after a refusal because of a limit.
	retryAfter = 2 * time.Second
)

// Limits are the limits of one server.
type Limits struct {
	InFlight, Streams         int           // requests, and streams of sessions
	Reading                   int           // messages that are on their way in
	Sessions                  int           // of legacy clients
	Bytes                     int64         // of the messages in flight
	Header, Body, Write, Idle time.Duration // to send each, to read an answer, without a request
}

// UsualLimits returns the limits of every server outside of tests.
func UsualLimits() Limits {
	return Limits{
		InFlight: transport.MaxInFlight, Reading: transport.MaxInFlight, Streams: MaxStreams, Sessions: MaxSessions, Bytes: transport.MaxBytesInFlight,
		Header: headerTime, Body: bodyTime, Write: writeTime, Idle: idleTime,
	}
}

// perPrincipalLimit returns the share of a limit that one principal may use, three quarters, so that some is always
// left for others.
func perPrincipalLimit[N int | int64](all N) N { return max(all-all/4, 1) }

// A load is what requests hold.
type load struct {
	requests, streams, reading int
	bytes                      int64
}

// An admission admits requests while the limits allow it.
type admission struct {
	limits Limits

	mu           sync.Mutex
	total        load
	perPrincipal map[string]*load  // principal
	ids          map[string]*lease // of requests in flight, by session and id
	draining     bool
	empty        chan struct{} // closed when nothing is in flight; nil while nothing waits for that
}

func newAdmission(limits Limits) *admission {
	return &admission{limits: limits, perPrincipal: map[string]*load{}, ids: map[string]*lease{}}
}

// A lease is what one request holds. It must be released; releasing it twice does nothing.
type lease struct {
	admission *admission
	principal string
	held      load
	key       string // of ids

	cancelled atomic.Bool // by the client: no response may be sent
}

func (a *admission) lease(principal string) *lease { return &lease{admission: a, principal: principal} }

// reserve adds d to what the lease holds, unless that exceeds a limit. The caller holds the lock.
func (p *lease) reserve(d load) bool {
	mine := p.admission.perPrincipal[p.principal]
	if mine == nil {
		mine = &load{}
	}
	limits := p.admission.limits
	if over(d.requests, p.admission.total.requests, mine.requests, limits.InFlight) || over(d.streams, p.admission.total.streams, mine.streams, limits.Streams) ||
		over(d.reading, p.admission.total.reading, mine.reading, limits.Reading) || over(d.bytes, p.admission.total.bytes, mine.bytes, limits.Bytes) {
		return false
	}
	for _, l := range []*load{&p.admission.total, mine, &p.held} {
		l.requests += d.requests
		l.streams += d.streams
		l.reading += d.reading
		l.bytes += d.bytes
	}
	if *mine == (load{}) {
		delete(p.admission.perPrincipal, p.principal)
	} else {
		p.admission.perPrincipal[p.principal] = mine
	}
	return true
}

// over reports whether more is requested than is left.
func over[N int | int64](more, all, mine, limit N) bool {
	return more > 0 && (all+more > limit || mine+more > perPrincipalLimit(limit))
}

// admitRead counts a message whose reading begins (1) or ends (-1). A slow sender holds a connection, and none may hold
// so many that others get none. It reports whether the limits allow it.
func (p *lease) admitRead(n int) bool {
	p.admission.mu.Lock()
	defer p.admission.mu.Unlock()
	return p.reserve(load{reading: n})
}

// takeBytes reserves n more bytes for the message.
func (p *lease) takeBytes(n int) bool {
	p.admission.mu.Lock()
	defer p.admission.mu.Unlock()
	return p.reserve(load{bytes: int64(n)})
}

// admitRequest admits the request of a message. In a session an id names one request at a time. Modern requests belong
// to no session, so their ids need not differ. Notifications and answers are always admitted.
func (p *lease) admitRequest(session string, m jsonrpc.Envelope) *httpError {
	if m.Method == "" || m.ID == nil {
		return nil
	}
	key := requestKey(session, m.ID)
	p.admission.mu.Lock()
	defer p.admission.mu.Unlock()
	switch {
	case p.admission.draining:
		return errClosing()
	case session != "" && p.admission.ids[key] != nil:
		return &httpError{status: http.StatusBadRequest, text: fmt.Sprintf("a request with the id %s is still running: give each request an id of its own", m.ID)}
	case !p.reserve(load{requests: 1}):
		return errNoRoom(http.StatusServiceUnavailable, fmt.Sprintf(
			"too many requests are in flight (%d in all, %d of one caller): try again when some are answered", p.admission.limits.InFlight, perPrincipalLimit(p.admission.limits.InFlight)))
	}
	if session != "" {
		p.key, p.admission.ids[key] = key, p
	}
	return nil
}

// requestKey returns the key of a request in admission.ids.
func requestKey(session string, id json.RawMessage) string {
	return session + "\x00" + jsonrpc.IDKey(bytes.TrimSpace(id))
}

// cancel records that the client of a session has cancelled a request.
func (a *admission) cancel(session string, id json.RawMessage) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if p := a.ids[requestKey(session, id)]; p != nil {
		p.cancelled.Store(true)
	}
}

// admitStream admits a stream for messages of the server.
func (p *lease) admitStream() *httpError {
	p.admission.mu.Lock()
	defer p.admission.mu.Unlock()
	switch {
	case p.admission.draining:
		return errClosing()
	case !p.reserve(load{streams: 1}):
		return errNoRoom(http.StatusServiceUnavailable, fmt.Sprintf("too many streams are open (%d in all): try again when some have ended", p.admission.limits.Streams))
	}
	return nil
}

// release returns what the lease holds.
func (p *lease) release() {
	p.admission.mu.Lock()
	defer p.admission.mu.Unlock()
	if p.key != "" {
		delete(p.admission.ids, p.key)
	}
	p.key = ""
	p.reserve(load{requests: -p.held.requests, streams: -p.held.streams, reading: -p.held.reading, bytes: -p.held.bytes})
	if p.admission.empty != nil && p.admission.total.requests == 0 {
		close(p.admission.empty)
		p.admission.empty = nil
	}
}

// drain admits nothing more. The returned channel is closed when everything in flight has been answered.
func (a *admission) drain() <-chan struct{} {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.draining = true
	empty := make(chan struct{})
	if a.total.requests == 0 {
		close(empty)
	} else {
		a.empty = empty
	}
	return empty
}

// closing reports whether the server admits nothing more.
func (a *admission) closing() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.draining
}
