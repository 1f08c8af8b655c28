package console

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/http"
	"strconv"

	"github.com/toolhost/toolhost/builtin"
	"github.com/toolhost/toolhost/mcpserver"
)

// The page of what happens now: questions, tasks, calls.

// A liveBody is the first page.
type liveBody struct {
	Token    string
	Closed   string
	Waiting  []question
	Resolved []outcome
	Tasks    []taskView
	Calls    []call
	Since    uint64 // of calls that have not changed since this version the page has everything already
	MaxCalls int

	short func(path string) string
}

func (s *Server) live(v pageRequest) liveBody {
	b := liveBody{Token: v.session.token, Calls: s.console.recent(), Tasks: s.tasks(), MaxCalls: MaxCalls, short: s.short}
	b.Waiting, b.Resolved = s.console.questions()
	if err := s.operator.MayAnswer(); err != nil {
		b.Closed = err.Error()
	}
	return b
}

func (s *Server) showLive(w http.ResponseWriter, v pageRequest) {
	s.liveWith(w, v, "", false, http.StatusOK)
}

func (s *Server) liveWith(w http.ResponseWriter, v pageRequest, said string, failed bool, status int) {
	s.show(w, v, status, layout{Page: "live", Title: "Live", Said: said, Failed: failed, Body: s.live(v)})
}

// showPart renders one list of the first page, for its script.
func (s *Server) showPart(w http.ResponseWriter, v pageRequest) {
	body := s.live(v)
	body.Since, _ = strconv.ParseUint(v.Header.Get(headerSince), 10, 64) // without one the page has nothing yet
	part := body.part(v.PathValue("name"))
	if part == nil {
		http.NotFound(w, v.Request)
		return
	}
	render(w, http.StatusOK, part)
}

// headerSince names the latest version of a call that a page shows.
const headerSince = "X-Since"

// answer takes a decision.
func (s *Server) answer(w http.ResponseWriter, v pageRequest) {
	said, err := s.decide(v)
	s.tell(w, v, said, err, func(text string, failed bool, status int) { s.liveWith(w, v, text, failed, status) })
}

func (s *Server) decide(v pageRequest) (string, error) {
	id, err := strconv.ParseUint(v.PostFormValue("question"), 10, 64)
	if err != nil {
		return "", fmt.Errorf("the form names no question: nothing was decided")
	}
	if err := s.operator.MayAnswer(); err != nil {
		return "", fmt.Errorf("nothing was decided. %w", err)
	}
	return s.console.answer(id, v.PostFormValue("decision"), clip(v.PostFormValue("reason"), maxReason))
}

// maxReason bounds what a person tells the agent with a refusal, in bytes.
const maxReason = 4 << 10

func (s *Server) tasks() []taskView {
	var all []taskView
	for _, t := range s.operator.Tasks() {
		sum := sha256.Sum256([]byte(t.ID))
		all = append(all, taskView{t, hex.EncodeToString(sum[:8])})
	}
	return all
}

func (s *Server) findTask(key string) (builtin.TaskInfo, bool) {
	for _, t := range s.tasks() {
		if t.Key == key {
			return t.TaskInfo, true
		}
	}
	return builtin.TaskInfo{}, false
}

// noTask answers a request for a task that is not known any more.
const noTask = "There is no such task, or it ended too long ago."

// A taskBody is the page of one task.
type taskBody struct {
	Task  taskView
	Text  string
	Next  int64
	Ended string
}

func (s *Server) showTask(w http.ResponseWriter, v pageRequest) {
	s.taskWith(w, v, "", false, http.StatusOK)
}

func (s *Server) taskWith(w http.ResponseWriter, v pageRequest, said string, failed bool, status int) {
	f := layout{Page: "task", Title: "Task", Said: said, Failed: failed}
	task, ok := s.findTask(v.PathValue("key"))
	if !ok {
		f.Page, f.Body, f.Said, f.Failed = "gone", notFound{}, noTask, true
		s.show(w, v, http.StatusNotFound, f)
		return
	}
	body := taskBody{Task: taskView{task, v.PathValue("key")}}
	chunk, err := s.operator.TaskOutput(context.WithoutCancel(v.Context()), task, 0, 0)
	if err != nil {
		f.Said, f.Failed = sentence(err.Error()), true
	}
	body.Text, body.Next = chunk.Text, chunk.Next
	if chunk.Offset > 0 {
		body.Text = fmt.Sprintf("[%d bytes before this are no longer kept.]\n", chunk.Offset) + body.Text
	}
	if chunk.Done {
		body.Text += chunk.Line
		body.Ended = taskEnd(chunk)
	}
	f.Body = body
	s.show(w, v, status, f)
}

// taskEnd says how a task ended.
func taskEnd(c builtin.TaskChunk) string {
	switch r := c.Result; {
	case c.Cause != "":
		return mcpserver.Sanitize(c.Cause)
	case r == nil:
		return "ended"
	case r.TimedOut:
		return "its timeout passed"
	case r.Signal != "":
		return fmt.Sprintf("exit code %d (%s)", r.ExitCode, r.Signal)
	default:
		return fmt.Sprintf("exit code %d", r.ExitCode)
	}
}

// stopTask ends a task and everything it started.
func (s *Server) stopTask(w http.ResponseWriter, v pageRequest) {
	err := fmt.Errorf("%s Nothing was stopped", noTask)
	if task, ok := s.findTask(v.PathValue("key")); ok {
		err = s.operator.StopTask(task)
	}
	s.tell(w, v, "The task was stopped, with everything it started.", err, func(text string, failed bool, status int) {
		s.taskWith(w, v, text, failed, status)
	})
}
