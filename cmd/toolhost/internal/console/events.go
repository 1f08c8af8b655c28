package console

import (
	"context"
	"fmt"
	"net/http"
	"time"
)

const (
	// settleTime is the least time between two events of calls, so that a busy host does not keep its pages redrawing.
	settleTime = 200 * time.Millisecond
	// heartbeat is how often a page is told that it is up to date, and tasks are polled, whose end sends no notice.
	heartbeat = 2 * time.Second
	// outputWait is how long a request for a task's output waits for some.
	outputWait = 20 * time.Second
)

// stream tells a page when something has changed; it then fetches what it shows. An event holds the number of
// questions that wait.
func (s livePages) stream(w http.ResponseWriter, v pageRequest) {
	leave, ok := s.console.attach()
	if !ok {
		http.Error(w, fmt.Sprintf("%d pages are kept up to date already: close one.", MaxPages), http.StatusServiceUnavailable)
		return
	}
	defer leave()
	w.Header().Set("Content-Type", "text/event-stream")
	w.Header().Set("X-Accel-Buffering", "no") // a proxy must not hold it back
	ctx, cancel := context.WithCancel(v.Context())
	defer cancel()
	defer context.AfterFunc(s.closing, cancel)()
	out, tasks := http.NewResponseController(w), taskPages(s)
	s.console.follow(ctx, tasks.states, func(event string, waiting int) bool {
		if _, ok := s.sessions.session(v.Request); !ok { // it was left, or grew too old
			return false
		}
		_ = out.SetWriteDeadline(time.Now().Add(writeTime)) // give up a page that is gone or does not read
		_, err := fmt.Fprintf(w, "event: %s\ndata: %d\n\n", event, waiting)
		return err == nil && out.Flush() == nil
	})
}

// follow calls send at once, after each change and with each heartbeat, until ctx is done or send returns false.
// Changes within settleTime of an event are sent together; a question is sent at once. also represents what changes
// without a notice.
func (c *Console) follow(ctx context.Context, also func() string, send func(event string, waiting int) bool) {
	tick := time.NewTicker(heartbeat)
	defer tick.Stop()
	var told notice
	last := ""
	for {
		n, now := c.next(), also()
		// Told by comparing, as a change and the tick may come at the same time.
		event := "beat"
		if n.changed != told.changed || now != last {
			event = "change"
		}
		told, last = n, now
		if !send(event, n.waiting) {
			return
		}
		if event == "change" {
			select {
			case <-time.After(settleTime):
			case <-n.asked:
			case <-ctx.Done():
				return
			}
		}
		select {
		case <-n.changed:
		case <-tick.C:
		case <-ctx.Done():
			return
		}
	}
}
