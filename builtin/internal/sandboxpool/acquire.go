package sandboxpool

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/toolhost/toolhost/builtin/internal/shell"
	"github.com/toolhost/toolhost/guard"
)

// A kind says what a sandbox is for: commands, if it has shells, and otherwise a hook, a server or an agent.
type kind struct {
	shells bool
	cell   *Cell
	agent  *Agent
}

// A start is a sandbox that is being started. The lock of the pool guards it.
type start struct {
	key       string // "" for an agent
	policy    *guard.Policy
	scratches []string      // of other principals, created meanwhile, to be hidden before the first use
	forgotten bool          // the sandbox is for its first user only
	done      chan struct{} // closed at the end
	err       error         // set before done is closed; nil if other callers may try again
}

// Key returns the key for [Pool.Acquire] of a principal's sandbox for one workspace, which [Pool.End] ends.
func Key(principal, workspace string) string { return principal + "\x00" + workspace }

// Acquire returns the sandbox with a key: the principal, or [Key]. It starts a new one if the current rules or files
// require that; callers with the same key and rules wait for one start. The caller must call Release after its command
// has ended.
func (cs *Pool) Acquire(ctx context.Context, key string, policy *guard.Policy) (*Sandbox, error) {
	return cs.acquire(ctx, key, policy, kind{shells: true})
}

// AcquireBare is Acquire for a sandbox without warm shells and published ports, in which no rules on commands apply:
// [Sandbox.Spawn] starts its programs.
func (cs *Pool) AcquireBare(ctx context.Context, key string, policy *guard.Policy) (*Sandbox, error) {
	return cs.acquire(ctx, key, policy, kind{})
}

func (cs *Pool) acquire(ctx context.Context, key string, policy *guard.Policy, kind kind) (*Sandbox, error) {
	for {
		c, s, mine, err := cs.claim(key, policy)
		switch {
		case err != nil:
			return nil, err
		case mine:
			return cs.run(ctx, s, kind)
		case s != nil:
			if err := s.wait(ctx); err != nil {
				return nil, err
			}
		case c.current(policy):
			cs.baseline.Begin(c.dirs(), c.guarded)
			cs.tidy(c)
			return c, nil
		default:
			cs.Discard(key, c)
			cs.leave(c)
		}
	}
}

// claim returns the open sandbox with a key and counts its user, or returns its start: that of another caller, or a
// new one, which is mine to run.
func (cs *Pool) claim(key string, policy *guard.Policy) (c *Sandbox, s *start, mine bool, err error) {
	cs.mu.Lock()
	defer cs.mu.Unlock()
	if cs.closed {
		return nil, nil, false, shell.ErrClosed
	}
	if c := cs.open[key]; c != nil && c.policy.SameRules(policy) {
		cs.use(c)
		return c, nil, false, nil
	} else if c != nil {
		cs.evict(key)
	}
	for s := range cs.starts {
		if s.key == key && !s.forgotten && s.policy.SameRules(policy) {
			return nil, s, false, nil
		}
	}
	return nil, cs.begin(key, policy), true, nil
}

// begin adds a start, which [Pool.run] ends. The caller holds the lock.
func (cs *Pool) begin(key string, policy *guard.Policy) *start {
	s := &start{key: key, policy: policy, done: make(chan struct{})}
	cs.starts[s] = true
	cs.starting.Add(1)
	return s
}

// wait waits until a start of another caller has ended. After an error the start is not to be tried again by those who
// waited for it.
func (s *start) wait(ctx context.Context) error {
	select {
	case <-s.done:
		return s.err
	case <-ctx.Done():
		return fmt.Errorf("waiting for the start of the sandbox: %w", ctx.Err())
	}
}

// run starts a sandbox and counts its first user.
func (cs *Pool) run(ctx context.Context, s *start, kind kind) (*Sandbox, error) {
	defer cs.starting.Done()
	during, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(cs.life, cancel)()
	c, err := cs.start(during, s.policy, kind)
	unused := cs.finish(s, c, &err)
	if ctx.Err() == nil {
		s.err = err
	}
	close(s.done)
	if unused {
		if c.session == nil {
			cs.baseline.End(c.dirs())
		}
		return nil, errors.Join(err, c.close(cs))
	}
	if err != nil {
		return nil, err
	}
	cs.tidy(c)
	return c, nil
}

// finish enters a sandbox that has started, unless the pool was closed meanwhile, or scratch directories of others
// cannot be hidden from it: then it is unused.
func (cs *Pool) finish(s *start, c *Sandbox, err *error) (unused bool) {
	cs.mu.Lock()
	defer cs.mu.Unlock()
	for *err == nil && len(s.scratches) > 0 {
		dirs := s.scratches
		s.scratches = nil
		cs.mu.Unlock()
		for _, dir := range dirs {
			*err = errors.Join(*err, c.coverNew(dir))
		}
		cs.mu.Lock()
	}
	delete(cs.starts, s)
	if cs.closed {
		*err = shell.ErrClosed
	}
	if *err != nil {
		return c != nil
	}
	c.key = s.key
	cs.use(c)
	if s.key == "" || s.forgotten {
		c.retired, cs.retired[c] = true, true
		return false
	}
	if cs.open[s.key] != nil { // of other rules
		cs.evict(s.key)
	}
	cs.open[s.key] = c
	return false
}

// current is upToDate under the lock of the sandbox.
func (c *Sandbox) current(policy *guard.Policy) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.upToDate(policy)
}

// hideScratch hides a new scratch directory from the sandboxes of other principals, including those that are being
// started.
func (cs *Pool) hideScratch(dir string) {
	cs.mu.Lock()
	others := slices.DeleteFunc(cs.all(), func(c *Sandbox) bool { return c.policy.Commands().Scratch() == dir })
	for s := range cs.starts {
		if s.policy.Commands().Scratch() != dir {
			s.scratches = append(s.scratches, dir)
		}
	}
	cs.mu.Unlock()
	for _, c := range others {
		_ = c.coverNew(dir) // a sandbox in which that failed is not used again
	}
}

// tidy ends sandboxes that are idle for too long or too many, now that c has a new user.
func (cs *Pool) tidy(c *Sandbox) {
	cs.mu.Lock()
	defer cs.mu.Unlock()
	if cs.closed {
		return
	}
	for other := cs.stale(c.key); other != ""; other = cs.stale(c.key) {
		cs.open[other].idle = true
		cs.evict(other)
	}
}

// Forget retires all sandboxes of a principal.
func (cs *Pool) Forget(principal string) {
	cs.forget(func(key string) bool {
		owner, _, _ := strings.Cut(key, "\x00")
		return owner == principal
	})
}

// End retires the sandboxes of all principals for a workspace, and returns when the unused ones have ended.
func (cs *Pool) End(workspace string) {
	match := func(key string) bool { return strings.HasSuffix(key, Key("", workspace)) }
	cs.forget(match)
	cs.closeRetired(func(c *Sandbox) bool { return c.users == 0 && match(c.key) })
}

// closeRetired ends the retired sandboxes that which selects, and waits for their end. It calls which under the lock.
func (cs *Pool) closeRetired(which func(*Sandbox) bool) {
	cs.mu.Lock()
	all := slices.DeleteFunc(slices.Collect(maps.Keys(cs.retired)), func(c *Sandbox) bool { return !which(c) })
	cs.mu.Unlock()
	for _, c := range all {
		_ = c.close(cs) // the end in the background logs the error
	}
}

// forget retires the sandboxes with some keys.
func (cs *Pool) forget(match func(key string) bool) {
	cs.mu.Lock()
	defer cs.mu.Unlock()
	for key := range cs.open {
		if match(key) {
			cs.evict(key)
		}
	}
	for s := range cs.starts {
		s.forgotten = s.forgotten || match(s.key)
	}
}
