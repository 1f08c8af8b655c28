package mcpserver

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"

	"github.com/toolhost/toolhost/builtin"
	"github.com/toolhost/toolhost/mcpserver/internal/approvals"
	"github.com/toolhost/toolhost/mcpserver/internal/transport"
)

// The Tasks extension (SEP-2663): a client that declares it follows the tasks of its calls by the protocol. The call
// itself goes on, so its result has passed every stage of the pipeline. The tasks of the library end with their
// request, and other callers can read them.

// tasksExtension is the name of the extension.
const tasksExtension = "io.modelcontextprotocol/tasks"

// Limits of the tasks that clients follow.
const (
	// taskKept is how long the result of a task is kept.
	taskKept = time.Hour
	// maxClientTasks is how many tasks are kept of one caller. If that many run, a further one is for TaskOutput.
	maxClientTasks = 32
	// taskPoll is how often a client is asked to look at a task.
	taskPoll = time.Second
)

// The states of a task.
const (
	taskWorks     = "working"
	taskAsks      = "input_required"
	taskCompleted = "completed"
	taskFailed    = "failed"
	taskCancelled = "cancelled"
)

// errTaskCancelled is the cause of the end of a call whose task the client has cancelled.
var errTaskCancelled = errors.New("the client has cancelled the task")

// clientTasks are the tasks of a host that clients follow.
type clientTasks struct {
	mu        sync.Mutex
	tasks     map[string]*clientTask
	listeners map[*taskListener]bool
	running   sync.WaitGroup
}

// A taskListener receives the changes of tasks.
type taskListener struct {
	ids  []string
	tell func(taskView)
}

// A clientTask is a call, which becomes a task when it is handed over. It implements [builtin.HandOver].
type clientTask struct {
	table     *clientTasks
	id        string
	principal string
	tool      string
	leave     func() // ends the turn of the call
	handed    chan struct{}
	cancel    context.CancelCauseFunc
	detach    func() bool // from the request of the call

	// Guarded by table.mu.
	view    taskView
	over    bool // the call has ended, as a task or not
	ended   time.Time
	asked   int
	answers map[string]chan mcp.InputResponse // by the key of the input request
}

// A taskView is a task as clients see it.
type taskView struct {
	Meta          map[string]any    `json:"_meta,omitempty"`
	ResultType    mcp.ResultType    `json:"resultType,omitempty"`
	ID            string            `json:"taskId"`
	Status        string            `json:"status"`
	Message       string            `json:"statusMessage,omitempty"`
	Created       time.Time         `json:"createdAt"`
	Updated       time.Time         `json:"lastUpdatedAt"`
	TTL           *int64            `json:"ttlMs"` // nil: unlimited
	Poll          int64             `json:"pollIntervalMs"`
	InputRequests mcp.InputRequests `json:"inputRequests,omitempty"`
	Result        any               `json:"result,omitempty"`
	Error         any               `json:"error,omitempty"`
}

type clientTaskKey struct{}

// taskOf returns the task that a call can become, or nil.
func taskOf(ctx context.Context) *clientTask {
	t, _ := ctx.Value(clientTaskKey{}).(*clientTask)
	return t
}

// run runs a call until it ends, or becomes a task. It returns the result of the call, or the task, with which the
// call goes on.
func (s *clientTasks) run(ctx context.Context, t *clientTask, call func(context.Context) (*mcp.CallToolResult,
	error)) (*mcp.CallToolResult, *taskView, error) {
	inner, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	t.table, t.cancel, t.handed = s, cancel, make(chan struct{})
	t.detach = context.AfterFunc(ctx, func() { cancel(context.Cause(ctx)) })
	var result *mcp.CallToolResult // these are read once done is closed
	var err error
	done := make(chan struct{})
	s.running.Go(func() {
		defer close(done)
		defer cancel(nil)
		defer func() {
			if p := recover(); p != nil {
				err = fmt.Errorf("%s failed inside the host, which is a defect of toolhost: %v", t.tool, p)
			}
			t.end(result, err)
		}()
		inner = context.WithValue(inner, clientTaskKey{}, t)
		result, err = call(builtin.WithHandOver(inner, t))
	})
	select {
	case <-done:
	case <-t.handed:
	}
	if !t.Handed() {
		return result, nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	first := t.view
	first.ResultType, first.InputRequests, first.Result, first.Error = "task", nil, nil, nil
	return nil, &first, nil
}

// Handed implements [builtin.HandOver].
func (t *clientTask) Handed() bool {
	select {
	case <-t.handed:
		return true
	default:
		return false
	}
}

// isHanded is Handed for a call that may not be able to become a task.
func (t *clientTask) isHanded() bool { return t != nil && t.Handed() }

// beforeLeave makes the task call stop before it gives up the turn of the call.
func (t *clientTask) beforeLeave(stop func()) {
	if t != nil {
		leave := t.leave
		t.leave = func() { stop(); leave() }
	}
}

// HandOver implements [builtin.HandOver].
func (t *clientTask) HandOver(task string) bool {
	defer func() {
		if t.Handed() {
			t.leave()
		}
	}()
	s := t.table
	s.mu.Lock()
	defer s.mu.Unlock()
	if t.Handed() {
		return true
	}
	if t.over || !s.makeRoom(t.principal) || !t.detach() {
		return false
	}
	if s.tasks == nil {
		s.tasks = map[string]*clientTask{}
	}
	now := time.Now().UTC()
	t.id = rand.Text()
	t.view = taskView{ID: t.id, Status: taskWorks, Created: now, Updated: now, Poll: taskPoll.Milliseconds(),
		Message: t.tool + " goes on"}
	if task != "" {
		t.view.Message += " as the background task " + task
	}
	s.tasks[t.id] = t
	close(t.handed)
	return true
}

// makeRoom forgets tasks that have ended, and reports whether the caller may have a further one. The caller holds the
// lock.
func (s *clientTasks) makeRoom(principal string) bool {
	maps.DeleteFunc(s.tasks, func(_ string, t *clientTask) bool { return t.old() })
	var ended []*clientTask
	most := maxClientTasks
	for _, t := range s.tasks {
		if t.principal != principal {
			continue
		}
		if most--; !t.ended.IsZero() {
			ended = append(ended, t)
		}
	}
	if most > 0 || len(ended) == 0 {
		return most > 0
	}
	oldest := slices.MinFunc(ended,
		func(a, b *clientTask) int { return cmp.Or(a.ended.Compare(b.ended), strings.Compare(a.id, b.id)) })
	delete(s.tasks, oldest.id)
	return true
}

func (t *clientTask) old() bool { return !t.ended.IsZero() && time.Since(t.ended) > taskKept }

// find returns a task of a caller, or nil. The caller holds the lock.
func (s *clientTasks) find(principal, id string) *clientTask {
	t := s.tasks[id]
	if t == nil || t.principal != principal || t.old() {
		return nil
	}
	return t
}

// see returns the state of a task of a caller.
func (s *clientTasks) see(principal, id string) (view taskView, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	t := s.find(principal, id)
	if t == nil {
		return view, false
	}
	return t.view, true
}

// change changes a task that has not ended, and tells the listeners. The caller holds the lock.
func (t *clientTask) change(status string, change func(v *taskView)) {
	if !t.ended.IsZero() {
		return
	}
	now := time.Now().UTC()
	t.view.Status, t.view.Updated = status, now
	if status != taskWorks && status != taskAsks {
		ttl := (now.Sub(t.view.Created) + taskKept).Milliseconds()
		t.ended, t.view.TTL, t.view.InputRequests, t.view.Message = now, &ttl, nil, ""
	}
	change(&t.view)
	for l := range t.table.listeners {
		if slices.Contains(l.ids, t.id) {
			l.tell(t.view)
		}
	}
}

// end records how the call has ended.
func (t *clientTask) end(result *mcp.CallToolResult, err error) {
	t.table.mu.Lock()
	defer t.table.mu.Unlock()
	if t.over = true; !t.Handed() {
		return
	}
	if err != nil {
		t.change(taskFailed, func(v *taskView) {
			v.Message = err.Error()
			v.Error = mcp.JSONRPCErrorDetails{Code: codeOf(err), Message: err.Error()}
		})
		return
	}
	result.ResultType = mcp.ResultTypeComplete
	t.change(taskCompleted, func(v *taskView) { v.Result = result })
}

// ask puts a question to the client, and waits for the answer.
func (t *clientTask) ask(ctx context.Context, request mcp.InputRequest) (mcp.InputResponse, error) {
	s, answer := t.table, make(chan mcp.InputResponse, 1)
	s.mu.Lock()
	t.asked++
	key := fmt.Sprintf("%s-%d", questionID, t.asked)
	if t.answers == nil {
		t.answers = map[string]chan mcp.InputResponse{}
	}
	t.answers[key] = answer
	t.change(taskAsks, func(v *taskView) {
		v.InputRequests = maps.Clone(v.InputRequests) // others may read it
		if v.InputRequests == nil {
			v.InputRequests = mcp.InputRequests{}
		}
		v.InputRequests[key] = request
	})
	s.mu.Unlock()
	select {
	case response := <-answer:
		return response, nil
	case <-ctx.Done():
		s.mu.Lock()
		defer s.mu.Unlock()
		t.answered(key)
		return mcp.InputResponse{}, context.Cause(ctx)
	}
}

// elicit puts a question in the types of the library to the client.
func (t *clientTask) elicit(ctx context.Context, params mcp.ElicitationParams) (*mcp.ElicitationResult, error) {
	if !t.isHanded() {
		return nil, errors.New("the call is no task")
	}
	ctx, cancel := context.WithTimeout(ctx, approvals.Lifetime)
	defer cancel()
	response, err := t.ask(ctx, mcp.NewElicitationInputRequest(params))
	if err != nil {
		return nil, err
	}
	return server.ElicitationResponse(mcp.InputResponses{questionID: response}, questionID), nil
}

// answered removes a question from the task. The caller holds the lock.
func (t *clientTask) answered(key string) {
	delete(t.answers, key)
	status := taskAsks
	if len(t.answers) == 0 {
		status = taskWorks
	}
	t.change(status, func(v *taskView) {
		v.InputRequests = maps.Clone(v.InputRequests)
		delete(v.InputRequests, key)
	})
}

// update passes answers on. Answers to questions that are not open are ignored.
func (s *clientTasks) update(principal, id string, responses mcp.InputResponses) (ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	t := s.find(principal, id)
	if t == nil {
		return false
	}
	for key, response := range responses {
		if answer := t.answers[key]; answer != nil {
			answer <- response
			t.answered(key)
		}
	}
	return true
}

// stop cancels a task. A task that has ended is not changed.
func (s *clientTasks) stop(principal, id string) (ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	t := s.find(principal, id)
	if t == nil {
		return false
	}
	t.change(taskCancelled, func(*taskView) {})
	t.cancel(errTaskCancelled)
	return true
}

// drop cancels and forgets the tasks of a caller.
func (s *clientTasks) drop(principal string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for id, t := range s.tasks {
		if t.principal == principal {
			t.cancel(errTaskCancelled)
			delete(s.tasks, id)
		}
	}
}

// close cancels all tasks, and waits until their calls have ended.
func (s *clientTasks) close() {
	s.mu.Lock()
	for _, t := range s.tasks {
		t.cancel(transport.ErrClosed)
	}
	s.mu.Unlock()
	ended := make(chan struct{})
	go func() { s.running.Wait(); close(ended) }()
	select {
	case <-ended:
	case <-time.After(transport.DrainRest):
	}
}

// listen calls tell with each change of a task of a caller, until end is called. known are the ids that name existing
// tasks.
func (s *clientTasks) listen(principal string, ids []string, tell func(taskView)) (known []string, end func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	known = slices.DeleteFunc(slices.Clone(ids), func(id string) bool { return s.find(principal, id) == nil })
	l := &taskListener{known, tell}
	if s.listeners == nil {
		s.listeners = map[*taskListener]bool{}
	}
	s.listeners[l] = true
	return known, func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.listeners, l)
	}
}
