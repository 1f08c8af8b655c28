package httpserver

import (
	"container/list"
	"context"
	"crypto/rand"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"
)

// A legacy client that has lost the stream of a call resumes it by a GET with the id of the last event it received
// ("Resumability and Redelivery" of the revision 2025-11-25). The event store of the library is not used: it keeps
// every event as long as the session, and does not know the streams of calls. This one has limits for time and size.
const (
	// keptTime is how long the events of a finished call are kept.
	keptTime = 5 * time.Minute
	// maxKeptStreams and maxKeptBytes limit the streams of all sessions. Above them, the oldest stream of the principal
	// with the most is dropped.
	maxKeptStreams = 1024
	maxKeptBytes   = 64 << 20
	// headerLastEvent is the header with the last event that a client received.
	headerLastEvent = "Last-Event-ID"
)

// An eventLog holds the events of one call.
type eventLog struct {
	store     *eventStore
	id        string
	session   string
	principal string
	element   *list.Element // in store.byAge, guarded by store.mu

	mu     sync.Mutex
	events [][]byte
	ended  time.Time     // when the response was added; zero while the call runs
	moved  bool          // another connection has resumed the stream
	more   chan struct{} // closed after an event was added or the stream has ended
}

// An eventStore holds the streams of all sessions.
type eventStore struct {
	mu           sync.Mutex
	byID         map[string]*eventLog
	byAge        *list.List // of *eventLog, oldest first
	bytes        int
	perPrincipal map[string]*storeLoad
}

// A storeLoad counts what is kept for one principal.
type storeLoad struct{ streams, bytes int }

func newEventStore() *eventStore {
	return &eventStore{byID: map[string]*eventLog{}, byAge: list.New(), perPrincipal: map[string]*storeLoad{}}
}

// open returns a new log for the stream of a call.
func (k *eventStore) open(principal, session string) *eventLog {
	s := &eventLog{store: k, id: rand.Text(), session: session, principal: principal, more: make(chan struct{})}
	k.mu.Lock()
	defer k.mu.Unlock()
	s.element = k.byAge.PushBack(s)
	k.byID[s.id] = s
	if k.perPrincipal[principal] == nil {
		k.perPrincipal[principal] = &storeLoad{}
	}
	k.perPrincipal[principal].streams++
	k.expire(time.Now())
	return s
}

// expire drops streams that are too old or exceed the limits. The caller holds the lock.
func (k *eventStore) expire(now time.Time) {
	for e := k.byAge.Front(); e != nil; {
		s, next := e.Value.(*eventLog), e.Next()
		if s.stale(now) {
			k.drop(s)
		}
		e = next
	}
	for len(k.byID) > maxKeptStreams {
		k.dropOldest(k.largestHolder(func(l *storeLoad) int { return l.streams }))
	}
	for k.bytes > maxKeptBytes {
		k.dropOldest(k.largestHolder(func(l *storeLoad) int { return l.bytes }))
	}
}

// largestHolder returns the principal with the largest load, and the first by name if there are several.
func (k *eventStore) largestHolder(of func(*storeLoad) int) (principal string) {
	most := -1
	for name, l := range k.perPrincipal {
		if n := of(l); n > most || n == most && name < principal {
			principal, most = name, n
		}
	}
	return principal
}

// dropOldest drops the oldest stream of a principal. The caller holds the lock.
func (k *eventStore) dropOldest(principal string) {
	for e := k.byAge.Front(); e != nil; e = e.Next() {
		if s := e.Value.(*eventLog); s.principal == principal {
			k.drop(s)
			return
		}
	}
}

// stale reports whether the call has finished too long ago to keep its events.
func (s *eventLog) stale(now time.Time) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return !s.ended.IsZero() && now.Sub(s.ended) > keptTime
}

// drop removes a stream. The caller holds the lock of the store.
func (k *eventStore) drop(s *eventLog) {
	if k.byID[s.id] == nil {
		return
	}
	k.byAge.Remove(s.element)
	delete(k.byID, s.id)
	s.mu.Lock()
	defer s.mu.Unlock()
	mine := k.perPrincipal[s.principal]
	for _, data := range s.events {
		k.bytes -= len(data)
		mine.bytes -= len(data)
	}
	if mine.streams--; mine.streams == 0 {
		delete(k.perPrincipal, s.principal)
	}
}

// end drops the streams of a session that has ended.
func (k *eventStore) end(session string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, s := range k.byID {
		if s.session == session {
			k.drop(s)
		}
	}
}

// add keeps an event. It returns the event's id, and whether the connection of the call must send it.
func (s *eventLog) add(data []byte) (id string, send bool) {
	s.store.mu.Lock()
	defer s.store.mu.Unlock()
	s.mu.Lock()
	s.events = append(s.events, data)
	id, send = s.eventID(len(s.events)), !s.moved
	close(s.more)
	s.more = make(chan struct{})
	s.mu.Unlock()
	if s.store.byID[s.id] != nil {
		s.store.bytes += len(data)
		s.store.perPrincipal[s.principal].bytes += len(data)
		s.store.expire(time.Now())
	}
	return id, send
}

func (s *eventLog) eventID(n int) string { return fmt.Sprintf("%s-%d", s.id, n) }

// finish marks the stream as complete.
func (s *eventLog) finish() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ended = time.Now()
	close(s.more)
	s.more = make(chan struct{})
}

// after returns the events after the n-th, whether the stream is complete, and a channel that is closed when there are
// more. From then on the connection of the call sends nothing.
func (s *eventLog) after(n int) (events [][]byte, last bool, more <-chan struct{}) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.moved = true
	return s.events[min(n, len(s.events)):], !s.ended.IsZero(), s.more
}

// find returns the stream of an event, and the event's number in it.
func (k *eventStore) find(session, event string) (*eventLog, int) {
	id, number, _ := strings.Cut(event, "-")
	n, err := strconv.Atoi(number)
	k.mu.Lock()
	defer k.mu.Unlock()
	if s := k.byID[id]; s != nil && s.session == session && err == nil && n > 0 {
		return s, n
	}
	return nil, 0
}

// resume sends the events of a stream after the given one, and then new ones until the stream is complete.
func (k *eventStore) resume(ctx context.Context, w *responseStream, session, event string) {
	s, n := k.find(session, event)
	if s == nil {
		writeError(w, http.StatusBadRequest, fmt.Sprintf("the stream of the event %q is not kept: its call may have run, "+
			"check its effects before you repeat it", event))
		return
	}
	w.Header().Set("Content-Type", "text/event-stream")
	w.WriteHeader(http.StatusOK)
	w.Flush() // sends the headers: the next event may take long
	for {
		events, last, more := s.after(n)
		for _, data := range events {
			n++
			if _, err := w.Write(eventText(s.eventID(n), data)); err != nil {
				return // the client has disconnected and may resume again
			}
			w.Flush()
		}
		if last {
			return
		}
		select {
		case <-more:
		case <-ctx.Done():
			return
		}
	}
}

// eventText returns a message as an event. The id is empty if the stream cannot be resumed.
func eventText(id string, data []byte) []byte {
	var b []byte
	if id != "" {
		b = fmt.Appendf(b, "id: %s\n", id)
	}
	return append(append(append(b, eventHead...), data...), eventTail...)
}
