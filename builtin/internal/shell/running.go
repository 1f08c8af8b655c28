package shell

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"syscall"
	"time"
)

// drainRounds bounds how often the drain after the shell's end is prolonged
// because output still arrives: process substitutions (`exec > >(tee log)`)
// outlive the shell for a moment, a flood in the background does so for ever.
const drainRounds = 10

// afterKill bounds the wait for the end of the output once every writer is gone.
// It is reached only if a process could not be killed.
const afterKill = time.Second

// readMin and readMax bound how much output is read at once, in bytes. A command
// that says little must not cost much, since hundreds may wait in the
// background; for one that floods, less than readMax costs a quarter of the
// throughput and more gains nothing.
const (
	readMin = 1 << 10
	readMax = 256 << 10
)

// An ending says why a command is over, if it is.
type ending int

const (
	returned  ending = iota // the shell ended by itself
	timedOut                // its time is over
	cancelled               // the caller went away
	closing                 // the runner closes
	goesOn                  // it is not
)

// running is a command that has been handed to a shell.
type running struct {
	cfg     Config
	dir     string // where it began
	shell   *shell
	begun   time.Time
	timeout time.Duration
	out     *collector
	eof     chan struct{} // closed when no more output is read
	stop    func()        // ends the progress reports; may be called again
}

// collect reads the output until its end or until the read deadline is set.
func (run *running) collect() {
	defer close(run.eof)
	buf := make([]byte, readMin)
	for {
		n, err := run.shell.out.Read(buf)
		run.out.Write(buf[:n])
		if err != nil {
			return
		}
		if n == len(buf) && n < readMax {
			buf = make([]byte, 4*n)
		}
	}
}

// progress reports the last lines of the output to report when they changed.
func (run *running) progress(report func(string)) {
	run.stop = func() {}
	if report == nil {
		return
	}
	quit := make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() {
		tick := time.NewTicker(progressEvery)
		defer tick.Stop()
		last := ""
		for {
			select {
			case <-quit:
				return
			case <-tick.C:
			}
			if now := run.out.lastLines(); now != last {
				last = now
				report(now)
			}
		}
	})
	run.stop = sync.OnceFunc(func() { close(quit); wg.Wait() })
}

// wait waits until the command has ended, and ends it if its time is over, the
// caller goes away (ctx) or the runner closes. If patience comes first, which may
// be nil, the command goes on.
func (run *running) wait(ctx, runner context.Context, patience <-chan time.Time) ending {
	timer := time.NewTimer(run.timeout - time.Since(run.begun))
	defer timer.Stop()
	why := returned
	select {
	case <-run.shell.proc.Done():
		return returned
	case <-timer.C:
		why = timedOut
	case <-ctx.Done():
		why = cancelled
	case <-runner.Done():
		return closing
	case <-patience:
		return goesOn
	}
	run.ask(runner)
	return why
}

// ask asks the command to end and gives it the grace time to do so. Bash itself
// obeys SIGTERM at once, so its children are given the time: the command has
// ended when its output has.
func (run *running) ask(runner context.Context) {
	run.shell.proc.Signal(syscall.SIGTERM)
	grace := time.NewTimer(run.cfg.Grace)
	defer grace.Stop()
	for _, done := range []<-chan struct{}{run.shell.proc.Done(), run.eof} {
		select {
		case <-done:
		case <-grace.C:
			return
		case <-runner.Done():
			return
		}
	}
}

// drain waits for output that is still being written after the shell's end.
func (run *running) drain() {
	seen := run.out.size()
	for range drainRounds {
		timer := time.NewTimer(run.cfg.Drain)
		select {
		case <-run.eof:
			timer.Stop()
			return
		case <-timer.C:
		}
		now := run.out.size()
		if now == seen {
			return
		}
		seen = now
	}
}

// finish ends what is left of the command and puts the result together. Like Run
// it returns an error only if the command did not run at all.
func (run *running) finish(why ending) (*Result, error) {
	if why == returned {
		run.drain()
	}
	ended, problem := run.shell.proc.Kill()
	// No writer is left, so the pipe holds the rest and then its end: nothing is
	// lost by the deadline, which is for a process that could not be killed.
	run.shell.out.SetReadDeadline(time.Now().Add(afterKill))
	<-run.eof
	run.stop()
	if problem == nil {
		<-run.shell.proc.Done()
	}
	res := run.out.result()
	res.Duration = time.Since(run.begun)
	res.TimedOut = why == timedOut
	res.Cancelled = why == cancelled || why == closing
	if why == returned {
		res.Left = ended
	}
	status, err := run.shell.status()
	res.ExitCode, res.Signal = status.ExitCode, status.Signal
	res.Problem = errors.Join(err, problem)
	where := run.shell.report()
	res.Dir, res.DirGone = where.dir, where.gone
	run.shell.close()
	if where.refused != "" {
		return nil, fmt.Errorf("the shell did not run the command in %s: %s", run.dir, where.refused)
	}
	return res, nil
}
