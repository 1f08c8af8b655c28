package builtin

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/google/jsonschema-go/jsonschema"

	"toolhost/builtin/internal/shell"
	"toolhost/guard"
)

// Limits of a wait for a task.
const (
	// TaskWait is how long TaskOutput waits for output when the call does not say.
	TaskWait = 30 * time.Second
	// MaxTaskWait is the longest wait that a call can ask for.
	MaxTaskWait = 600 * time.Second
	// stopLimit is the longest result of TaskStop, in characters.
	stopLimit = 10_000
)

// TaskOutputInput is the input of [TaskOutput].
type TaskOutputInput struct {
	TaskID  string `json:"task_id" jsonschema:"the id that Bash gave"`
	Block   *bool  `json:"block,omitempty" jsonschema:"wait for output or the end of the task (default: true)"`
	Timeout int    `json:"timeout,omitempty" jsonschema:"milliseconds to wait at most (default 30000, at most 600000)"`
	Offset  int    `json:"offset,omitempty" jsonschema:"read on from here: the offset that the last answer gave"`
}

// TaskOutputOutput is what programs learn from a [TaskOutput].
type TaskOutputOutput struct {
	Status     string `json:"status"` // running or ended
	ExitCode   *int   `json:"exit_code,omitempty"`
	NextOffset int64  `json:"next_offset"`
}

// TaskOutput reads what a background task has written.
var TaskOutput = declare(Tool[TaskOutputInput]{
	Name:    "TaskOutput",
	Title:   "Read a task's output",
	Brief:   "output of a background command",
	Enabled: runsCommands,
	Hints:   Hints{ReadOnly: true, Closed: true},
	Right:   ToRead,
	Limit:   bashLimit,
	Ungated: true,
	Refine: func(s *jsonschema.Schema) {
		s.Properties["block"].Type, s.Properties["block"].Types = "boolean", nil
		for _, name := range []string{"timeout", "offset"} {
			s.Properties[name].Minimum = jsonschema.Ptr(0.0)
		}
	},
	Plan: func(_ context.Context, env *Env, in TaskOutputInput) (Plan, error) {
		return Plan{
			Intent: guard.Intent{ReadsTask: true},
			Run:    func(ctx context.Context) (Result, error) { return taskOutput(ctx, env, in) },
		}, nil
	},
})

func taskOutput(ctx context.Context, env *Env, in TaskOutputInput) (Result, error) {
	wait := TaskWait
	switch {
	case in.Block != nil && !*in.Block:
		wait = 0
	case in.Timeout > 0:
		wait = min(time.Duration(in.Timeout)*time.Millisecond, MaxTaskWait)
	}
	chunk, err := env.Box.tasks.Output(ctx, env.Principal, in.TaskID, int64(in.Offset), wait)
	if err != nil {
		return Result{}, err
	}
	out := TaskOutputOutput{Status: "running", NextOffset: chunk.Next}
	var b strings.Builder
	if chunk.Done {
		out.Status, out.ExitCode = "ended", &chunk.Result.ExitCode
		fmt.Fprintf(&b, "The task has ended: %s.\n", taskEnd(chunk))
	} else {
		b.WriteString("The task is running.\n")
	}
	if chunk.Offset > int64(in.Offset) {
		fmt.Fprintf(&b, "[%s of output before this are no longer kept.]\n", count(int(chunk.Offset)-in.Offset, "byte"))
	}
	b.WriteString(chunk.Text)
	if chunk.Line != "" {
		fmt.Fprintf(&b, "%s\n[The last line is not finished; it comes again.]\n", chunk.Line)
	}
	if chunk.Text == "" && chunk.Line == "" {
		b.WriteString("(no new output)\n")
	}
	if !chunk.Done {
		remarks := append(env.Box.tasks.News(env.Principal, in.TaskID), fmt.Sprintf("Read on with offset=%d.", chunk.Next))
		fmt.Fprintf(&b, "\n[%s]\n", strings.Join(remarks, " "))
	}
	return Result{Text: withRemarks(b.String(), chunk.Result), Structured: out}, nil
}

// taskEnd says how a task ended.
func taskEnd(c shell.Chunk) string {
	r := c.Result
	switch {
	case c.Cause != "":
		return c.Cause
	case r.TimedOut:
		return "its timeout passed"
	case r.Signal != "":
		return fmt.Sprintf("exit code %d (ended by %s)", r.ExitCode, r.Signal)
	}
	return fmt.Sprintf("exit code %d", r.ExitCode)
}

// withRemarks adds what there is to tell of a task that has ended, beside its output. Of one that runs there is no result.
func withRemarks(text string, r *shell.Result) string {
	if r == nil || len(r.Remarks) == 0 {
		return text
	}
	return strings.TrimSuffix(text, "\n") + "\n\n[" + strings.Join(r.Remarks, " ") + "]\n"
}

// taskStarted is the answer to a command that became a task. The next one starts where it did.
func taskStarted(s shell.Started, head string, dir guard.Path, remarks []string) Result {
	var b strings.Builder
	fmt.Fprintf(&b, "%s %s. Its output: TaskOutput {\"task_id\":%q,\"offset\":%d}; end it with TaskStop.\n", head, s.ID, s.ID, s.Offset)
	if s.Text != "" {
		fmt.Fprintf(&b, "So far:\n%s\n", strings.TrimSuffix(s.Text, "\n"))
	}
	if len(remarks) > 0 {
		fmt.Fprintf(&b, "\n[%s]\n", strings.Join(remarks, " "))
	}
	return Result{Text: b.String(), Structured: BashOutput{TaskID: s.ID, Cwd: dir.Real()}}
}

// TaskStopInput is the input of [TaskStop].
type TaskStopInput struct {
	TaskID string `json:"task_id" jsonschema:"the id that Bash gave"`
}

// TaskStop ends a background task.
var TaskStop = declare(Tool[TaskStopInput]{
	Name:    "TaskStop",
	Title:   "Stop a task",
	Brief:   "stop a background command",
	Enabled: runsCommands,
	Hints:   Hints{Idempotent: true, Closed: true},
	Limit:   stopLimit,
	Ungated: true,
	Plan: func(_ context.Context, env *Env, in TaskStopInput) (Plan, error) {
		return Plan{
			Intent: guard.Intent{StopsTask: true},
			Run: func(context.Context) (Result, error) {
				r, err := env.Box.tasks.Stop(env.Principal, in.TaskID)
				if err != nil {
					return Result{}, err
				}
				return Result{Text: withRemarks("The task has ended, with everything it started. Its last output:\n"+lastLines(r.Text), r)}, nil
			},
		}, nil
	},
})

type (
	// A TaskInfo tells of a background task, to the owner of the machine.
	TaskInfo = shell.TaskInfo
	// A TaskChunk is a part of a task's output, and how the task is.
	TaskChunk = shell.Chunk
)

// Tasks are the background tasks of all principals, oldest first. They are the owner's to see.
func (b *Toolbox) Tasks() []TaskInfo { return b.tasks.All() }

// TaskOutput returns what a task has written from an offset on. If there is nothing yet it waits for output or for
// the task's end, at most for wait.
func (b *Toolbox) TaskOutput(ctx context.Context, t TaskInfo, offset int64, wait time.Duration) (TaskChunk, error) {
	return b.tasks.Output(ctx, t.Principal, t.ID, offset, wait)
}

// StopTask ends a task and everything it started. Stopping one that has ended is no error.
func (b *Toolbox) StopTask(t TaskInfo) error {
	_, err := b.tasks.Stop(t.Principal, t.ID)
	return err
}

// lastLines are the last lines of an output, up to a third of what a result may hold.
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
