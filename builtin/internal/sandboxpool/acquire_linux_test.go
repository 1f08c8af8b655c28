package sandboxpool

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/toolhost/toolhost/builtin/internal/shell"
	"github.com/toolhost/toolhost/guard"
	"github.com/toolhost/toolhost/guard/sandbox"
	"github.com/toolhost/toolhost/guard/sandbox/baseline"
)

// policyFor returns rules of a principal for the workspace "ws" in base. The rules of two calls differ.
func policyFor(t *testing.T, base, principal string) *guard.Policy {
	t.Helper()
	if err := os.MkdirAll(filepath.Join(base, "ws"), 0o755); err != nil {
		t.Fatal(err)
	}
	policy, err := guard.New(guard.Config{
		Roots: []string{filepath.Join(base, "ws")}, Home: t.TempDir(),
		Scratch: filepath.Join(base, "scratch", principal),
		Contain: func() guard.Containment { return guard.Containment{Writes: true, Denies: true} },
	})
	if err != nil {
		t.Fatal(err)
	}
	return policy
}

// poolWith returns a pool whose sandboxes are started by a function, which may call [Pool.startSandbox].
func poolWith(t *testing.T, start func(*Pool, context.Context, *guard.Policy, kind) (*Sandbox, error)) *Pool {
	log := slog.New(slog.DiscardHandler)
	keeper := baseline.Open("", log)
	cs := New(log, keeper, "")
	cs.start = func(ctx context.Context, policy *guard.Policy, kind kind) (*Sandbox, error) {
		return start(cs, ctx, policy, kind)
	}
	t.Cleanup(func() {
		if err := errors.Join(cs.Close(), keeper.Close()); err != nil {
			t.Error(err)
		}
	})
	return cs
}

// idleSandbox returns a sandbox without processes.
func idleSandbox(policy *guard.Policy) *Sandbox {
	c := &Sandbox{policy: policy, shared: true, covered: covered{looked: time.Now()}}
	c.paths.Control = policy.Commands().ControlPaths()
	c.once.Do(func() {}) // there is nothing to close
	return c
}

func baseDir(t *testing.T) string {
	t.Helper()
	base, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	return base
}

// TestStartsInParallel: sandboxes of different principals and rules start at once, and the pool answers meanwhile.
func TestStartsInParallel(t *testing.T) {
	base := baseDir(t)
	started, release := make(chan bool), make(chan bool)
	cs := poolWith(t, func(cs *Pool, _ context.Context, policy *guard.Policy, kind kind) (*Sandbox, error) {
		if kind.shells {
			started <- true
			<-release
		}
		return idleSandbox(policy), nil
	})
	other, err := cs.AcquireBare(t.Context(), "other", policyFor(t, base, "other"))
	if err != nil {
		t.Fatal(err)
	}
	var calls sync.WaitGroup
	for _, key := range []string{"a", "b", "b", Key("b", "tree")} {
		policy := policyFor(t, base, "x")
		calls.Go(func() {
			c, err := cs.Acquire(t.Context(), key, policy)
			if err != nil {
				t.Error(err)
				return
			}
			cs.Release(c)
		})
	}
	for range 4 {
		<-started
	}
	if !cs.Has("other") || cs.Has("a") {
		t.Error("the pool does not know what is open")
	}
	again, err := cs.AcquireBare(t.Context(), "other", other.policy)
	if err != nil || again != other {
		t.Errorf("another sandbox: %v", err)
	}
	for _, c := range []*Sandbox{other, again} {
		cs.Release(c)
	}
	close(release)
	calls.Wait()
	if len(cs.open) != 4 || len(cs.starts) != 0 {
		t.Errorf("%d sandboxes, %d starts", len(cs.open), len(cs.starts))
	}
}

// TestStartIsShared: callers with the same key and rules get the sandbox of one start, and each may give up waiting.
func TestStartIsShared(t *testing.T) {
	policy := policyFor(t, baseDir(t), "me")
	started, release := make(chan bool, 1), make(chan bool)
	cs := poolWith(t, func(_ *Pool, _ context.Context, policy *guard.Policy, _ kind) (*Sandbox, error) {
		started <- true // only one fits
		<-release
		return idleSandbox(policy), nil
	})
	got := make(chan *Sandbox)
	for range 8 {
		go func() {
			c, err := cs.Acquire(t.Context(), "me", policy)
			if err != nil {
				t.Error(err)
			}
			got <- c
		}()
	}
	<-started
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := cs.Acquire(ctx, "me", policy); !errors.Is(err, context.Canceled) {
		t.Errorf("a caller that has given up: %v", err)
	}
	close(release)
	first := <-got
	for range 7 {
		if c := <-got; c != first {
			t.Error("two sandboxes")
		}
	}
	if len(started) != 0 || first.users != 8 {
		t.Errorf("%d users, started again: %d", first.users, len(started))
	}
}

// TestStartFails: an error is that of the callers that wait, and of no later one. If the caller that starts gives up,
// another starts.
func TestStartFails(t *testing.T) {
	policy := policyFor(t, baseDir(t), "me")
	failure := errors.New("no more processes")
	var starts atomic.Int32
	first := make(chan bool)
	cs := poolWith(t, func(_ *Pool, ctx context.Context, policy *guard.Policy, _ kind) (*Sandbox, error) {
		switch starts.Add(1) {
		case 1:
			return nil, failure
		case 2:
			close(first)
			<-ctx.Done()
			return nil, ctx.Err()
		}
		return idleSandbox(policy), nil
	})
	if _, err := cs.Acquire(t.Context(), "me", policy); !errors.Is(err, failure) {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	gaveUp, ended := make(chan error), make(chan error)
	go func() {
		_, err := cs.Acquire(ctx, "me", policy)
		gaveUp <- err
	}()
	<-first
	for range 2 {
		go func() {
			_, err := cs.Acquire(t.Context(), "me", policy)
			ended <- err
		}()
	}
	cancel()
	if err := <-gaveUp; !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	if err := errors.Join(<-ended, <-ended); err != nil {
		t.Error(err)
	}
	if n := starts.Load(); n != 3 {
		t.Errorf("%d starts", n)
	}
}

// TestForgetDuringStart: a sandbox whose principal or workspace ends while it starts is used once.
func TestForgetDuringStart(t *testing.T) {
	base := baseDir(t)
	for name, forget := range map[string]func(cs *Pool){
		"principal": func(cs *Pool) { cs.Forget("me") },
		"workspace": func(cs *Pool) { cs.End("tree") },
	} {
		t.Run(name, func(t *testing.T) {
			cs := poolWith(t, func(cs *Pool, _ context.Context, policy *guard.Policy, _ kind) (*Sandbox, error) {
				forget(cs)
				return idleSandbox(policy), nil
			})
			c, err := cs.Acquire(t.Context(), Key("me", "tree"), policyFor(t, base, "me"))
			if err != nil {
				t.Fatal(err)
			}
			if len(cs.open) != 0 || !cs.retired[c] {
				t.Error("it is kept")
			}
			cs.Release(c)
			if len(cs.retired) != 0 {
				t.Error("it has not ended")
			}
		})
	}
}

// realStart starts a sandbox, or skips the test.
func realStart(t *testing.T, cs *Pool, ctx context.Context, policy *guard.Policy, kind kind) (*Sandbox, error) {
	c, err := cs.startSandbox(ctx, policy, kind)
	if errors.Is(err, sandbox.ErrUnavailable) {
		t.Skip(err)
	}
	return c, err
}

// TestCloseDuringStart: Close ends what starts, and nothing is left when it returns.
func TestCloseDuringStart(t *testing.T) {
	for name, open := range map[string]func(ctx context.Context, cs *Pool, policy *guard.Policy) error{
		"commands": func(ctx context.Context, cs *Pool, policy *guard.Policy) error {
			_, err := cs.Acquire(ctx, "me", policy)
			return err
		},
		"an agent": func(ctx context.Context, cs *Pool, policy *guard.Policy) error {
			_, _, _, err := cs.OpenAgent(ctx, policy, Agent{})
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			policy := policyFor(t, baseDir(t), "me")
			var c *Sandbox
			closed := make(chan error, 1)
			cs := poolWith(t, func(cs *Pool, ctx context.Context, policy *guard.Policy, kind kind) (_ *Sandbox,
				err error) {
				go func() { closed <- cs.Close() }()
				<-ctx.Done()
				c, err = realStart(t, cs, context.WithoutCancel(ctx), policy, kind) // it had nearly started
				return c, err
			})
			if err := open(t.Context(), cs, policy); !errors.Is(err, shell.ErrClosed) {
				t.Errorf("the sandbox of a closed pool: %v", err)
			}
			if err := <-closed; err != nil {
				t.Error(err)
			}
			if _, err := c.box.Spawn(sandbox.Spec{Argv: []string{"/bin/true"}}); !errors.Is(err, sandbox.ErrClosed) {
				t.Errorf("the sandbox lives: %v", err)
			}
			if len(cs.open)+len(cs.retired)+len(cs.starts) != 0 {
				t.Error("the pool is not empty")
			}
		})
	}
}

// TestHidesScratchOfLater: a sandbox hides the scratch directories of principals whose sandbox starts before its own
// first command.
func TestHidesScratchOfLater(t *testing.T) {
	base := baseDir(t)
	first, later := policyFor(t, base, "first"), policyFor(t, base, "later")
	cs := poolWith(t, func(cs *Pool, ctx context.Context, policy *guard.Policy, kind kind) (*Sandbox, error) {
		c, err := realStart(t, cs, ctx, policy, kind)
		if policy == first && err == nil {
			var other *Sandbox
			if other, err = cs.Acquire(ctx, "later", later); err == nil {
				cs.Release(other)
			}
		}
		return c, err
	})
	c, err := cs.Acquire(t.Context(), "first", first)
	if err != nil {
		t.Fatal(err)
	}
	defer cs.Release(c)
	if c.deniedAtMount[later.Commands().Scratch()] == nil {
		t.Error("a command can read the files of the other principal")
	}
}

// TestEnd: the sandboxes of workspaces that have ended are gone, and no others.
func TestEnd(t *testing.T) {
	base := baseDir(t)
	policy := policyFor(t, base, "me")
	cs := poolWith(t, func(_ *Pool, _ context.Context, policy *guard.Policy, _ kind) (*Sandbox, error) {
		return idleSandbox(policy), nil
	})
	acquire := func(key string) *Sandbox {
		c, err := cs.Acquire(t.Context(), key, policy)
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	cs.Release(acquire("me"))
	for i := range maxSandboxes {
		tree := fmt.Sprint("tree", i)
		cs.Release(acquire(Key("me", tree)))
		cs.Release(acquire(Key("agent", tree)))
		cs.End(tree)
	}
	busy := acquire(Key("me", "busy"))
	cs.End("busy")
	cs.ends.Wait()
	if len(cs.open) != 1 || !cs.Has("me") || len(cs.retired) != 1 || !cs.retired[busy] {
		t.Errorf("%d sandboxes, %d retired", len(cs.open), len(cs.retired))
	}
	if cs.Release(busy); len(cs.retired) != 0 {
		t.Error("a sandbox lives on without a command")
	}
}
