package shell

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"slices"
	"strings"
	"sync"
	"time"
)

// Defaults of [TaskLimits].
const (
	DefaultTaskRunning = 256            // of one principal at the same time
	DefaultTaskKept    = 16             // ended ones of one principal
	DefaultTaskOutput  = FloodAfter     // bytes; also the most that can be set
	DefaultTaskAge     = 24 * time.Hour // of a running task without a timeout
	DefaultTaskKeep    = time.Hour      // of an ended task
	DefaultTaskLog     = 256 << 10      // bytes of output that can be read by offset
)

// TaskLimits bounds what tasks may take. Zero fields have the defaults above.
type TaskLimits struct {
	Running int           // tasks of one principal that run at the same time
	Kept    int           // ended tasks of one principal that are remembered
	Output  int64         // bytes after which a task is ended
	Age     time.Duration // time after which a task started without a timeout is ended
	Keep    time.Duration // time for which an ended task is remembered
	Log     int           // last bytes of cleaned output kept for reads by offset
}

// Errors of [Tasks].
var (
	// ErrNoTask is the error for a handle that does not exist, has been forgotten
	// or belongs to another principal; the error does not say which.
	ErrNoTask = errors.New("there is no such task: it never existed, ended too long ago, or belongs to another caller")

	// ErrTooManyTasks is the error of Start when too many tasks run.
	ErrTooManyTasks = errors.New("too many background tasks are running: stop one, or wait until one has ended")
)

// Causes of cancelling a task.
var (
	errStopped = errors.New("it was stopped")
	errFlooded = errors.New("it wrote more output than a task may")
)

// Tasks runs commands in the background on behalf of principals. A principal
// identifies the callers that may see a task; the string is only compared. A handle
// is random (at least 128 bits), and valid only for its principal.
type Tasks struct {
	limits TaskLimits

	mu       sync.Mutex
	tasks    map[string]*task
	reserved map[string]string // principals of tasks that are being started, by id
}

// A Host says where a command runs, and for which principal.
type Host struct {
	Runner    *Runner
	Principal string
	// Scope is the conversation to which the end of the task is reported.
	Scope string
	// Running is how many tasks of the principal may run at the same time; 0:
	// what the limits say.
	Running int
	// Ended, if not nil, is called once the command and everything it started has
	// ended, or when it could not be started.
	Ended func()
	// Barred, if not nil, is called when the shell of a task could not enter its
	// working directory.
	Barred func()
	// Remarks, if not nil, returns remarks on a task that has ended.
	Remarks func(*Result) []string
	// Execs, if not nil, returns one line for each program that was refused, or allowed by a person.
	Execs func() []string
	// Notices, if not nil, returns the notices on a running task so far.
	Notices func() []string
}

// A task is a command that runs, or ran, in the background.
type task struct {
	id, principal, scope, text string

	out    *Collector
	begun  time.Time
	call   bool            // text describes a call
	news   func() []string // Host.Notices
	cancel context.CancelCauseFunc

	mu      sync.Mutex
	told    []string         // notices that were reported
	read    map[string]int64 // offset of the end of the last reading, by scope
	endTold bool             // the end was reported to the scope

	done chan struct{} // closed when the fields below are set

	result *Result
	err    error
	cause  error // why it was cancelled; nil if it ended by itself
	ended  time.Time
}

// NewTasks returns an empty set of tasks. Closing the runner that a task runs on
// ends it.
func NewTasks(limits TaskLimits) *Tasks {
	limits.Running = orDefault(limits.Running, DefaultTaskRunning)
	limits.Kept = orDefault(limits.Kept, DefaultTaskKept)
	limits.Output = min(orDefault(limits.Output, DefaultTaskOutput), DefaultTaskOutput)
	limits.Age = orDefault(limits.Age, DefaultTaskAge)
	limits.Keep = orDefault(limits.Keep, DefaultTaskKeep)
	limits.Log = orDefault(limits.Log, DefaultTaskLog)
	return &Tasks{limits: limits, tasks: map[string]*task{}, reserved: map[string]string{}}
}

// A Started describes a command that became a task.
type Started struct {
	ID     string
	Text   string // the output so far, with an incomplete last line
	Offset int64  // for the next reading, which returns the incomplete line again
}

// Start runs a command in the background. A command without a timeout may run for
// TaskLimits.Age. The context is only used for the start. Start fails before the
// command runs if too many tasks are running.
func (s *Tasks) Start(ctx context.Context, where Host, c Command) (Started, error) {
	c.Timeout = orDefault(c.Timeout, s.limits.Age)
	id := "task_" + rand.Text()
	if !s.reserve(id, where) {
		where.free()
		return Started{}, ErrTooManyTasks
	}
	run, err := where.start(ctx, c)
	if err != nil {
		s.release(id)
		return Started{}, err
	}
	return s.adopt(id, run, where, c.Text), nil
}

// Run runs a command like [Runner.Run], but if it still runs after window, it
// becomes a task: then Run returns a Started and no Result. The command's timeout
// continues. If too many tasks run already, Run waits for the end of the command.
func (s *Tasks) Run(ctx context.Context, where Host, c Command, window time.Duration) (*Result, *Started, error) {
	run, err := where.start(ctx, c)
	if err != nil {
		return nil, nil, err
	}
	why := run.wait(ctx, max(window, 1))
	if why == goesOn {
		if id := "task_" + rand.Text(); s.reserve(id, where) {
			started := s.adopt(id, run, where, c.Text)
			return nil, &started, nil
		}
		why = run.wait(ctx, 0)
	}
	defer where.leave()
	res, err := run.finish(why)
	return res, nil, err
}

// start starts a command. The caller must call leave after the command has ended.
func (p Host) start(ctx context.Context, c Command) (*execution, error) {
	run, err := p.Runner.start(ctx, c)
	if err != nil {
		p.free()
	}
	return run, err
}

// leave releases the place of a command.
func (p Host) leave() {
	if p.Runner != nil {
		p.Runner.leave()
	}
	p.free() // after the runner's work, because Ended may close the runner
}

// free calls Ended.
func (p Host) free() {
	if p.Ended != nil {
		p.Ended()
	}
}

// adopt makes a running command the task for which id was reserved.
func (s *Tasks) adopt(id string, run *execution, where Host, text string) Started {
	run.stop() // no progress reports after the result of the call
	return s.follow(&task{id: id, text: text, out: run.out, begun: run.begun}, where, func(life context.Context) (*Result, ending, error) {
		why := run.wait(life, 0)
		res, err := run.finish(why)
		return res, why, err
	})
}

// A Call is work of this process that continues as a task.
type Call struct {
	ID    string // of the task, unique; "" creates one
	Text  string // describes the call
	Begun time.Time
	Out   *Collector // gets its output
	Stop  func()     // ends it
	Done  <-chan struct{}
	// Failed reports whether it failed, once it is done.
	Failed func() bool
}

// Adopt turns a call into a task. It fails if too many tasks are running.
func (s *Tasks) Adopt(where Host, c Call) (Started, error) {
	id := cmp.Or(c.ID, "task_"+rand.Text())
	if !s.reserve(id, where) {
		return Started{}, ErrTooManyTasks
	}
	return s.follow(&task{id: id, text: c.Text, out: c.Out, begun: c.Begun, call: true}, where, func(life context.Context) (*Result, ending, error) {
		defer context.AfterFunc(life, c.Stop)()
		<-c.Done
		r := &Result{Shown: c.Out.Result(), Duration: time.Since(c.Begun)}
		if c.Failed() {
			r.ExitCode = 1
		}
		return r, returned, nil
	}), nil
}

// follow makes t the task for which its id was reserved, and waits for its end.
func (s *Tasks) follow(t *task, where Host, wait func(life context.Context) (*Result, ending, error)) Started {
	life, cancel := context.WithCancelCause(context.Background())
	t.principal, t.scope, t.news, t.cancel, t.done = where.Principal, where.Scope, where.Notices, cancel, make(chan struct{})
	soFar, offset := t.out.Follow(s.limits.Log) // before the task can be found
	t.read = map[string]int64{t.scope: offset}
	s.mu.Lock()
	s.tasks[t.id] = t
	delete(s.reserved, t.id)
	s.mu.Unlock()
	t.out.Limit(s.limits.Output, func() { cancel(errFlooded) })
	go t.await(life, where, wait)
	return Started{ID: t.id, Text: soFar, Offset: offset}
}

// await waits for the end of a task.
func (t *task) await(life context.Context, where Host, wait func(life context.Context) (*Result, ending, error)) {
	defer where.leave()
	var why ending
	t.result, why, t.err = wait(life)
	if t.err == nil && where.Remarks != nil {
		t.result.Remarks = where.Remarks(t.result)
	}
	if t.err == nil && where.Execs != nil {
		t.result.Execs = where.Execs()
	}
	var barred *DirError
	if errors.As(t.err, &barred) && where.Barred != nil {
		where.Barred()
	}
	t.cause, t.ended = context.Cause(life), time.Now()
	if why == closing {
		t.cause = ErrClosed
	}
	close(t.done)
	t.cancel(nil)
}

// reserve counts a task that is about to start, and reports whether its principal
// may run another one.
func (s *Tasks) reserve(id string, where Host) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.forget()
	running := 0
	for _, principal := range s.reserved {
		if principal == where.Principal {
			running++
		}
	}
	for _, t := range s.tasks {
		if t.principal == where.Principal && !t.over() {
			running++
		}
	}
	if running >= orDefault(where.Running, s.limits.Running) {
		return false
	}
	s.reserved[id] = where.Principal
	return true
}

// release cancels a reservation.
func (s *Tasks) release(id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.reserved, id)
}

func (t *task) over() bool {
	select {
	case <-t.done:
		return true
	default:
		return false
	}
}

// forget drops ended tasks that are too old or too many. The caller holds the lock.
func (s *Tasks) forget() {
	ended := map[string][]*task{}
	for id, t := range s.tasks {
		if !t.over() {
			continue
		}
		if time.Since(t.ended) > s.limits.Keep {
			delete(s.tasks, id)
			continue
		}
		ended[t.principal] = append(ended[t.principal], t)
	}
	for _, list := range ended {
		slices.SortFunc(list, func(a, b *task) int { return a.ended.Compare(b.ended) })
		for ; len(list) > s.limits.Kept; list = list[1:] {
			delete(s.tasks, list[0].id)
		}
	}
}

// find returns the task of a handle if it belongs to the principal.
func (s *Tasks) find(principal, id string) (*task, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.forget()
	t := s.tasks[id]
	if t == nil || t.principal != principal {
		return nil, ErrNoTask
	}
	return t, nil
}

// Done returns a channel that is closed when a task has ended with its descendants.
func (s *Tasks) Done(principal, id string) (<-chan struct{}, error) {
	t, err := s.find(principal, id)
	if err != nil {
		return nil, err
	}
	return t.done, nil
}

// Stop ends a task with its descendants, and waits for that. Stopping a task that
// has ended is not an error. The end is not reported to the scope that stops it,
// which may be "".
func (s *Tasks) Stop(principal, scope, id string) (*Result, error) {
	t, err := s.find(principal, id)
	if err != nil {
		return nil, err
	}
	t.cancel(errStopped)
	<-t.done
	t.tellEnd(scope)
	return t.result, t.err
}

// A TaskInfo describes a task in a list.
type TaskInfo struct {
	ID        string
	Principal string
	Text      string // the command
	Call      bool   // Text describes the call of a tool instead
	Begun     time.Time
	Done      bool
	Ended     time.Time // of a task that is done
}

func (t *task) info() TaskInfo {
	info := TaskInfo{ID: t.id, Principal: t.principal, Text: t.text, Begun: t.begun, Call: t.call}
	if info.Done = t.over(); info.Done {
		info.Ended = t.ended
	}
	return info
}

// List returns the tasks of a principal, oldest first.
func (s *Tasks) List(principal string) []TaskInfo {
	return slices.DeleteFunc(s.All(), func(t TaskInfo) bool { return t.Principal != principal })
}

// All returns the tasks of all principals, oldest first. It is for the owner of the machine.
func (s *Tasks) All() []TaskInfo {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.forget()
	var list []TaskInfo
	for _, t := range s.tasks {
		list = append(list, t.info())
	}
	slices.SortFunc(list, func(a, b TaskInfo) int {
		return cmp.Or(a.Begun.Compare(b.Begun), strings.Compare(a.ID, b.ID))
	})
	return list
}
