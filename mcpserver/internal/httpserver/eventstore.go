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

// A legacy client that has lost the stream of a call takes it up again by a GET with the id of the last event it saw
// ("Resumability and Redelivery" of the revision 2025-11-25). The library would keep every event of a session for as
// long as the session lives, and knows nothing of the streams that calls have here; so they are kept here, for a time
// and up to a size.
const (
	// keptTime is how long the events of an answered call are kept.
	keptTime = 5 * time.Minute
	// maxKeptStreams and maxKeptBytes bound what is kept for all sessions; the oldest streams go first, of the principal that has
	// most.
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
	principal string        // the principal
	element   *list.Element // guarded by of.mu

	mu     sync.Mutex
	events [][]byte
	ended  time.Time     // when the answer was added; zero while the call runs
	moved  bool          // another connection has taken the stream over
	more   chan struct{} // closed when there is more, or the end
}

// An eventStore holds the streams of all sessions, oldest first.
type eventStore struct {
	mu           sync.Mutex
	byID         map[string]*eventLog
	byAge        *list.List
	bytes        int
	perPrincipal map[string]*storeLoad // principal
}

// A storeLoad is what is kept for one principal.
type storeLoad struct{ streams, bytes int }

func newEventStore() *eventStore {
	return &eventStore{byID: map[string]*eventLog{}, byAge: list.New(), perPrincipal: map[string]*storeLoad{}}
}

// open starts keeping the stream of a call in a session of a principal.
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

// largestHolder returns the principal with the largest load.
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

func (s *eventLog) stale(now time.Time) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return !s.ended.IsZero() && now.Sub(s.ended) > keptTime
}

// drop drops a stream. The caller holds the lock of the store.
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

// finish records that the answer was added.
func (s *eventLog) finish() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ended = time.Now()
	close(s.more)
	s.more = make(chan struct{})
}

// after returns the events after the n-th, whether they are the last, and a channel that is closed when there are more.
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

// resume sends the events of a stream that a client has missed, and then further ones as they come.
func (k *eventStore) resume(ctx context.Context, w *responseStream, session, event string) {
	s, n := k.find(session, event)
	if s == nil {
		writeError(w, http.StatusBadRequest, "the stream of this event is not kept any more: its call may have run, look before you make it again")
		return
	}
	w.Header().Set("Content-Type", "text/event-stream")
	w.WriteHeader(http.StatusOK)
	w.Flush() // the client sees that it is heard
	for {
		events, last, more := s.after(n)
		for _, data := range events {
			n++
			if _, err := w.Write(eventText(s.eventID(n), data)); err != nil {
				return // the client may come again
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

// eventText returns a message as an event of a stream, with an id if the stream can be resumed from there.
func eventText(id string, data []byte) []byte {
	var b []byte
	if id != "" {
		b = fmt.Appendf(b, "id: %s\n", id)
	}
	return append(append(append(b, eventHead...), data...), eventTail...)
}
