package builtin

import (
	"context"
	"fmt"
	"slices"
	"sync"

	"github.com/toolhost/toolhost/builtin/internal/sandboxpool"
	"github.com/toolhost/toolhost/builtin/internal/shell"
)

// An execEnv is where a command runs: in a sandbox, or on the host.
type execEnv struct {
	runner         *shell.Runner
	sandbox        *sandboxpool.Sandbox
	runtime        *Runtime
	whyUnsandboxed string // why it is not in a sandbox, when that was asked for
	leave          func() // gives the place up when the command has ended
	// refused tells which hosts were refused since the command began; nil where none are.
	refused func() []string
	// cleanup takes away what the command must not leave, once, and tells it as often as it is called.
	cleanup func() []string
}

// place finds where a command runs. It was judged for exactly that place.
func place(ctx context.Context, env *Env, in bashInput) (execEnv, error) {
	switch {
	case !env.Policy.Commands().Containment().Writes:
		return onHost(env, "")
	case in.Unsandboxed:
		return onHost(env, "The command ran outside the sandbox, as it was allowed to.")
	case env.Policy.Commands().Excluded(in.Command):
		return onHost(env, "The command ran outside the sandbox, as sandbox.excludedCommands says.")
	}
	release := func() {}
	if env.Worktree != nil { // it is not left while a command runs in it
		var err error
		if release, err = env.Worktree.Use(); err != nil {
			return execEnv{}, err
		}
	}
	c, err := env.Runtime.sandboxes.Acquire(ctx, env.sandboxKey(), env.Policy)
	if err != nil {
		release()
		return execEnv{}, fmt.Errorf("its sandbox could not be started: %w", err)
	}
	s := execEnv{runner: c.Runner(), sandbox: c, runtime: env.Runtime, refused: c.Refusing()}
	s.cleanup = sync.OnceValue(env.Runtime.sandboxes.Cleanup())
	s.leave = func() {
		for _, note := range s.cleanup() { // a client may never ask how a task ended
			env.Runtime.log.Warn(note)
		}
		env.Runtime.sandboxes.Release(c)
		release()
	}
	return s, nil
}

// sandboxKey names the caller's sandbox: conversations in worktrees have their own.
func (e *Env) sandboxKey() string {
	if e.Worktree != nil {
		return e.Principal + "\x00" + e.Worktree.Name
	}
	return e.Principal
}

// onHost is the place of a command that nothing contains; the excuse tells why, where it could be contained.
func onHost(env *Env, excuse string) (execEnv, error) {
	runner, err := env.Runtime.shell.get(env.Policy)
	return execEnv{runner: runner, runtime: env.Runtime, whyUnsandboxed: excuse, leave: func() {}}, err
}

// news tells which hosts were refused so far.
func (s execEnv) news() []string {
	if s.refused == nil {
		return nil
	}
	return s.refused()
}

// containmentNotice says, once, that the place contains the command only in part, or not at all.
func (s execEnv) containmentNotice() string {
	once := ""
	switch {
	case s.sandbox == nil && s.whyUnsandboxed != "":
		return s.whyUnsandboxed
	case s.sandbox == nil:
		s.runtime.admitted.Do(func() { once = uncontained })
	case !s.sandbox.Denies():
		s.runtime.admitted.Do(func() { once = halfContained })
	}
	return once
}

// remarks tell what the place had to do with the result of a command that was started in dir: what was taken away again, and the
// files and hosts that the sandbox refused.
func (s execEnv) remarks(r *shell.Result, dir string) []string {
	if s.sandbox == nil {
		return nil
	}
	if r.Dir != "" {
		dir = r.Dir
	}
	return slices.Concat(s.cleanup(), s.sandbox.DeniedNotes(r.Text, dir), s.refused())
}
