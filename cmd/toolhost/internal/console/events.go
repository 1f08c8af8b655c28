package console

import (
	"context"
	"fmt"
	"net/http"
	"time"
)

const (
	// settleTime is the shortest time between two events about calls, so that pages of a busy host do not redraw all the
	// time.
	settleTime = 200 * time.Millisecond
	// heartbeat is how often a page is told that it is up to date. Tasks are polled as often, because their end causes
	// no notice.
	heartbeat = 2 * time.Second
	// outputWait is how long a request for a task's output waits for output.
	outputWait = 20 * time.Second
)

// stream tells a page when something has changed, so that it fetches its content again. An event contains the number
// of waiting questions.
func (s livePages) stream(w http.ResponseWriter, v pageRequest) {
	leave, ok := s.console.attach()
	if !ok {
		http.Error(w, fmt.Sprintf("%d pages are kept up to date already: close one.", MaxPages),
			http.StatusServiceUnavailable)
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
		if _, ok := s.sessions.session(v.Request); !ok { // logged out or expired
			return false
		}
		_ = out.SetWriteDeadline(time.Now().Add(writeTime)) // gives up on a page that is gone or does not read
		_, err := fmt.Fprintf(w, "event: %s\ndata: %d\n\n", event, waiting)
		return err == nil && out.Flush() == nil
	})
}

// follow calls send at once, after each change and with each heartbeat, until ctx is done or send returns false.
// Changes within settleTime of an event are combined, but a question is sent immediately. also returns a
// representation of the state whose changes cause no notice.
func (c *Console) follow(ctx context.Context, also func() string, send func(event string, waiting int) bool) {
	tick := time.NewTicker(heartbeat)
	defer tick.Stop()
	var told notice
	last := ""
	for {
		n, now := c.next(), also()
		// Changes are found by comparing, because a change and the tick may come at the same time.
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
