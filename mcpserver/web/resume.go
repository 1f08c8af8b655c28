package web

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
	// maxKeptStreams and maxKeptBytes bound what is kept for all sessions; the oldest streams go first of whoever has
	// most.
	maxKeptStreams = 1024
	maxKeptBytes   = 64 << 20
	// headerLastEvent names the last event that a client saw.
	headerLastEvent = "Last-Event-ID"
)

// A keptStream holds the events of one call.
type keptStream struct {
	of      *keptStreams
	id      string
	session string
	whose   string        // the principal
	element *list.Element // guarded by of.mu

	mu     sync.Mutex
	events [][]byte
	ended  time.Time     // when the answer was added; zero while the call runs
	moved  bool          // another connection has taken the stream over
	more   chan struct{} // closed when there is more, or the end
}

// keptStreams are the streams of all sessions, the oldest first.
type keptStreams struct {
	mu    sync.Mutex
	byID  map[string]*keptStream
	byAge *list.List
	bytes int
	by    map[string]*keptLoad // principal
}

// A keptLoad is what is kept for one principal.
type keptLoad struct{ streams, bytes int }

func newKeptStreams() *keptStreams {
	return &keptStreams{byID: map[string]*keptStream{}, byAge: list.New(), by: map[string]*keptLoad{}}
}

// open begins to keep the stream of a call in a session of a principal.
func (k *keptStreams) open(principal, session string) *keptStream {
	s := &keptStream{of: k, id: rand.Text(), session: session, whose: principal, more: make(chan struct{})}
	k.mu.Lock()
	defer k.mu.Unlock()
	s.element = k.byAge.PushBack(s)
	k.byID[s.id] = s
	if k.by[principal] == nil {
		k.by[principal] = &keptLoad{}
	}
	k.by[principal].streams++
	k.tidy(time.Now())
	return s
}

// tidy drops what is too old or too much. The caller holds the lock.
func (k *keptStreams) tidy(now time.Time) {
	for e := k.byAge.Front(); e != nil; {
		s, next := e.Value.(*keptStream), e.Next()
		if s.stale(now) {
			k.drop(s)
		}
		e = next
	}
	for len(k.byID) > maxKeptStreams {
		k.dropOldest(k.greediest(func(l *keptLoad) int { return l.streams }))
	}
	for k.bytes > maxKeptBytes {
		k.dropOldest(k.greediest(func(l *keptLoad) int { return l.bytes }))
	}
}

// greediest is the principal for whom most is kept.
func (k *keptStreams) greediest(of func(*keptLoad) int) (principal string) {
	most := -1
	for name, l := range k.by {
		if n := of(l); n > most || n == most && name < principal {
			principal, most = name, n
		}
	}
	return principal
}

// dropOldest forgets the oldest stream of a principal. The caller holds the lock.
func (k *keptStreams) dropOldest(principal string) {
	for e := k.byAge.Front(); e != nil; e = e.Next() {
		if s := e.Value.(*keptStream); s.whose == principal {
			k.drop(s)
			return
		}
	}
}

func (s *keptStream) stale(now time.Time) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return !s.ended.IsZero() && now.Sub(s.ended) > keptTime
}

// drop forgets a stream. The caller holds the lock of the table.
func (k *keptStreams) drop(s *keptStream) {
	if k.byID[s.id] == nil {
		return
	}
	k.byAge.Remove(s.element)
	delete(k.byID, s.id)
	s.mu.Lock()
	defer s.mu.Unlock()
	mine := k.by[s.whose]
	for _, data := range s.events {
		k.bytes -= len(data)
		mine.bytes -= len(data)
	}
	if mine.streams--; mine.streams == 0 {
		delete(k.by, s.whose)
	}
}

// end forgets the streams of a session that has ended.
func (k *keptStreams) end(session string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, s := range k.byID {
		if s.session == session {
			k.drop(s)
		}
	}
}

// add keeps an event. It returns the event's id, and whether the connection of the call is to send it.
func (s *keptStream) add(data []byte) (id string, send bool) {
	s.of.mu.Lock()
	defer s.of.mu.Unlock()
	s.mu.Lock()
	s.events = append(s.events, data)
	id, send = s.eventID(len(s.events)), !s.moved
	close(s.more)
	s.more = make(chan struct{})
	s.mu.Unlock()
	if s.of.byID[s.id] != nil {
		s.of.bytes += len(data)
		s.of.by[s.whose].bytes += len(data)
		s.of.tidy(time.Now())
	}
	return id, send
}

func (s *keptStream) eventID(n int) string { return fmt.Sprintf("%s-%d", s.id, n) }

// finish says that the answer was added.
func (s *keptStream) finish() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ended = time.Now()
	close(s.more)
	s.more = make(chan struct{})
}

// after returns the events behind the n-th, whether they are the last, and what is closed when there are more.
func (s *keptStream) after(n int) (events [][]byte, last bool, more <-chan struct{}) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.moved = true
	return s.events[min(n, len(s.events)):], !s.ended.IsZero(), s.more
}

// find is the stream of an event, and the event's number in it.
func (k *keptStreams) find(session, event string) (*keptStream, int) {
	id, number, _ := strings.Cut(event, "-")
	n, err := strconv.Atoi(number)
	k.mu.Lock()
	defer k.mu.Unlock()
	if s := k.byID[id]; s != nil && s.session == session && err == nil && n > 0 {
		return s, n
	}
	return nil, 0
}

// resume sends what a client has missed of a stream, and what is still to come.
func (k *keptStreams) resume(ctx context.Context, w *callStream, session, event string) {
	s, n := k.find(session, event)
	if s == nil {
		deny(w, http.StatusBadRequest, "the stream of this event is not kept any more: its call may have run, look before you make it again")
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

// eventText is a message as an event of a stream, with an id if it can be taken up from there.
func eventText(id string, data []byte) []byte {
	var b []byte
	if id != "" {
		b = fmt.Appendf(b, "id: %s\n", id)
	}
	return append(append(append(b, eventHead...), data...), eventTail...)
}
