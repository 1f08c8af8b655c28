package shell

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"
	"unicode/utf8"
)

// A Command is one command to run.
type Command struct {
	Text    string        // valid UTF-8 without NUL
	Dir     string        // absolute path of an existing directory
	Timeout time.Duration // 0: DefaultTimeout

	// Output, if not nil, is called with the last lines of the output when they
	// changed, at most five times a second, from a goroutine of the runner;
	// never after Run has returned.
	Output func(tail string)

	// Spill stores the whole of an output that exceeds head and tail. It may be nil.
	Spill Spill

	// Left, if not nil, is called after the command has ended and [Execution.Leave] was called, or when it could not be
	// started.
	Left func()

	// Gate judges the programs that the command starts, where Config.Execs is set, and its connections. Nil: it can
	// start none, and connects only to hosts that need no judgement.
	Gate Gate
}

// A Result tells what a command did.
type Result struct {
	Shown

	ExitCode  int    // as the shell counts: 128 + the signal's number if the shell itself was killed
	Signal    string // the signal that ended the shell itself ("SIGKILL"), or ""
	TimedOut  bool   // the command was ended because its time was over
	Cancelled bool   // the command was ended because the caller or the server went away
	Unheard   bool   // the command was ended because it had waited too long for a person

	// Dir is the working directory at the end, without symbolic links, or "" if it is not known. Then the old one stays
	// in use. It is unknown if the shell was killed, replaced itself by exec, called exit in a function or with an EXIT
	// trap of its own, or had too few descriptors left. DirGone says that it is "" because the directory no longer
	// exists.
	Dir     string
	DirGone bool

	// Left counts processes that still ran in the background when the command
	// returned and were ended because of that.
	Left int

	// Remarks are remarks on a task that has ended. Execs has a line for each program that was refused, or that a person
	// allowed. The runner sets neither.
	Remarks, Execs []string

	// Problem is an error of the runner itself that the reader should know of:
	// a process that could not be ended, a supervisor that was killed.
	Problem error
}

// A DirError says that the shell could not enter the command's working directory.
// Nothing of the command ran.
type DirError struct{ Dir, Why string }

func (e *DirError) Error() string {
	return "the shell did not run the command in " + e.Dir + ": " + e.Why
}

// Run runs a command, and returns when the command and everything it started has ended. An error means that nothing
// ran. Whatever happens to a command that was started is in the Result.
func (r *Runner) Run(ctx context.Context, c Command) (*Result, error) {
	run, err := r.Start(ctx, c)
	if err != nil {
		return nil, err
	}
	defer run.Leave()
	run.Wait(ctx, 0)
	return run.Finish()
}

// check refuses a command that cannot be run as it is written.
func (c Command) check() error {
	switch {
	case strings.ContainsRune(c.Text, 0):
		return errors.New("the command contains a NUL byte, which no shell can run: write it as $'\\x00' in printf or " +
			"remove it")
	case !utf8.ValidString(c.Text):
		return errors.New("the command is not valid UTF-8: write other bytes as escapes, for instance printf '\\xff'")
	case c.Timeout < 0:
		return fmt.Errorf("the timeout is negative (%v): give a positive one, or none for the default", c.Timeout)
	case !filepath.IsAbs(c.Dir):
		return fmt.Errorf("the working directory %q is not an absolute path", c.Dir)
	}
	info, err := os.Stat(c.Dir)
	switch {
	case errors.Is(err, os.ErrNotExist):
		return fmt.Errorf("the working directory %s does not exist (any more): nothing was run", c.Dir)
	case err != nil:
		return fmt.Errorf("the working directory cannot be used: %w", err)
	case !info.IsDir():
		return fmt.Errorf("the working directory %s is not a directory: nothing was run", c.Dir)
	}
	return nil
}

// Start hands a command to a shell. An error means that nothing ran. The caller calls [Execution.Wait] until the
// command is over, then [Execution.Finish] and [Execution.Leave].
func (r *Runner) Start(ctx context.Context, c Command) (_ *Execution, err error) {
	if c.Left == nil {
		c.Left = func() {}
	}
	defer func() {
		if err != nil {
			c.Left()
		}
	}()
	if r.bashErr != nil {
		return nil, r.bashErr
	}
	if err := c.check(); err != nil {
		return nil, err
	}
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("the call was cancelled before the command started: %w", err)
	}
	if !r.begin() {
		return nil, ErrClosed
	}
	if c.Gate == nil {
		c.Gate = ungated{}
	}
	s, err := r.handOver(ctx, c)
	if err != nil {
		r.work.Done()
		return nil, err
	}
	run := &Execution{
		runner: r, dir: c.Dir, shell: s, Begun: time.Now(), Out: s.out,
		timeout: orDefault(c.Timeout, DefaultTimeout), gate: c.Gate, left: c.Left, why: goesOn,
	}
	run.progress(c.Output)
	return run, nil
}

// begin counts one more piece of work, unless the runner is closed.
func (r *Runner) begin() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		return false
	}
	r.work.Add(1)
	return true
}

// handOver gives the command to a shell. An earlier command may have killed a shell that was started ahead. Then
// writing to it fails, and another shell can safely get the command: a shell runs nothing before it has read the
// whole message.
func (r *Runner) handOver(ctx context.Context, c Command) (*shell, error) {
	var err error
	for range max(r.cfg.Warm, 0) + 2 {
		if ctx.Err() != nil {
			return nil, fmt.Errorf("the call was cancelled before the command started: %w", ctx.Err())
		}
		var s *shell
		if s, err = r.take(ctx); err != nil {
			return nil, err
		}
		if err = r.reaped(ctx); err != nil {
			s.discard()
			return nil, err
		}
		if c.Spill != nil {
			s.out.SpillTo(c.Spill)
		}
		if s.execs != nil {
			s.execs.Judge(c.Gate.Judge)
		}
		s.hosts.Judge(c.Gate.Connect)
		if err = s.send(c.Dir, c.Text); err == nil {
			return s, nil
		}
		if why := s.report().refused; why != "" {
			err = &DirError{Dir: c.Dir, Why: why}
		}
		s.discard()
		if !errors.Is(err, syscall.EPIPE) && !errors.Is(err, syscall.ECONNRESET) {
			break
		}
	}
	return nil, fmt.Errorf("the command could not be handed to %s: %w", r.bash, err)
}
