package builtin

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/toolhost/toolhost/builtin/internal/sandboxpool"
	"github.com/toolhost/toolhost/builtin/internal/shell"
	"github.com/toolhost/toolhost/builtin/internal/task"
	"github.com/toolhost/toolhost/builtin/internal/text"
	"github.com/toolhost/toolhost/guard"
	"github.com/toolhost/toolhost/guard/settle"
	"github.com/toolhost/toolhost/readstate"
)

// A bashRun is the run of a command by a call.
type bashRun struct {
	env           *Env
	in            bashInput
	command       guard.Exec
	dir           guard.Path
	note, clamped string
	timeout       time.Duration
	where         execEnv
	gate          *execGate
	changed       func() commandChanges // returns the changes; called after the command has ended
	task          *task.Task            // nil: the call waits for the command
	standing      []string              // notes on protected files that have changed when it became a task
}

func runBash(ctx context.Context, env *Env, in bashInput, run guard.Exec, note string) (Result, error) {
	dir := run.Dir
	b := &bashRun{env: env, in: in, command: run, dir: dir, note: note, gate: gateOf(env)}
	b.timeout, b.clamped = clampTimeout(in.Timeout, env.Shell)
	var err error
	if b.where, err = place(ctx, env, run); err != nil {
		return Result{}, fmt.Errorf("the command was not run: %w", err)
	}
	if err := b.track(ctx); err != nil {
		return Result{}, fmt.Errorf("the command was not run: %w", err)
	}
	command := shell.Command{Text: b.where.settling.Prelude() + in.Command, Dir: dir.Real(), Timeout: b.timeout,
		Output: env.Progress, Spill: spill(env.Results),
		Gate: b.gate, Left: b.where.leave}
	if in.Background {
		if !follows(ctx) {
			b.gate.leaves()
		}
		if in.Timeout == 0 {
			command.Timeout = maxTaskAge
		}
	}
	r, soFar, err := b.run(ctx, command)
	var barred *shell.DirError
	switch {
	case errors.As(err, &barred) && !in.Background:
		return runInRoot(ctx, env, in, barred)
	case err != nil:
		return Result{}, b.where.failed(env, err)
	case in.Background && handsOver(ctx, b.task.ID):
		return b.await(ctx, b.window(ctx))
	case in.Background:
		b.gate.leaves()
		return taskStarted(b.task.ID, soFar, "The command runs as the background task", dir,
			notes(note, b.clamped, b.where.containmentNotice(), strings.Join(b.standing, " "))), nil
	case r == nil && b.gate.reapAfterCall():
		return b.await(ctx, env.window(ctx))
	case r == nil:
		return b.goesOn(ctx, soFar)
	}
	return b.askHeld(ctx, b.taskText(r)), nil
}

// track records the changes of the command. Files that the sandbox removes afterwards, and protected files that are
// held, are not included.
func (b *bashRun) track(ctx context.Context) error {
	mark := &commandMark{end: func() commandChanges { return commandChanges{} }}
	if !b.where.discards() {
		mark = b.env.Runtime.beginCommand(ctx, b.env, b.in.Command, false)
	}
	if err := b.where.enter(b.env.Policy); err != nil {
		mark.end()
		b.where.leave()
		return err
	}
	cleanup, leave := b.where.cleanup, b.where.leave
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
	return nil
}

// lines returns the lines that follow the result.
func (b *bashRun) lines() []string { return append(b.gate.lines(), b.changed().lines()...) }

// run runs the command. If it is to run in the background, or still runs after the foreground window, it becomes a
// task, and the result is nil. If too many tasks run after the window, the call waits for the end of the command.
func (b *bashRun) run(ctx context.Context, command shell.Command) (r *shell.Result, soFar string, err error) {
	if b.in.Background {
		if err := b.reserve(); err != nil {
			command.Left()
			return nil, "", err
		}
	}
	run, err := b.where.runner.Start(ctx, command)
	if err != nil {
		if b.in.Background {
			b.task.Release()
		}
		return nil, "", err
	}
	if b.in.Background || !run.Wait(ctx, max(b.env.window(ctx), 1)) && b.reserve() == nil {
		return nil, b.follow(run), nil
	}
	defer run.Leave()
	run.Wait(ctx, 0) // unless it is over
	r, err = run.Finish()
	return r, "", err
}

// reserve reserves the task that the command becomes.
func (b *bashRun) reserve() (err error) {
	spec := b.env.taskSpec(commandKind, b.in.Command)
	if b.where.discards() {
		spec.Data = planned(b.env.sandboxKey())
	}
	spec.Call, spec.Notices = false, func() []string { return slices.Concat(b.where.news(), b.gate.lines()) }
	b.task, err = b.env.Runtime.tasks.Reserve(spec)
	return err
}

// follow makes a running command the task that was reserved. It returns the output so far.
func (b *bashRun) follow(run *shell.Execution) (soFar string) {
	run.EndProgress() // the call gets no progress after its result
	b.standing = b.where.settling.Background()
	soFar = b.task.Begin(run.Out, run.Begun)
	go func() {
		defer run.Leave()
		run.Wait(b.task.Context(), 0)
		r, err := run.Finish()
		if err == nil {
			r.Remarks = b.where.remarks(r, b.dir.Real())
			r.Execs = b.lines()
		}
		if _, barred := errors.AsType[*shell.DirError](err); barred {
			b.env.Dir.Set(b.env.Policy.Roots()[0])
		}
		if run.Closed() {
			b.task.Cancel(shell.ErrClosed)
		}
		b.task.End(r, err)
	}()
	return soFar
}

// taskText returns the text for a command that has ended.
func (b *bashRun) taskText(r *shell.Result) Result {
	env, dir := b.env, b.dir.Real()
	recordCat(env, b.command, b.dir, r)
	quiet := explain(b.command, r)
	remarks := notes(b.note, b.clamped, moreTime(r, b.timeout, env.Shell), updateCwd(env, r, dir, b.where.discards()),
		quiet, terminalHint(r), b.where.containmentNotice())
	remarks = append(remarks, b.where.remarks(r, dir)...)
	failed := r.TimedOut || r.Cancelled || r.Unheard || r.ExitCode != 0 && quiet == ""
	shorten(r, env.ClientLimits.Of(failed), slices.Concat(remarks, outcomeNotes(r), b.lines()))
	remarks = append(remarks, outcomeNotes(r)...) // after the text was cut
	return Result{
		Text:      bashText(r, b.timeout, remarks) + onLines(b.lines()),
		IsError:   failed,
		SavedPath: r.Spilled,
		Structured: BashOutput{
			ExitCode: &r.ExitCode, Signal: r.Signal, TimedOut: r.TimedOut, Cwd: env.Dir.Get(), OutputPath: r.Spilled,
			Changed: b.changed().structured(),
		},
	}
}

// An execEnv is the place where a command runs: a sandbox, or the host.
type execEnv struct {
	runner         *shell.Runner
	sandbox        *sandboxpool.Sandbox
	runtime        *Runtime
	whyUnsandboxed string // why it is not a sandbox, if the call asked for that
	leave          func() // releases the place after the command has ended
	// refused returns the hosts that were refused since the start of the command. Nil if no hosts are refused.
	refused func() []string
	// cleanup removes what the command must not leave. It does so once, and returns the notes at every call.
	cleanup func() []string
	// settling is the command as the keeper of protected files knows it.
	settling *settle.Command
}

// place returns the place of a command. The rules have judged the command for that place.
func place(ctx context.Context, env *Env, command guard.Exec) (execEnv, error) {
	switch {
	case !env.Policy.Commands().Containment().Writes:
		return onHost(env, "")
	case command.Unsandboxed:
		return onHost(env, "The command ran outside the sandbox, as it was allowed to.")
	case env.Policy.Commands().Excluded(command):
		return onHost(env, "The command ran outside the sandbox, as sandbox.excludedCommands says.")
	}
	release := func() {}
	if env.Worktree != nil { // the scope cannot leave it while a command runs
		var err error
		if release, err = env.Worktree.Use(); err != nil {
			return execEnv{}, err
		}
	}
	env.Runtime.plans.enter(env)
	c, err := env.Runtime.sandboxes.Acquire(ctx, env.sandboxKey(), env.Policy)
	if err != nil {
		release()
		return execEnv{}, fmt.Errorf("cannot start its sandbox: %w", err)
	}
	s := execEnv{runner: c.Runner(), sandbox: c, runtime: env.Runtime, refused: c.Refusing()}
	s.leave = func() {
		env.Runtime.sandboxes.Release(c)
		release()
	}
	return s, nil
}

// enter prepares the files of the place for the command. Its cleanup takes out what the command must not leave.
func (s *execEnv) enter(policy *guard.Policy) (err error) {
	clean, log := func() []string { return nil }, s.runtime.log
	var before []string
	if s.sandbox != nil {
		clean = s.runtime.sandboxes.Cleanup()
		s.settling, before, err = s.runtime.sandboxes.Enter(s.sandbox)
	} else {
		s.settling, before, err = s.runtime.baseline.Settle().Begin(policy.Commands().Settled(),
			policy.Commands().KeepsChanges())
	}
	if err != nil {
		return err
	}
	s.cleanup = sync.OnceValue(func() []string {
		notes := slices.Concat(before, clean(), s.settling.End())
		for _, note := range notes { // also log them: the client may never read the end of a task
			log.Warn(note)
		}
		return notes
	})
	return nil
}

// sandboxKey returns the key of the caller's sandbox. Conversations in worktrees have separate ones, and so have plans.
func (e *Env) sandboxKey() string {
	key := e.Principal
	if e.Policy.Commands().Discard() {
		key += "\x00plan " + e.Scope + " " + e.Plan
	}
	if e.Worktree != nil {
		key = sandboxpool.Key(key, e.Worktree.Name)
	}
	return key
}

// discards reports whether what the command changes is dropped.
func (s execEnv) discards() bool { return s.sandbox != nil && s.sandbox.Discards() }

// onHost returns the place of an uncontained command. The excuse says why it is not contained although it could be.
func onHost(env *Env, excuse string) (execEnv, error) {
	runner, err := env.Runtime.shell.get(env.Policy)
	return execEnv{runner: runner, runtime: env.Runtime, whyUnsandboxed: excuse, leave: func() {}}, err
}

// news returns notes on the hosts that were refused so far.
func (s execEnv) news() []string {
	if s.refused == nil {
		return nil
	}
	return s.refused()
}

// containmentNotice returns a note, once, if the place contains the command only in part or not at all.
func (s execEnv) containmentNotice() string {
	once := ""
	switch {
	case s.sandbox == nil && s.whyUnsandboxed != "":
		return s.whyUnsandboxed
	case s.sandbox == nil:
		s.runtime.admitted.Do(func() { once = uncontained })
	case s.discards():
		return s.sandbox.DiscardNote()
	case !s.sandbox.Denies():
		s.runtime.admitted.Do(func() { once = halfContained })
	}
	return once
}

// remarks returns notes on the result of a command that was started in dir: what was removed afterwards, and which
// files and hosts the sandbox refused.
func (s execEnv) remarks(r *shell.Result, dir string) []string {
	if s.cleanup == nil {
		return nil
	}
	notes := s.cleanup()
	if s.sandbox == nil {
		return notes
	}
	if r.Dir != "" {
		dir = r.Dir
	}
	if hint := sandboxHint(r); hint != "" {
		notes = append(notes, hint)
	}
	return slices.Concat(notes, s.sandbox.DeniedNotes(r.Text, dir), s.refused())
}

// recordCat records the files of a plain `cat FILE…` as read, if the output is their whole content and Read may show
// them.
func recordCat(env *Env, command guard.Exec, dir guard.Path, r *shell.Result) {
	names := catOperands(command)
	if len(names) == 0 || r.ExitCode != 0 || r.Cut || r.TimedOut || r.Cancelled {
		return
	}
	if most := env.ClientLimits.Of(false); most > 0 && utf8.RuneCountInString(r.Text) > most {
		return
	}
	var all []byte
	var seen []func()
	for _, name := range names {
		path, err := env.Policy.ResolveIn(dir, name)
		if err != nil || refuseSpecial(path) != nil ||
			readVerdict(env.Policy, path).Action != guard.Allow {
			return
		}
		content, info, ok := smallFile(path)
		if !ok || text.IsBinary(content) || !utf8.Valid(content) {
			return
		}
		v := readstate.VersionOf(info)
		v.Size = int64(len(content))
		all = append(all, content...)
		seen = append(seen, func() { env.ReadState.MarkRead(path.Real(), v, content) })
	}
	if int64(len(all)) != r.Bytes || shell.CleanText(string(all)) != r.Text {
		return
	}
	for _, saw := range seen {
		saw()
	}
}

// smallFile reads a regular file of at most [wholeFile] bytes.
func smallFile(path guard.Path) (content []byte, info fs.FileInfo, ok bool) {
	f, err := path.Open()
	if err != nil {
		return nil, nil, false
	}
	defer f.Close()
	if info, err = f.Stat(); err != nil || !info.Mode().IsRegular() || info.Size() > wholeFile {
		return nil, nil, false
	}
	content, err = readAll(f, info.Size(), wholeFile+1)
	return content, info, err == nil && len(content) <= wholeFile
}

// catOperands returns the files of a plain `cat FILE…`, or nil for other commands.
func catOperands(command guard.Exec) []string {
	words := command.Words()
	if len(words) < 2 || words[0] != "cat" {
		return nil
	}
	names := words[1:]
	if names[0] == "--" {
		names = names[1:]
	}
	if len(names) == 0 || slices.ContainsFunc(names, func(name string) bool { return name == "" || name[0] == '-' }) {
		return nil
	}
	return names
}
