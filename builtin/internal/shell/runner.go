package shell

import (
	"context"
	"errors"
	"os"
	"sync"
	"time"

	"github.com/toolhost/toolhost/builtin/internal/shell/supervise"
)

// Defaults of [Config]. Times and sizes follow what was measured for this design:
// 1 GiB of output is swallowed in well under a second, and programs that handle
// SIGTERM at all do so within two seconds.
const (
	DefaultTimeout     = 120 * time.Second      // of a command without one of its own
	DefaultGrace       = 2 * time.Second        // from SIGTERM to SIGKILL
	DefaultDrain       = 20 * time.Millisecond  // for output that others still write after the shell's end
	DefaultWarm        = 2                      // shells started ahead
	DefaultPathTimeout = 5 * time.Second        // for the login shell to tell its PATH
	DefaultPathWait    = 1 * time.Second        // that first commands wait for that
	progressEvery      = 200 * time.Millisecond // at most five progress reports a second
)

// ErrClosed is the error of Run on a runner that has been closed.
var ErrClosed = errors.New("the shell runner is closed: the server is shutting down")

// A Config says how commands run. The zero value runs commands directly on the
// host with the defaults above; it keeps no output beyond head and tail.
type Config struct {
	// Bash is the absolute path of bash. "": /bin/bash, /usr/bin/bash and a few
	// more fixed places, then those directories of PATH that only root can write.
	// If there is none, every Run fails with an error that says so; no other
	// shell is tried, because commands are judged as Bash.
	Bash string

	// Start starts processes; nil: on the host, under a supervisor.
	Start supervise.Starter

	// Env is the environment to derive the commands' environment from; nil:
	// os.Environ(). See [Derive] for what is taken away and added.
	Env []string

	// Set is variables, as NAME=value, that every command gets, in place of those of
	// Env and of the runner; those that change how bash reads a command are left out.
	Set []string

	// Unset names variables that no command gets.
	Unset []string

	// KeepVars names variables (as path.Match patterns) that are passed on
	// although the runner would take them away or set them itself. StripVars
	// names more variables to take away. KeepVars wins.
	KeepVars, StripVars []string

	// Execs has the programs judged that commands start, by their [Command].Judge. Without one a command can start none.
	Execs bool

	// InheritPath turns the look at the login shell's PATH off.
	InheritPath bool

	// Spill takes whole outputs that do not fit head and tail; nil: not kept.
	Spill Spill

	Limits // 0: the defaults of the package

	Timeout     time.Duration // 0: DefaultTimeout
	Grace       time.Duration // 0: DefaultGrace
	Drain       time.Duration // 0: DefaultDrain
	Warm        int           // 0: DefaultWarm; negative: none is started ahead
	PathTimeout time.Duration // 0: DefaultPathTimeout
	PathWait    time.Duration // 0: DefaultPathWait; counted from New, and only if the inherited PATH is bare
}

// withDefaults returns c with the defaults for what is zero.
func (c Config) withDefaults() Config {
	c.Timeout = orDefault(c.Timeout, DefaultTimeout)
	c.Grace = orDefault(c.Grace, DefaultGrace)
	c.Drain = orDefault(c.Drain, DefaultDrain)
	c.Head = orDefault(c.Head, DefaultHead)
	c.Tail = orDefault(c.Tail, DefaultTail)
	c.SpillMax = orDefault(c.SpillMax, DefaultSpillMax)
	c.Warm = orDefault(c.Warm, DefaultWarm)
	c.PathTimeout = orDefault(c.PathTimeout, DefaultPathTimeout)
	c.PathWait = orDefault(c.PathWait, DefaultPathWait)
	if c.Env == nil {
		c.Env = os.Environ()
	}
	if c.Start == nil {
		c.Start = supervise.Start
	}
	return c
}

func orDefault[T comparable](v, def T) T {
	var zero T
	if v == zero {
		return def
	}
	return v
}

// A Runner runs Bash commands, each in a fresh shell. It may be used from
// several goroutines.
type Runner struct {
	cfg     Config
	bash    string
	bashErr error

	ctx    context.Context // done when the runner closes
	cancel context.CancelFunc
	login  *Login

	mu         sync.Mutex
	env        []string // of the shells to start
	generation int      // counts changes of env
	pool       pool
	closed     bool
	work       sync.WaitGroup // everything that runs on behalf of this runner
}

// New returns a Runner. It starts its first shells and the look at the login
// shell's PATH in the background. The only error is a configuration that cannot
// be used; a missing bash is reported by Run.
func New(cfg Config) (*Runner, error) {
	if err := cfg.check(); err != nil {
		return nil, err
	}
	r := &Runner{cfg: cfg.withDefaults()}
	r.bash, r.bashErr = FindBash(r.cfg.Bash, r.cfg.Env)
	r.env = Without(Derive(r.cfg.Env, r.cfg.Set, r.cfg.KeepVars, r.cfg.StripVars), r.cfg.Unset)
	r.ctx, r.cancel = context.WithCancel(context.Background())
	r.login = NewLogin(r.cfg.Start, r.cfg.Env, r.cfg.PathTimeout, r.cfg.PathWait)
	if r.bashErr != nil {
		return r, nil
	}
	r.refill()
	if cfg.InheritPath {
		r.login.Done()
	} else {
		r.work.Go(r.learnPath)
	}
	return r, nil
}

// check refuses settings that make no sense.
func (c Config) check() error {
	for name, d := range map[string]time.Duration{
		"Timeout": c.Timeout, "Grace": c.Grace, "Drain": c.Drain,
		"PathTimeout": c.PathTimeout, "PathWait": c.PathWait,
	} {
		if d < 0 {
			return errors.New("shell: " + name + " is negative")
		}
	}
	if c.Head < 0 || c.Tail < 0 || c.SpillMax < 0 {
		return errors.New("shell: Head, Tail and SpillMax must not be negative")
	}
	return CheckPatterns(c.KeepVars, c.StripVars)
}

// learnPath asks the login shell for its PATH and makes it that of the shells
// started from now on; those that wait already are replaced.
func (r *Runner) learnPath() {
	defer r.login.Done()
	r.mu.Lock()
	env := r.env
	r.mu.Unlock()
	env, changed := r.login.Join(r.ctx, r.bash, env)
	if !changed {
		return
	}
	r.renew(env)
}

// Renew has the commands that follow run in shells that are started after it was called, not in those that wait.
func (r *Runner) Renew() {
	r.mu.Lock()
	env := r.env
	r.mu.Unlock()
	r.renew(env)
}

// renew replaces the shells that wait by some with another environment.
func (r *Runner) renew(env []string) {
	r.mu.Lock()
	old := r.pool.warm
	r.env, r.pool.warm = env, nil
	r.generation++
	r.mu.Unlock()
	r.refill()
	for _, s := range old {
		s.discard()
	}
}

// Close ends everything that still runs and waits until it is gone: commands,
// shells that wait, and the look at the login shell. Calls of Run return, with
// Cancelled set.
func (r *Runner) Close() error {
	r.mu.Lock()
	r.closed = true
	old := r.pool.warm
	r.pool.warm = nil
	if r.pool.later != nil {
		r.pool.later.Stop()
	}
	r.mu.Unlock()
	r.cancel()
	var errs []error
	for _, s := range old {
		errs = append(errs, s.discard())
	}
	r.work.Wait()
	errs = append(errs, r.reaped(context.Background()))
	r.tidy()
	return errors.Join(errs...)
}
