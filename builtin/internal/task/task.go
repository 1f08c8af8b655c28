// Package task has the table of everything on a host that can outlive the call that started it: commands in the
// background, agents, and calls that took too long.
//
// A task is reserved, which counts it against the limits of its kind and its principal; then it begins, and can be
// found by its id; then it ends, and is remembered for a while. The work itself belongs to the caller of
// [Table.Reserve]: it writes to a [shell.Collector], ends when [Task.Context] is done, and reports its end by
// [Task.End].
package task

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/toolhost/toolhost/builtin/internal/shell"
)

const (
	// DefaultRunning is how many tasks of one principal may run at the same time, of all kinds together.
	DefaultRunning = 256
	// maxOutput is the number of bytes of output after which a task is stopped.
	maxOutput = shell.FloodAfter
	// logSize is how much of the end of the output can be read by offset, in bytes.
	logSize = 256 << 10
	// kept is how long an ended task is listed, and remembered unless it can be resumed.
	kept = time.Hour
)

var (
	// ErrNoTask is the error for an id that does not exist, has been forgotten or belongs to another principal; the
	// error does not say which.
	ErrNoTask = errors.New("there is no such task: it never existed, ended too long ago, or belongs to another caller")
	// ErrTooMany is the error of [Table.Reserve] when too many tasks of a principal run.
	ErrTooMany = errors.New("too many background tasks are running: stop one, or wait until one has ended")
	// ErrClosing is the error of [Table.Reserve] on a closed table, and the cause of the end of tasks that
	// [Table.Close] stops.
	ErrClosing = errors.New("the host is closing")

	errStopped = errors.New("it was stopped")
	errFlooded = fmt.Errorf("it wrote more than %d MiB of output: start it again with its output in a file (> FILE 2>&1), or with less",
		maxOutput>>20)
)

// A Kind is what tasks of the same sort have in common. Kinds are compared by address.
type Kind struct {
	// Name is the name of one in errors: "agent".
	Name string
	// NewID returns a random id. It is called again while the id is in use.
	NewID func() string
	// OfCaller and OfHost limit how many of the kind run at the same time, of one principal and of all. 0 means no limit
	// other than that of all tasks.
	OfCaller, OfHost int
	// Kept is how many ended tasks of a principal are remembered.
	Kept int
	// Resumable tasks are remembered without a limit of time, and may be reserved again under their id.
	Resumable bool
}

// NewID returns an unguessable id of a task.
func NewID() string { return "task_" + rand.Text() }

// A Spec describes a task.
type Spec struct {
	Kind *Kind
	// ID is the id of an ended task that is resumed. "" creates an id.
	ID string
	// Principal is the owner: only it can find the task. Scope is the conversation to which the end is reported.
	Principal, Scope string
	// Limit is how many tasks of the principal may run at the same time. 0 means [DefaultRunning].
	Limit int
	// Text is the command, or describes the call if Call is set.
	Text string
	Call bool
	// Notices, if not nil, returns the notices on the running task so far.
	Notices func() []string
	// Data belongs to the kind. The table does not look at it.
	Data any
}

// A Task is work that runs, or ran, on behalf of a principal. Its methods may be called concurrently.
type Task struct {
	Spec

	table  *Table
	ctx    context.Context
	cancel context.CancelCauseFunc
	begun  time.Time
	out    *shell.Collector

	mu      sync.Mutex
	told    []string         // notices that were reported
	read    map[string]int64 // offset of the end of the last reading, by scope
	endTold bool             // the end was reported to the scope

	done chan struct{} // closed when the fields below are set

	result *shell.Result
	err    error
	cause  error // why it was stopped; nil if it ended by itself
	ended  time.Time
}

// A Table holds the tasks of a host. The zero table is empty.
type Table struct {
	mu       sync.Mutex
	closed   bool
	tasks    map[string]*Task // that have begun
	reserved map[string]*Task // that have not
}

// Reserve counts a task that is about to begin. The caller calls [Task.Begin] or [Task.Release]. The error says which
// limit is reached, and what to do.
func (s *Table) Reserve(spec Spec) (*Task, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.forget()
	if err := s.admit(spec); err != nil {
		return nil, err
	}
	if spec.ID == "" {
		for spec.ID = spec.Kind.NewID(); s.tasks[spec.ID] != nil || s.reserved[spec.ID] != nil; {
			spec.ID = spec.Kind.NewID()
		}
	}
	t := &Task{Spec: spec, table: s, done: make(chan struct{})}
	t.ctx, t.cancel = context.WithCancelCause(context.Background())
	if s.tasks == nil {
		s.tasks, s.reserved = map[string]*Task{}, map[string]*Task{}
	}
	s.reserved[t.ID] = t
	return t, nil
}

// admit returns an error if no further task of this kind and principal may run. The caller holds the lock.
func (s *Table) admit(spec Spec) error {
	var mine []string // of the kind
	ofCaller, ofHost := 0, 0
	for _, t := range s.running(func(t *Task) bool { return true }) {
		own := t.Principal == spec.Principal
		if own {
			ofCaller++
		}
		if t.Kind == spec.Kind {
			ofHost++
			if own {
				mine = append(mine, t.ID)
			}
		}
	}
	const wait = "wait for one with TaskOutput, or end it with TaskStop"
	switch k := spec.Kind; {
	case s.closed:
		return ErrClosing
	case k.OfCaller > 0 && len(mine) >= k.OfCaller:
		return fmt.Errorf("%d run already: %s: %s", len(mine), strings.Join(mine, ", "), wait)
	case k.OfHost > 0 && ofHost >= k.OfHost:
		return fmt.Errorf("%d %ss run already on this host, %d of them yours: try again when some have ended",
			ofHost, k.Name, len(mine))
	case spec.ID != "" && (s.tasks[spec.ID] == nil || s.tasks[spec.ID].Principal != spec.Principal):
		return ErrNoTask // it was forgotten meanwhile
	case slices.Contains(mine, spec.ID):
		return fmt.Errorf("the %s %s runs already: %s", k.Name, spec.ID, wait)
	case ofCaller >= cmp.Or(spec.Limit, DefaultRunning):
		return ErrTooMany
	}
	return nil
}

// running returns the tasks that are reserved or run and that which selects, sorted by id. The caller holds the lock.
func (s *Table) running(which func(*Task) bool) (all []*Task) {
	for _, t := range s.reserved {
		if which(t) {
			all = append(all, t)
		}
	}
	for _, t := range s.tasks {
		if !t.Over() && which(t) {
			all = append(all, t)
		}
	}
	slices.SortFunc(all, func(a, b *Task) int { return strings.Compare(a.ID, b.ID) })
	return all
}

// forget drops ended tasks that are too old or too many. The caller holds the lock.
func (s *Table) forget() {
	type group struct {
		kind      *Kind
		principal string
	}
	ended := map[group][]*Task{}
	for id, t := range s.tasks {
		switch {
		case !t.Over():
		case t.old() && !t.Kind.Resumable:
			delete(s.tasks, id)
		default:
			of := group{t.Kind, t.Principal}
			ended[of] = append(ended[of], t)
		}
	}
	for of, list := range ended {
		slices.SortFunc(list, byEnd)
		for ; len(list) > of.kind.Kept; list = list[1:] {
			delete(s.tasks, list[0].ID)
		}
	}
}

// byEnd compares tasks that are over.
func byEnd(a, b *Task) int { return cmp.Or(a.ended.Compare(b.ended), strings.Compare(a.ID, b.ID)) }

// old reports whether a task that is over is no longer listed.
func (t *Task) old() bool { return time.Since(t.ended) > kept }

// Find returns a task that has begun, by its id, if it belongs to the principal.
func (s *Table) Find(principal, id string) (*Task, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.forget()
	t := s.tasks[id]
	if t == nil || t.Principal != principal {
		return nil, ErrNoTask
	}
	return t, nil
}

// Running returns the tasks of a principal that are reserved or run, sorted by id.
func (s *Table) Running(principal string) []*Task {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.running(func(t *Task) bool { return t.Principal == principal })
}

// All returns the tasks of all principals that have begun, and not ended long ago, oldest first. It is for the owner of
// the machine.
func (s *Table) All() (all []*Task) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.forget()
	for _, t := range s.tasks {
		if !t.Over() || !t.old() {
			all = append(all, t)
		}
	}
	slices.SortFunc(all, func(a, b *Task) int { return cmp.Or(a.begun.Compare(b.begun), strings.Compare(a.ID, b.ID)) })
	return all
}

// Ended calls tell for each ended task of a scope that was not reported to it yet, in the order of their ends, until
// tell returns false.
func (s *Table) Ended(principal, scope string, tell func(*Task, Chunk) bool) {
	s.mu.Lock()
	var ended []*Task
	for _, t := range s.tasks {
		if t.Principal == principal && t.Scope == scope && t.Over() {
			ended = append(ended, t)
		}
	}
	s.mu.Unlock()
	slices.SortFunc(ended, byEnd)
	for _, t := range ended {
		if t.tellEnd(scope) && !tell(t, t.end()) {
			t.untell()
			return
		}
	}
}

// StopAll stops the tasks of a principal, and waits until they have ended.
func (s *Table) StopAll(principal string) {
	s.stop(errStopped, func(t *Task) bool { return t.Principal == principal })
}

// Close refuses new tasks, and stops those of the kinds, one kind after the other. It waits until they have ended.
// Tasks of other kinds run on: their caller ends what they run on.
func (s *Table) Close(kinds ...*Kind) {
	s.mu.Lock()
	s.closed = true
	s.mu.Unlock()
	for _, k := range kinds {
		s.stop(ErrClosing, func(t *Task) bool { return t.Kind == k })
	}
}

func (s *Table) stop(cause error, which func(*Task) bool) {
	s.mu.Lock()
	all := s.running(which)
	s.mu.Unlock()
	for _, t := range all {
		t.cancel(cause)
	}
	for _, t := range all {
		<-t.done
	}
}

// Begin makes a reserved task, whose work began at a time, run and write to out. From now on it can be found. The
// caller calls [Task.End] once the work has ended. Begin returns the output so far, with an incomplete last line, which
// the first reading of the scope returns again.
func (t *Task) Begin(out *shell.Collector, begun time.Time) (soFar string) {
	t.out, t.begun = out, begun
	soFar, offset := out.Follow(logSize) // before the task can be found
	t.read = map[string]int64{t.Scope: offset}
	t.table.mu.Lock()
	t.table.tasks[t.ID] = t
	delete(t.table.reserved, t.ID)
	t.table.mu.Unlock()
	out.Limit(maxOutput, func() { t.cancel(errFlooded) })
	return soFar
}

// Release removes a reserved task that does not begin.
func (t *Task) Release() {
	t.table.mu.Lock()
	delete(t.table.reserved, t.ID)
	t.table.mu.Unlock()
	close(t.done)
	t.cancel(nil)
}

// End records the result of the work, or why it did not run.
func (t *Task) End(result *shell.Result, err error) {
	t.result, t.err, t.cause, t.ended = result, err, context.Cause(t.ctx), time.Now()
	close(t.done)
	t.cancel(nil)
}

// EndCall is End for work of this process, which has no result other than its output.
func (t *Task) EndCall(failed bool) {
	r := &shell.Result{Shown: t.out.Result()}
	if failed {
		r.ExitCode = 1
	}
	t.End(r, nil)
}

// Begun is when the work began.
func (t *Task) Begun() time.Time { return t.begun }

// Ended is when the task ended. It must be over.
func (t *Task) Ended() time.Time { return t.ended }

// Context is done when the work must end, and after it has ended. Its cause says why.
func (t *Task) Context() context.Context { return t.ctx }

// Cancel tells the work to end, for a reason.
func (t *Task) Cancel(cause error) { t.cancel(cause) }

// Done is closed when the task has ended with everything it started.
func (t *Task) Done() <-chan struct{} { return t.done }

// Over reports whether the task has ended.
func (t *Task) Over() bool {
	select {
	case <-t.done:
		return true
	default:
		return false
	}
}

// Stop ends the task, and waits for that. Stopping a task that has ended is not an error. The end is not reported to
// the scope that stops it, which may be "".
func (t *Task) Stop(scope string) (*shell.Result, error) {
	t.cancel(errStopped)
	<-t.done
	t.tellEnd(scope)
	return t.result, t.err
}
