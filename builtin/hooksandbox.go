package builtin

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/toolhost/toolhost/builtin/internal/sandboxpool"
	"github.com/toolhost/toolhost/guard"
	"github.com/toolhost/toolhost/guard/hook"
	"github.com/toolhost/toolhost/guard/sandbox"
)

// HookPrincipal is the principal of contained hooks. They do not run in the sandbox of a caller, whose commands could access
// them.
const HookPrincipal = "\x00hooks"

// hookStart limits the time to start the sandbox of hooks, which takes about 20 ms.
const hookStart = 10 * time.Second

// StartContained starts a hook's process in the sandbox of hooks, under the rules of [HookPrincipal].
func (b *Runtime) StartContained(policy *guard.Policy, s hook.Spec) (hook.Process, error) {
	ctx, cancel := context.WithTimeout(context.Background(), hookStart)
	defer cancel()
	c, err := b.sandboxes.AcquireBare(ctx, HookPrincipal, policy)
	if err != nil {
		return nil, fmt.Errorf("cannot start its sandbox: %w", err)
	}
	clean := b.sandboxes.Cleanup()
	settling, notes, err := b.sandboxes.Enter(c)
	if err != nil {
		b.sandboxes.Release(c)
		return nil, err
	}
	p, err := c.Spawn(s.Argv, s.Dir, s.Env, s.Files)
	if err != nil {
		settling.End()
		if errors.Is(err, sandbox.ErrClosed) {
			b.sandboxes.Discard(HookPrincipal, c)
		}
		b.sandboxes.Release(c)
		return nil, err
	}
	return &containedHook{Process: p, runtime: b, sandbox: c, cleanup: func() []string { return slices.Concat(notes, clean(), settling.End()) }}, nil
}

// A containedHook is a process of a hook in a sandbox.
type containedHook struct {
	sandbox.Process
	runtime *Runtime
	sandbox *sandboxpool.Sandbox
	cleanup func() []string
	once    sync.Once
}

// Wait waits for the process and returns how it ended.
func (p *containedHook) Wait() (exitCode int, err error) {
	s, err := p.Process.Wait()
	return s.ExitCode, err
}

// Kill ends the process with its descendants, and removes what they must not leave.
func (p *containedHook) Kill() error {
	_, err := p.Process.Kill()
	p.once.Do(func() {
		for _, note := range p.cleanup() {
			p.runtime.log.Warn(note)
		}
		p.runtime.sandboxes.Release(p.sandbox)
	})
	return err
}
