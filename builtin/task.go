package builtin

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"regexp"
	"strings"
	"time"

	"github.com/google/jsonschema-go/jsonschema"

	"github.com/toolhost/toolhost/builtin/internal/shell"
	"github.com/toolhost/toolhost/builtin/internal/task"
	"github.com/toolhost/toolhost/guard"
)

// Limits of tasks and of the tools for them.
const (
	// taskWait is the default time that TaskOutput waits for the end of a task.
	taskWait = 30 * time.Second
	// maxTaskWait is the longest wait that a call can set.
	maxTaskWait = 600 * time.Second
	// maxUntil is the longest pattern of TaskOutput, in bytes.
	maxUntil = 1000
	// stopLimit is the longest result of TaskStop, in characters.
	stopLimit = 10_000
	// maxTaskAge is the timeout of a background command that sets none.
	maxTaskAge = 24 * time.Hour
	// maxTasksKept is how many ended commands are remembered for a caller, and how many ended calls.
	maxTasksKept = 16
	// maxAgentsOfCaller and maxAgents limit the agents that run concurrently, for one caller and for the host.
	maxAgentsOfCaller, maxAgents = 4, 16
	// maxAgentsKept is how many ended agents are remembered for a caller.
	maxAgentsKept = 32
)

// The kinds of tasks.
var (
	commandKind = &task.Kind{Name: "command", NewID: task.NewID, Kept: maxTasksKept}
	callKind    = &task.Kind{Name: "call", NewID: task.NewID, Kept: maxTasksKept}
	agentKind   = &task.Kind{
		Name: "agent", OfCaller: maxAgentsOfCaller, OfHost: maxAgents, Kept: maxAgentsKept, Resumable: true,
		// Also used in its principal and its worktree.
		NewID: func() string { return fmt.Sprintf("%08x", rand.Uint32()) },
	}
)

// taskSpec describes a task of the caller. text describes the call.
func (e *Env) taskSpec(kind *task.Kind, text string) task.Spec {
	return task.Spec{Kind: kind, Principal: e.Principal, Scope: e.Scope, Limit: e.Shell.Tasks, Text: text, Call: true}
}

// taskOutputInput is the input of [taskOutputTool].
type taskOutputInput struct {
	TaskID  string  `json:"task_id" jsonschema:"the id that Bash gave"`
	Block   *bool   `json:"block,omitempty" jsonschema:"wait for the end of the task (default: true)"`
	Timeout int     `json:"timeout,omitempty" jsonschema:"milliseconds to wait at most (default 30000, at most 600000)"`
	Until   *string `json:"until,omitempty" jsonschema:"regular expression (RE2): wait for the first line that it matches instead"`
	Offset  *int64  `json:"offset,omitempty" jsonschema:"read from here (default: where the last answer ended)"`
}

// TaskOutputOutput is the structured result of a [taskOutputTool].
type TaskOutputOutput struct {
	Status     string `json:"status"` // running or ended
	ExitCode   *int   `json:"exit_code,omitempty"`
	Matched    bool   `json:"matched,omitempty"` // a line matched until
	NextOffset int64  `json:"next_offset"`
}

// taskOutputTool reads the output of a background task.
var taskOutputTool = declare(Tool[taskOutputInput]{
	Name:       "TaskOutput",
	Title:      "Read a task's output",
	Brief:      "task output",
	Enabled:    runsCommands,
	Hints:      Hints{ReadOnly: true, Closed: true},
	Permission: guard.ToRead,
	Limit:      bashLimit,
	SkipQueue:  true,
	Refine: func(s *jsonschema.Schema) {
		for name, kind := range map[string]string{"block": "boolean", "until": "string", "offset": "integer"} {
			s.Properties[name].Type, s.Properties[name].Types = kind, nil
		}
		for _, name := range []string{"timeout", "offset"} {
			s.Properties[name].Minimum = jsonschema.Ptr(0.0)
		}
	},
	Plan: func(_ context.Context, env *Env, in taskOutputInput) (Plan, error) {
		reading, err := in.reading(env.Scope)
		if err != nil {
			return Plan{}, err
		}
		return Plan{
			Intent: guard.Intent{Effects: []guard.Effect{guard.ReadTask{ID: in.TaskID}}},
			Run:    func(ctx context.Context) (Result, error) { return taskOutput(ctx, env, in, reading) },
		}, nil
	},
})

// reading returns the options of a call of [taskOutputTool].
func (in taskOutputInput) reading(scope string) (task.Reading, error) {
	r := task.Reading{Scope: scope, Offset: in.Offset, Wait: taskWait}
	blocks := in.Block == nil || *in.Block
	switch {
	case !blocks:
		r.Wait = 0
	case in.Timeout > 0:
		r.Wait = min(time.Duration(in.Timeout)*time.Millisecond, maxTaskWait)
	}
	if in.Until == nil {
		return r, nil
	}
	switch n := len(*in.Until); {
	case !blocks:
		return r, errors.New("until waits for a line, but block is false: omit one of them")
	case n == 0:
		return r, errors.New("until: expected a regular expression, got an empty one: omit it to wait for the end of " +
			"the task")
	case n > maxUntil:
		return r, fmt.Errorf("until: expected at most %d bytes, got %d: match a shorter part of the line", maxUntil, n)
	}
	var err error
	if r.Until, err = regexp.Compile(*in.Until); err != nil {
		return r, fmt.Errorf("until: expected a regular expression in the syntax of RE2, got %q: %w", *in.Until, err)
	}
	return r, nil
}

func taskOutput(ctx context.Context, env *Env, in taskOutputInput, r task.Reading) (Result, error) {
	t, err := env.Runtime.tasks.Find(env.Principal, in.TaskID)
	if err != nil {
		return Result{}, err
	}
	chunk, err := t.Read(ctx, r)
	if err != nil {
		return Result{}, err
	}
	out := TaskOutputOutput{Status: "running", Matched: chunk.Matched, NextOffset: chunk.Next}
	var b strings.Builder
	if chunk.Done {
		out.Status, out.ExitCode = "ended", &chunk.Result.ExitCode
		fmt.Fprintf(&b, "The task has ended: %s.\n", taskEnd(chunk))
	} else {
		b.WriteString("The task is running.\n")
	}
	switch {
	case chunk.Matched:
		b.WriteString("[until matches the last line below.]\n") // the line may be incomplete
	case r.Until != nil:
		b.WriteString("[until matches no line.]\n")
	}
	if in.Offset != nil && chunk.Offset < *in.Offset {
		fmt.Fprintf(&b, "[The output ended at offset %d, before %d.]\n", chunk.Offset, *in.Offset)
	}
	b.WriteString(chunkText(chunk))
	var remarks []string
	if !chunk.Done {
		remarks = t.NewNotices()
	}
	if !chunk.Done || chunk.More {
		remarks = append(remarks, fmt.Sprintf("The next call reads on from here (offset=%d).", chunk.Next))
	}
	if len(remarks) > 0 {
		fmt.Fprintf(&b, "\n[%s]\n", strings.Join(remarks, " "))
	}
	return Result{Text: withRemarks(b.String(), chunk.Result), Structured: out,
		LastLine: lastLine(chunk.Text + chunk.Line)}, nil
}

// chunkText returns the output in a chunk, and notes about it.
func chunkText(c task.Chunk) string {
	var b strings.Builder
	if c.Skipped > 0 {
		where := "no longer kept"
		if c.Done && c.Result.Spilled != "" {
			where = "in " + c.Result.Spilled
		}
		fmt.Fprintf(&b, "[%s of output before this %s %s.]\n", count(int(c.Skipped), "byte"),
			plural(int(c.Skipped), "is", "are"), where)
	}
	b.WriteString(c.Text)
	if c.Line != "" {
		fmt.Fprintf(&b, "%s\n[The last line is not finished; it comes again.]\n", c.Line)
	}
	if c.Text == "" && c.Line == "" {
		b.WriteString("(no new output)\n")
	}
	return b.String()
}

// taskEnd says how a task ended.
func taskEnd(c task.Chunk) string {
	r := c.Result
	switch {
	case c.Err != nil:
		return c.Err.Error()
	case c.Cause != "":
		return c.Cause
	case r.TimedOut:
		return "its timeout passed"
	case r.Unheard:
		return "it had waited too long for a person"
	case r.Signal != "":
		return fmt.Sprintf("exit code %d (ended by %s)", r.ExitCode, r.Signal)
	}
	return fmt.Sprintf("exit code %d", r.ExitCode)
}

// withRemarks adds the remarks about a task that has ended to its output. A running task has none.
func withRemarks(text string, r *shell.Result) string {
	if r == nil {
		return text
	}
	if len(r.Remarks) > 0 {
		text = strings.TrimSuffix(text, "\n") + "\n\n[" + strings.Join(r.Remarks, " ") + "]\n"
	}
	return text + onLines(r.Execs)
}

// taskStarted returns the result for a command that became a task. The next command starts in the same directory as
// this one did.
func taskStarted(id, soFar, head string, dir guard.Path, remarks []string) Result {
	var b strings.Builder
	fmt.Fprintf(&b, "%s %s. Its output: TaskOutput {\"task_id\":%q}; end it with TaskStop.\n", head, id, id)
	if soFar != "" {
		fmt.Fprintf(&b, "So far:\n%s\n", strings.TrimSuffix(soFar, "\n"))
	}
	if len(remarks) > 0 {
		fmt.Fprintf(&b, "\n[%s]\n", strings.Join(remarks, " "))
	}
	return Result{Text: b.String(), Structured: BashOutput{TaskID: id, Cwd: dir.Real()}}
}

// taskStopInput is the input of [taskStopTool].
type taskStopInput struct {
	TaskID string `json:"task_id" jsonschema:"the id that Bash gave"`
}

// taskStopTool ends a background task.
var taskStopTool = declare(Tool[taskStopInput]{
	Name:      "TaskStop",
	Title:     "Stop a task",
	Brief:     "stop a task",
	Enabled:   runsCommands,
	Hints:     Hints{Idempotent: true, Closed: true},
	Limit:     stopLimit,
	SkipQueue: true,
	Plan: func(_ context.Context, env *Env, in taskStopInput) (Plan, error) {
		return Plan{
			Intent: guard.Intent{Effects: []guard.Effect{guard.StopTask{ID: in.TaskID}}},
			Run: func(context.Context) (Result, error) {
				t, err := env.Runtime.tasks.Find(env.Principal, in.TaskID)
				if err != nil {
					return Result{}, err
				}
				r, err := t.Stop(env.Scope)
				if err != nil {
					return Result{}, err
				}
				return Result{Text: withRemarks("The task has ended, with everything it started. Its last output:\n"+
					lastLines(r.Text), r), LastLine: lastLine(r.Text)}, nil
			},
		}, nil
	},
})

type (
	// A Task is a background task, for the owner of the machine.
	Task = task.Task
	// A TaskChunk is a part of the output of a task, with the state of the task.
	TaskChunk = task.Chunk
)

// Tasks returns the background tasks of all principals, oldest first. Only the owner of the machine may see them.
func (b *Runtime) Tasks() []*Task { return b.tasks.All() }

// TasksEnded calls report for each task of a scope that has ended and was not reported yet, until report returns
// false. A task for which report returns true is not reported again.
func (b *Runtime) TasksEnded(principal, scope string, report func(t *Task, how string) bool) {
	b.tasks.Ended(principal, scope, func(t *Task, c TaskChunk) bool { return report(t, taskEnd(c)) })
}

// StopTasks ends the tasks of a principal with their descendants.
func (b *Runtime) StopTasks(principal string) { b.tasks.StopAll(principal) }

// lastLine returns the last line of an output that is not blank.
func lastLine(text string) string {
	text = strings.TrimSpace(text)
	return text[strings.LastIndexByte(text, '\n')+1:]
}

// lastLines returns the last lines of an output, up to a third of the limit of a result.
func lastLines(text string) string {
	const most = stopLimit / 3
	if r := []rune(text); len(r) > most {
		return "…" + string(r[len(r)-most:])
	}
	if text == "" {
		return "(none)\n"
	}
	return text
}
