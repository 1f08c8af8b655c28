package builtin

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/toolhost/toolhost/builtin/internal/shell"
	"github.com/toolhost/toolhost/guard"
)

// A bashRun is a command while its call runs it.
type bashRun struct {
	env           *Env
	in            bashInput
	dir           guard.Path
	note, clamped string
	timeout       time.Duration
	where         execEnv
	gate          *execGate
	changed       func() commandChanges // what it changed; called once it has ended
}

func runBash(ctx context.Context, env *Env, in bashInput, dir guard.Path, note string) (Result, error) {
	b := &bashRun{env: env, in: in, dir: dir, note: note, gate: gateOf(env)}
	b.timeout, b.clamped = clampTimeout(in.Timeout, env.Shell)
	var err error
	if b.where, err = place(ctx, env, in); err != nil {
		return Result{}, fmt.Errorf("the command was not run: %w", err)
	}
	b.track(ctx)
	command := shell.Command{Prelude: env.Prelude, Text: in.Command, Dir: dir.Real(), Timeout: b.timeout, Output: env.Progress, Spill: spill(env), Gate: b.gate}
	if in.Background {
		return b.background(ctx, command)
	}
	r, started, err := env.Runtime.tasks.Run(ctx, b.execEnv(), command, env.Shell.Window)
	var barred *shell.DirError
	switch {
	case errors.As(err, &barred):
		return runInRoot(ctx, env, in, barred)
	case err != nil:
		return Result{}, b.where.failed(env, err)
	case started != nil && b.gate.reapAfterCall():
		return b.await(ctx, started.ID)
	case started != nil:
		return b.continuesAsTask(*started), nil
	}
	return b.taskText(r), nil
}

// track keeps what the command changes. What the place takes away afterwards does not count.
func (b *bashRun) track(ctx context.Context) {
	mark, cleanup, leave := b.env.Runtime.beginCommand(ctx, b.env, b.in.Command), b.where.cleanup, b.where.leave
	b.changed = sync.OnceValue(func() commandChanges {
		if cleanup != nil {
			cleanup()
		}
		return mark.end()
	})
	b.where.leave = func() {
		b.changed()
		leave()
	}
}

// lines are what follows the result in lines of their own.
func (b *bashRun) lines() []string { return append(b.gate.lines(), b.changed().lines()...) }

// execEnv is where the command runs, as the shell knows it.
func (b *bashRun) execEnv() shell.Host {
	env, where, gate := b.env, b.where, b.gate
	return shell.Host{
		Runner: where.runner, Principal: env.Principal, Scope: env.Scope, Running: env.Shell.Tasks, Ended: where.leave, Execs: b.lines,
		Remarks: func(r *shell.Result) []string { return where.remarks(r, b.dir.Real()) },
		Notices: func() []string { return slices.Concat(where.news(), gate.lines()) },
		Barred:  func() { env.Dir.Set(env.Policy.Roots()[0]) },
	}
}

// background starts the command as a task.
func (b *bashRun) background(ctx context.Context, command shell.Command) (Result, error) {
	b.gate.leaves()
	if b.in.Timeout == 0 {
		command.Timeout = 0 // a task may run as long as tasks may
	}
	started, err := b.env.Runtime.tasks.Start(ctx, b.execEnv(), command)
	if err != nil {
		return Result{}, b.where.failed(b.env, err)
	}
	return taskStarted(started, "The command runs as the background task", b.dir, notes(b.note, b.clamped, b.where.containmentNotice())), nil
}

// continuesAsTask is the result of a command that has become a task.
func (b *bashRun) continuesAsTask(started shell.Started) Result {
	b.gate.leaves()
	return taskStarted(started, fmt.Sprintf("The command still runs after %s; it goes on as the background task", b.env.Shell.Window), b.dir,
		notes(b.note, b.clamped, ttyHint(started.Text), b.where.containmentNotice()))
}

// await waits for a command that has become a task because a program of it asks: for the next question, its end, or the time after
// which a call is answered.
func (b *bashRun) await(ctx context.Context, id string) (Result, error) {
	tasks, principal := b.env.Runtime.tasks, b.env.Principal
	done, err := tasks.Done(principal, id)
	if err != nil {
		return Result{}, err
	}
	patience := time.NewTimer(b.env.Shell.Window)
	defer patience.Stop()
	select {
	case later := <-b.gate.pending:
		return Result{
			Text: "A program that the command starts must be approved by a person. The command waits as the task " + id + ".",
			Asks: &ExecAsked{Question: later.question, Task: id, Resume: func(ctx context.Context, a ExecAnswer) (Result, error) {
				later.answer <- a
				return b.await(ctx, id)
			}},
		}, nil
	case <-done:
	case <-patience.C:
		return b.continuesAsTask(shell.Started{ID: id}), nil
	case <-ctx.Done():
	}
	r, err := tasks.Stop(principal, b.env.Scope, id)
	if err != nil {
		return Result{}, b.where.failed(b.env, err)
	}
	return b.taskText(r), nil
}

// taskText is the result of a command that has ended.
func (b *bashRun) taskText(r *shell.Result) Result {
	env, dir := b.env, b.dir.Real()
	recordCat(env, b.in.Command, b.dir, r)
	quiet := explain(b.in.Command, r)
	remarks := notes(b.note, b.clamped, moreTime(r, b.timeout, env.Shell), updateCwd(env, r, dir), quiet, terminalHint(r), b.where.containmentNotice())
	remarks = append(remarks, b.where.remarks(r, dir)...)
	failed := r.TimedOut || r.Cancelled || r.Unheard || r.ExitCode != 0 && quiet == ""
	shorten(r, env.ClientLimits.Of(failed), slices.Concat(remarks, outcomeNotes(r), b.lines()))
	remarks = append(remarks, outcomeNotes(r)...) // which tell where the text is cut now
	return Result{
		Text:      bashText(r, b.timeout, remarks) + onLines(b.lines()),
		IsError:   failed,
		SavedPath: r.Spilled,
		Structured: BashOutput{
			ExitCode: &r.ExitCode, Signal: r.Signal, TimedOut: r.TimedOut, Cwd: env.Dir.Get(), OutputPath: r.Spilled, Changed: b.changed().structured(),
		},
	}
}
