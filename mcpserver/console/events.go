package console

import (
	"fmt"
	"net/http"
	"strconv"
	"time"

	"github.com/toolhost/toolhost/mcpserver"
)

const (
	// settleTime is how long a change waits for others, so that a busy host does not keep its pages redrawing.
	settleTime = 200 * time.Millisecond
	// heartbeat is how often a page is told that it is up to date, and tasks are looked at, which end untold.
	heartbeat = 2 * time.Second
	// outputWait is how long a request for a task's output waits for some.
	outputWait = 20 * time.Second
)

// stream tells a page when something has changed; it then fetches what it shows. An event holds the number of
// questions that wait.
func (s *Server) stream(w http.ResponseWriter, v pageRequest) {
	leave, ok := s.console.attach()
	if !ok {
		http.Error(w, fmt.Sprintf("%d pages are kept up to date already: close one.", MaxPages), http.StatusServiceUnavailable)
		return
	}
	defer leave()
	w.Header().Set("Content-Type", "text/event-stream")
	w.Header().Set("X-Accel-Buffering", "no") // a proxy must not hold it back
	out := http.NewResponseController(w)
	tick := time.NewTicker(heartbeat)
	defer tick.Stop()
	tasks, event := "", "change"
	for {
		changed, waiting := s.console.next()
		if now := s.taskStates(); now != tasks {
			tasks, event = now, "change"
		}
		// A page that is gone or does not read is given up, and so is one whose session has ended.
		_ = out.SetWriteDeadline(time.Now().Add(writeTime))
		_, err := fmt.Fprintf(w, "event: %s\ndata: %d\n\n", event, waiting)
		if err != nil || out.Flush() != nil {
			return
		}
		select {
		case <-changed:
			event = "change"
		case <-tick.C:
			event = "beat"
		case <-v.Context().Done():
			return
		case <-s.closing.Done():
			return
		}
		if _, ok := s.sessions.session(v.Request); !ok {
			return
		}
		if event == "change" && !s.pause(v, settleTime) {
			return
		}
	}
}

// pause waits, and reports whether the page is still there.
func (s *Server) pause(v pageRequest, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-v.Context().Done():
	case <-s.closing.Done():
	}
	return false
}

// taskStates stands for which tasks there are and how they are.
func (s *Server) taskStates() string {
	var b []byte
	for _, t := range s.operator.Tasks() {
		b = strconv.AppendBool(append(append(b, t.ID...), ' '), t.Done)
	}
	return string(b)
}

// The headers of an answer to a request for a task's output.
const (
	headerNext = "X-Task-Next" // where to read on from
	headerDone = "X-Task-Done" // how the task ended; absent while it runs
)

// taskOutput answers with what a task has written from an offset on, as plain text, once there is some.
func (s *Server) taskOutput(w http.ResponseWriter, v pageRequest) {
	task, ok := s.findTask(v.PathValue("key"))
	from, err := strconv.ParseInt(v.PathValue("from"), 10, 64)
	if !ok || err != nil || from < 0 {
		http.Error(w, noTask, http.StatusNotFound)
		return
	}
	chunk, err := s.operator.TaskOutput(v.Context(), task, from, outputWait)
	if _, ok := s.sessions.session(v.Request); !ok { // it was left, or grew too old, meanwhile
		showLocked(w, http.StatusUnauthorized, "")
		return
	}
	if err != nil {
		http.Error(w, mcpserver.Sanitize(err.Error()), http.StatusGone)
		return
	}
	_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(writeTime))
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.Header().Set(headerNext, strconv.FormatInt(chunk.Next, 10))
	if chunk.Done {
		w.Header().Set(headerDone, taskEnd(chunk))
	}
	text := mcpserver.Sanitize(chunk.Text)
	if chunk.Offset > from {
		text = fmt.Sprintf("[%d bytes before this are no longer kept.]\n", chunk.Offset-from) + text
	}
	if chunk.Done {
		text += mcpserver.Sanitize(chunk.Line)
	}
	_, _ = w.Write([]byte(text)) // who has gone needs no answer
}
