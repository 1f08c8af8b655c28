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

// Limits of the HTTP server, in addition to those of package transport.
const (
	// SessionIdle is how long an idle legacy session lives: longer than the longest command.
	SessionIdle = time.Hour
	// headerTime limits the time to send the headers, and the body of a request that is refused.
	headerTime = 10 * time.Second
	// bodyTime limits the time to send a message: [transport.MaxMessage] at about 300 KB a second.
	bodyTime = 2 * time.Minute
	// writeTime limits the time to read what was sent.
	writeTime = time.Minute
	// idleTime is how long a connection without a request is kept.
	idleTime = 2 * time.Minute
	// maxHeader limits the headers of a request, in bytes.
	maxHeader = 64 << 10
	// MaxStreams limits the streams that wait for events: GET of legacy sessions, and subscriptions.
	MaxStreams = 2048
	// maxInitialize limits an initialize message, in bytes: the client's description in it is kept as long as the
	// session.
	maxInitialize = 64 << 10
	// retryAfter is how long a client should wait after a refusal because of a limit.
	retryAfter = 2 * time.Second
)

// Limits are the limits of one server.
type Limits struct {
	InFlight                  int           // requests
	Streams                   int           // see MaxStreams
	Reading                   int           // messages that are being received
	Sessions                  int           // legacy sessions
	Bytes                     int64         // of all messages in flight
	Header, Body, Write, Idle time.Duration // see headerTime, bodyTime, writeTime, idleTime
}

// UsualLimits returns the limits of every server outside of tests.
func UsualLimits() Limits {
	return Limits{
		InFlight: transport.MaxInFlight, Reading: transport.MaxInFlight, Streams: MaxStreams, Sessions: MaxSessions,
		Bytes:  transport.MaxBytesInFlight,
		Header: headerTime, Body: bodyTime, Write: writeTime, Idle: idleTime,
	}
}

// within returns the limits for a number of connections, see [Config].Connections.
func (l Limits) within(connections int) Limits {
	if connections > 0 {
		quarter := max(connections/4, 1)
		l.InFlight, l.Streams, l.Reading = min(l.InFlight, quarter), min(l.Streams, quarter), min(l.Reading, quarter)
	}
	return l
}

// share returns how much of a limit one principal may use: three quarters of what the others leave, so that two that
// work together leave some for a third.
func share[N int | int64](limit, others N) N { return max((limit-others)*3/4, 1) }

// A load is an amount of the limited resources.
type load struct {
	requests, streams, reading int
	bytes                      int64
}

// An admission admits requests while the limits allow it.
type admission struct {
	limits Limits

	mu           sync.Mutex
	total        load
	perPrincipal map[string]*load
	ids          map[string]*lease // requests in flight, by requestKey
	draining     bool
	empty        chan struct{} // closed when nothing is in flight; nil unless drain waits for that
}

func newAdmission(limits Limits) *admission {
	return &admission{limits: limits, perPrincipal: map[string]*load{}, ids: map[string]*lease{}}
}

// A lease is the load of one request. It must be released. A second release does nothing.
type lease struct {
	admission *admission
	principal string
	held      load
	key       string // in admission.ids

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
	if over(d.requests, p.admission.total.requests, mine.requests, limits.InFlight) ||
		over(d.streams, p.admission.total.streams, mine.streams, limits.Streams) ||
		over(d.reading, p.admission.total.reading, mine.reading, limits.Reading) ||
		over(d.bytes, p.admission.total.bytes, mine.bytes, limits.Bytes) {
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
	return more > 0 && (all+more > limit || mine+more > share(limit, all-mine))
}

// admitRead counts the start (1) or the end (-1) of reading a message, and reports whether the limits allow it. The
// limit keeps slow senders from using up the connections.
func (p *lease) admitRead(n int) bool {
	p.admission.mu.Lock()
	defer p.admission.mu.Unlock()
	return p.reserve(load{reading: n})
}

// takeBytes reserves n more bytes for the message, and reports whether the limits allow it.
func (p *lease) takeBytes(n int) bool {
	p.admission.mu.Lock()
	defer p.admission.mu.Unlock()
	return p.reserve(load{bytes: int64(n)})
}

// admitRequest admits a message. In a session, the ids of running requests must differ. Modern requests have no
// session, so their ids may be equal. Notifications and responses are always admitted.
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
		return &httpError{status: http.StatusBadRequest,
			text: fmt.Sprintf("a request with the id %s is still running: use a different id for each request", m.ID)}
	case !p.reserve(load{requests: 1}):
		return errNoRoom(http.StatusServiceUnavailable, fmt.Sprintf(
			"too many requests are in flight (limits: %d in total, for one caller three quarters of what others leave): try again after some have finished", p.admission.limits.InFlight))
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

// admitStream admits a stream of [MaxStreams].
func (p *lease) admitStream() *httpError {
	p.admission.mu.Lock()
	defer p.admission.mu.Unlock()
	switch {
	case p.admission.draining:
		return errClosing()
	case !p.reserve(load{streams: 1}):
		return errNoRoom(http.StatusServiceUnavailable,
			fmt.Sprintf("too many streams are open (limit: %d in total): try again after some have ended",
				p.admission.limits.Streams))
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
	p.reserve(load{requests: -p.held.requests, streams: -p.held.streams, reading: -p.held.reading,
		bytes: -p.held.bytes})
	if p.admission.empty != nil && p.admission.total.requests == 0 {
		close(p.admission.empty)
		p.admission.empty = nil
	}
}

// drain stops admitting requests and streams. The returned channel is closed when no request is in flight.
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

// closing reports whether drain was called.
func (a *admission) closing() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.draining
}
