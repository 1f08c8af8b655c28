package builtin

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/toolhost/toolhost/builtin/internal/shell"
	"github.com/toolhost/toolhost/builtin/internal/task"
	"github.com/toolhost/toolhost/resultstore"
)

// Long does work that may take long, for a call that text describes. Work that runs longer than the window of
// [ShellLimits] becomes a task: the result says so, and TaskOutput returns its progress and its result. A task cannot
// ask questions, unless the client follows it: see [HandOver]. The work must end when its context is done.
func (e *Env) Long(ctx context.Context, text string, work func(context.Context, *Env) (Result, error)) (Result, error) {
	inner, cancel := context.WithCancel(context.WithoutCancel(ctx))
	l := &longWork{progress: e.Progress, results: e.Results,
		out: shell.NewCollector(shell.Limits{Head: shell.DefaultHead, Tail: shell.DefaultTail}), done: make(chan struct{})}
	own := *e
	own.Progress = l.report
	if e.Elicit != nil {
		own.Elicit = func(ctx context.Context, params json.RawMessage) (json.RawMessage, error) {
			if l.isTask() && !l.isFollowed() {
				return nil, errors.New("the call has become a task, which cannot ask questions")
			}
			return e.Elicit(ctx, params)
		}
	}
	begun := time.Now()
	go func() {
		defer cancel()
		l.run(inner, &own, work)
	}()
	var over <-chan time.Time
	if limit := e.window(ctx); limit > 0 {
		window := time.NewTimer(limit)
		defer window.Stop()
		over = window.C
	}
	select {
	case <-over:
		if t, err := e.Runtime.tasks.Reserve(e.taskSpec(callKind, text)); err == nil && l.detach(ctx, t, begun) {
			context.AfterFunc(t.Context(), cancel)
			if l.isFollowed() {
				break
			}
			return Result{Text: fmt.Sprintf("%s still runs after %s; it goes on as the background task %s. Its result: "+
				"TaskOutput {\"task_id\":%q}; end it with TaskStop.\n", text, e.Shell.Window, t.ID, t.ID)}, nil
		}
	case <-l.done:
	case <-ctx.Done():
	}
	defer context.AfterFunc(ctx, cancel)()
	<-l.done
	return l.result, l.err
}

// A longWork is the work of [Env.Long].
type longWork struct {
	results *resultstore.PrincipalStore
	out     *shell.Collector // of a task

	mu       sync.Mutex
	progress func(string)
	ended    bool
	task     *task.Task // nil: the call waits
	followed bool       // by the client, see [HandOver]

	done   chan struct{} // closed when the fields below are set
	result Result
	err    error
}

func (l *longWork) run(ctx context.Context, env *Env, work func(context.Context, *Env) (Result, error)) {
	defer close(l.done)
	l.result, l.err = work(ctx, env)
	for !l.end() && l.result.Asks != nil { // a task cannot ask: cancel the question
		l.result, l.err = l.result.Asks.Answer(ctx, nil)
	}
	if l.task == nil {
		return
	}
	text := l.result.Text
	if l.err != nil {
		text = l.err.Error()
	}
	if l.results != nil { // the limit of TaskOutput is below that of results
		if fitted, err := l.results.Fit(text, resourceLimit); err == nil {
			text = fitted.Text
		}
	}
	if n := len(l.result.Images); n > 0 {
		text += fmt.Sprintf("\n[%s left out: a task has text alone.]", count(n, "image"))
	}
	l.out.Write([]byte(text + "\n"))
	l.task.EndCall(l.err != nil || l.result.IsError)
	if l.followed {
		_, _ = l.task.Stop(l.task.Scope) // the result of the call reports its end
	}
}

// end records that the work has ended, unless it is a task, whose questions must be answered first. It reports
// whether the call gets the result.
func (l *longWork) end() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.ended = true
	return l.task == nil || l.followed
}

func (l *longWork) isFollowed() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.followed
}

// detach makes the work a reserved task, or releases that if the work has ended.
func (l *longWork) detach(ctx context.Context, t *task.Task, begun time.Time) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.ended {
		t.Release()
		return false
	}
	t.Begin(l.out, begun)
	l.task, l.followed = t, handsOver(ctx, t.ID)
	return true
}

func (l *longWork) isTask() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.task != nil
}

// report reports progress to the client, and to the output of the task.
func (l *longWork) report(lines string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case l.task != nil:
		l.out.Write([]byte(lines + "\n"))
	case l.progress != nil:
		l.progress(lines)
	}
}
