package console

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/toolhost/toolhost/builtin"
	"github.com/toolhost/toolhost/mcpserver"
)

// The pages of background tasks.
type taskPages struct{ *website }

func (s taskPages) list() []taskView {
	var all []taskView
	for _, t := range s.operator.Tasks() {
		all = append(all, taskView{t, taskKey(t), lastLine(t)})
	}
	return all
}

// find returns the task with a key, or nil.
func (s taskPages) find(key string) *builtin.Task {
	for _, t := range s.operator.Tasks() {
		if taskKey(t) == key {
			return t
		}
	}
	return nil
}

func taskKey(t *builtin.Task) string {
	sum := sha256.Sum256([]byte(t.ID))
	return hex.EncodeToString(sum[:8])
}

// lastLine returns the last line that a task has written.
func lastLine(t *builtin.Task) string {
	const end, most = 1 << 62, 1 << 10
	ctx := context.Background() // it does not wait
	chunk, _ := t.Output(ctx, end, 0)
	chunk, _ = t.Output(ctx, max(0, chunk.Next-most), 0)
	text := strings.TrimRight(chunk.Text+chunk.Line, "\r\n ")
	return text[strings.LastIndexAny(text, "\r\n")+1:]
}

// noTask is the text for a task that is not known any more.
const noTask = "There is no such task, or it ended too long ago."

// A taskBody is the page of one task.
type taskBody struct {
	Task  taskView
	Text  string
	Next  int64
	Ended string
}

func (s taskPages) show(w http.ResponseWriter, v pageRequest) {
	s.showWith(w, v, "", false, http.StatusOK)
}

func (s taskPages) showWith(w http.ResponseWriter, v pageRequest, said string, failed bool, status int) {
	f := layout{Page: "task", Title: "Task", Said: said, Failed: failed}
	task := s.find(v.PathValue("key"))
	if task == nil {
		s.gone(w, v, "Task", noTask)
		return
	}
	body := taskBody{Task: taskView{Task: task, Key: v.PathValue("key")}}
	chunk, err := task.Output(context.WithoutCancel(v.Context()), 0, 0)
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
	s.write(w, v, status, f)
}

// taskEnd returns a text that says how a task ended.
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

// stop ends a task and everything it started.
func (s taskPages) stop(w http.ResponseWriter, v pageRequest) {
	err := fmt.Errorf("%s Nothing was stopped", noTask)
	if task := s.find(v.PathValue("key")); task != nil {
		_, err = task.Stop("")
	}
	s.tell(w, v, "The task was stopped, with everything it started.", err, func(text string, failed bool, status int) {
		s.showWith(w, v, text, failed, status)
	})
}

// states returns a text that changes with the tasks and their states.
func (s taskPages) states() string {
	var b []byte
	for _, t := range s.operator.Tasks() {
		b = strconv.AppendBool(append(append(b, t.ID...), ' '), t.Over())
	}
	return string(b)
}

// The headers of the response to a request for the output of a task.
const (
	headerNext = "X-Task-Next" // where to read on from
	headerDone = "X-Task-Done" // how the task ended; absent while it runs
)

// output sends the output of a task from an offset on, as plain text. It waits until there is some.
func (s taskPages) output(w http.ResponseWriter, v pageRequest) {
	task := s.find(v.PathValue("key"))
	from, err := strconv.ParseInt(v.PathValue("from"), 10, 64)
	if task == nil || err != nil || from < 0 {
		http.Error(w, noTask, http.StatusNotFound)
		return
	}
	chunk, err := task.Output(v.Context(), from, outputWait)
	if _, ok := s.sessions.session(v.Request); !ok { // logged out or expired meanwhile
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
	_, _ = w.Write([]byte(text)) // fails if the client is gone
}
