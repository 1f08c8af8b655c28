package builtin

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/toolhost/toolhost/builtin/internal/sandboxpool"
	"github.com/toolhost/toolhost/guard"
	"github.com/toolhost/toolhost/guard/hook"
	"github.com/toolhost/toolhost/guard/sandbox"
	"github.com/toolhost/toolhost/guard/sandbox/connectgate"
)

// HookPrincipal is the principal of contained hooks. They do not run in the sandbox of a caller, whose commands could
// access them.
const HookPrincipal = "\x00hooks"

// hookStart limits the time to start the sandbox of a hook, which takes about 20 ms.
const hookStart = 10 * time.Second

// StartContained starts a hook's process in its sandbox, under the rules of [HookPrincipal]. Each hook has a sandbox
// of its own, which is kept for its next call: a hook that runs code of the workspace must not reach the processes of
// another. execs says who is asked about hosts. An error that matches [fs.ErrNotExist] or [fs.ErrPermission] is about
// the hook's program.
func (b *Runtime) StartContained(policy *guard.Policy, s hook.Spec, execs Execs) (hook.Process, error) {
	ctx, cancel := context.WithTimeout(context.Background(), hookStart)
	defer cancel()
	sum := sha256.Sum256([]byte(strings.Join(s.Argv, "\x00")))
	key := sandboxpool.Key(HookPrincipal, hex.EncodeToString(sum[:8]))
	c, err := b.sandboxes.AcquireBare(ctx, key, policy)
	if err != nil {
		// Not wrapped: the error is not about the program.
		return nil, fmt.Errorf("its sandbox cannot be started: %v", err)
	}
	gate, hosts := newExecGate(execs), connectgate.New()
	if s.Async {
		gate.leaves()
	}
	hosts.Judge(gate.Connect)
	clean, refused := b.sandboxes.Cleanup(), c.Refusing()
	settling, notes, err := b.sandboxes.Enter(c)
	if err != nil {
		hosts.Close()
		b.sandboxes.Release(c)
		return nil, fmt.Errorf("protected files cannot be settled: %v", err)
	}
	p := &containedHook{end: func() []string {
		hosts.Close()
		for _, note := range slices.Concat(notes, clean(), settling.End()) {
			b.log.Warn(note)
		}
		said := refused()
		b.sandboxes.Release(c)
		return said
	}}
	p.Process, err = c.Spawn(s.Argv, s.Dir, s.Env, s.Files, hosts)
	if err != nil {
		if errors.Is(err, sandbox.ErrClosed) {
			b.sandboxes.Discard(key, c)
		}
		p.end()
		return nil, err
	}
	return p, nil
}

// A containedHook is a process of a hook in a sandbox.
type containedHook struct {
	sandbox.Process
	end  func() []string // of its use of the sandbox; returns notes on refused hosts
	once sync.Once
}

// Wait waits for the process and returns how it ended.
func (p *containedHook) Wait() (exitCode int, err error) {
	s, err := p.Process.Wait()
	return s.ExitCode, err
}

// Kill ends the process with its descendants, and removes what they must not leave. It returns notes on refused hosts.
func (p *containedHook) Kill() (refused []string, err error) {
	_, err = p.Process.Kill()
	p.once.Do(func() { refused = p.end() })
	return refused, err
}
