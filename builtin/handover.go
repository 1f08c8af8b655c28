package builtin

import (
	"context"
	"fmt"
	"strings"
	"time"
)

// A HandOver is notified when a call continues as a background task. It is in the context of a call whose client
// follows tasks by its protocol. Such a call continues until it has its result, and may ask questions.
type HandOver interface {
	// HandOver is called when the call becomes the task with this id, or goes on as one after a question. It reports
	// whether the client follows it.
	HandOver(task string) bool
	// Handed reports whether HandOver has returned true before.
	Handed() bool
}

type handOverKey struct{}

// WithHandOver returns the context of a call whose client follows tasks.
func WithHandOver(ctx context.Context, h HandOver) context.Context {
	return context.WithValue(ctx, handOverKey{}, h)
}

// handsOver reports whether the client of a call that has become a task follows it.
func handsOver(ctx context.Context, task string) bool {
	h, ok := ctx.Value(handOverKey{}).(HandOver)
	return ok && h.HandOver(task)
}

// follows reports whether the client of a call would follow a task.
func follows(ctx context.Context) bool {
	_, ok := ctx.Value(handOverKey{}).(HandOver)
	return ok
}

// window returns how long the call waits before it becomes a task. A call that was a task before a question becomes
// one again at once.
func (e *Env) window(ctx context.Context) time.Duration {
	if h, ok := ctx.Value(handOverKey{}).(HandOver); ok && h.Handed() {
		return time.Millisecond
	}
	return e.Shell.Window
}

// maxFollowed is how long a client that follows tasks waits for a command that was started in the background. A build
// may end by then and give its result; a server does not end, and the model that started it must go on.
const maxFollowed = 10 * time.Second

// window returns how long the call waits, see [Env.window].
func (b *bashRun) window(ctx context.Context) time.Duration {
	if b.in.Background && follows(ctx) {
		return min(maxFollowed, b.env.Shell.Window)
	}
	return b.env.window(ctx)
}

// goesOn returns the result of a command that has become a task: its end if the client follows tasks, unless the
// command was started in the background.
func (b *bashRun) goesOn(ctx context.Context, soFar string) (Result, error) {
	if !b.in.Background && handsOver(ctx, b.task.ID) {
		return b.await(ctx, 0)
	}
	return b.continuesAsTask(soFar), nil
}

// continuesAsTask returns the result for a command that has become a task.
func (b *bashRun) continuesAsTask(soFar string) Result {
	b.gate.leaves()
	head := fmt.Sprintf("The command still runs after %s; it goes on as the background task", b.env.Shell.Window)
	if b.in.Background {
		head = "The command runs as the background task"
	}
	return taskStarted(b.task.ID, soFar, head, b.dir,
		notes(b.note, b.clamped, ttyHint(soFar), b.where.containmentNotice(), strings.Join(b.standing, " ")))
}

// await waits for a command that has become a task, because of a question about a program, or because the client
// follows it. It returns at the next question, at the end of the command, or after the window. A window of 0 has no
// end.
func (b *bashRun) await(ctx context.Context, window time.Duration) (Result, error) {
	id := b.task.ID
	var over <-chan time.Time
	if window > 0 {
		patience := time.NewTimer(window)
		defer patience.Stop()
		over = patience.C
	}
	select {
	case later := <-b.gate.pending:
		return Result{
			Text: "A program that the command starts must be approved by a person. The command waits as the task " +
				id + ".",
			Asks: &ExecAsked{Question: later.question, Task: id, Resume: func(ctx context.Context, a ExecAnswer) (Result,
				error) {
				later.answer <- a
				return b.await(ctx, b.window(ctx))
			}},
		}, nil
	case <-b.task.Done():
	case <-over:
		return b.goesOn(ctx, "")
	case <-ctx.Done():
	}
	r, err := b.task.Stop(b.env.Scope)
	if err != nil {
		return Result{}, b.where.failed(b.env, err)
	}
	return b.taskText(r), nil
}
