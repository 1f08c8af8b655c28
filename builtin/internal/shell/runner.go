package shell

import (
	"context"
	"errors"
	"os"
	"sync"
	"time"

	"github.com/toolhost/toolhost/builtin/internal/shell/supervise"
)

// Defaults of [Config]. They were measured: programs that handle SIGTERM do so
// within two seconds.
const (
	DefaultTimeout     = 120 * time.Second      // of a command without a timeout
	DefaultGrace       = 2 * time.Second        // from SIGTERM to SIGKILL
	DefaultDrain       = 20 * time.Millisecond  // for output of other processes after the end of the shell
	DefaultWarm        = 2                      // shells that are started before they are needed
	DefaultPathTimeout = 5 * time.Second        // for the login shell to print its PATH
	DefaultPathWait    = 1 * time.Second        // how long the first commands wait for that PATH
	progressEvery      = 200 * time.Millisecond // at most five progress reports a second
)

// ErrClosed is the error of Run on a runner that has been closed.
var ErrClosed = errors.New("the shell runner is closed: the server is shutting down")

// A Config configures a [Runner]. The zero value runs commands on the host with
// the defaults above, and keeps only the head and the tail of outputs.
type Config struct {
	// Start starts processes; nil: on the host, under a supervisor.
	Start supervise.Starter

	// Env is the environment from which that of commands is derived. Nil means
	// os.Environ(). See derive.
	Env []string

	// Set has variables, as NAME=value, for every command. They replace those of Env
	// and of the runner. Variables that change how bash reads a command are ignored.
	Set []string

	// Unset names variables that no command gets.
	Unset []string

	// Execs makes [Command].Gate judge the programs that commands start. A command without a gate can start none.
	Execs bool

	// InheritPath disables the use of the login shell's PATH.
	InheritPath bool

	Limits // 0: the defaults of the package

	Grace       time.Duration // 0: DefaultGrace
	Drain       time.Duration // 0: DefaultDrain
	Warm        int           // 0: DefaultWarm; negative: no warm shells
	PathTimeout time.Duration // 0: DefaultPathTimeout
	PathWait    time.Duration // 0: DefaultPathWait; counted from New, and only if the inherited PATH is bare
}

// withDefaults returns c with the defaults for zero fields.
func (c Config) withDefaults() Config {
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
	work       sync.WaitGroup // all goroutines of this runner
}

// New returns a Runner. In the background it starts the first shells and asks the
// login shell for its PATH. If there is no bash, every Run fails with an error that
// says so; no other shell is tried, because commands are judged as Bash.
func New(cfg Config) *Runner {
	r := &Runner{cfg: cfg.withDefaults()}
	r.bash, r.bashErr = findBash(r.cfg.Env)
	r.env = Without(derive(r.cfg.Env, r.cfg.Set), r.cfg.Unset)
	r.ctx, r.cancel = context.WithCancel(context.Background())
	r.login = NewLogin(r.cfg.Start, r.cfg.Env, r.cfg.PathTimeout, r.cfg.PathWait)
	if r.bashErr != nil {
		return r
	}
	r.refill()
	if cfg.InheritPath {
		r.login.Done()
	} else {
		r.work.Go(r.learnPath)
	}
	return r
}

// learnPath asks the login shell for its PATH, which new shells then use. It
// replaces the warm shells.
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

// Renew makes later commands run in shells that are started after the call of Renew.
func (r *Runner) Renew() {
	r.mu.Lock()
	env := r.env
	r.mu.Unlock()
	r.renew(env)
}

// renew replaces the warm shells.
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

// Close ends commands, warm shells and the login shell, and waits for their end.
// Calls of Run return with Cancelled set.
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
	r.runDeferred()
	return errors.Join(errs...)
}
