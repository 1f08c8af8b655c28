package shell

import (
	"context"
	"errors"
	"sync"
	"syscall"
	"time"

	"github.com/toolhost/toolhost/builtin/internal/shell/supervise"
)

// drainRounds limits how often the wait for output after the end of the shell is prolonged because output still
// arrives. Process substitutions (`exec > >(tee log)`) outlive the shell briefly, but a background process may write
// forever.
const drainRounds = 10

// afterKill limits the wait for the end of the output after all writers were
// killed. It is reached only if a process could not be killed.
const afterKill = time.Second

// nudgeAfter is how long a shell may take to read the script before it is checked whether the shell was stopped. A
// running shell takes a small part of that.
const nudgeAfter = 100 * time.Millisecond

// An ending says why a command is over, if it is.
type ending int

const (
	returned  ending = iota // the shell ended by itself
	timedOut                // the timeout was reached
	cancelled               // the caller has cancelled
	closing                 // the runner closes
	unheard                 // it has waited too long for a person
	goesOn                  // the command is still running
)

// An Execution is a command that has been handed to a shell by [Runner.Start]. Its methods are called one after the
// other.
type Execution struct {
	Out   *Collector // takes the output
	Begun time.Time  // when the command was handed over

	runner  *Runner
	dir     string // where it started
	shell   *shell
	timeout time.Duration
	gate    Gate
	stop    func() // ends the progress reports; may be called again
	left    func() // [Command].Left

	why       ending // goesOn until it is over
	concluded bool   // the shell was ended by conclude
}

// EndProgress stops the calls of [Command].Output.
func (run *Execution) EndProgress() { run.stop() }

// Leave tells the runner that the work for the command is done, and calls [Command].Left. It is called last.
func (run *Execution) Leave() {
	run.runner.leave()
	run.left() // after the runner's work, because it may close the runner
}

// Closed reports whether the command was ended because its runner closes.
func (run *Execution) Closed() bool { return run.why == closing }

// Wait waits until the command is over, and reports whether it is. It ends the command after its timeout, or if ctx
// is done or the runner closes. It returns false, and the command continues, after window (0: no limit), or when the
// gate makes the command a task. The caller then calls Wait again.
func (run *Execution) Wait(ctx context.Context, window time.Duration) bool {
	if run.why == goesOn {
		run.why = run.wait(ctx, window)
	}
	return run.why != goesOn
}

// progress calls report with the last lines of the output when they have changed.
func (run *Execution) progress(report func(string)) {
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
			if now := run.Out.LastLines(); now != last {
				last = now
				report(now)
			}
		}
	})
	run.stop = sync.OnceFunc(func() { close(quit); wg.Wait() })
}

// wait is Wait. It returns why the command is over.
func (run *Execution) wait(ctx context.Context, window time.Duration) ending {
	if run.shell.pollWait(run.timeout) && run.conclude() {
		return returned
	}
	run.shell.listen(false)
	timer := time.NewTimer(run.rest(run.timeout))
	defer timer.Stop()
	patience, parted := &time.Timer{}, (<-chan struct{})(nil)
	if window > 0 {
		patience, parted = time.NewTimer(run.rest(window)), run.gate.Parted()
		defer patience.Stop()
	}
	nudge := time.NewTimer(nudgeAfter)
	defer nudge.Stop()
	why := goesOn
	for why == goesOn {
		select {
		case <-run.shell.lastWord:
			run.shell.lastWord = nil
			if run.conclude() {
				return returned
			}
		case <-run.shell.proc.Done():
			return returned
		case <-nudge.C:
			run.shell.sendCONT()
		case <-timer.C:
			if !run.prolong(timer, run.timeout) {
				why = timedOut
			}
		case <-run.gate.Spent():
			why = unheard
		case <-ctx.Done():
			why = cancelled
		case <-run.runner.ctx.Done():
			return closing
		case <-patience.C:
			if !run.prolong(patience, window) {
				return goesOn
			}
		case <-parted:
			return goesOn
		}
	}
	run.ask()
	return why
}

// heldStep is the interval at which a command after its timeout is checked while it waits for a person.
const heldStep = 100 * time.Millisecond

// rest returns how much is left of a duration that began with the command. Time in which a person is asked does not
// count.
func (run *Execution) rest(of time.Duration) time.Duration {
	return of + run.gate.Held() - time.Since(run.Begun)
}

// prolong resets a timer that has fired, and reports whether time is left.
func (run *Execution) prolong(timer *time.Timer, of time.Duration) bool {
	left := run.rest(of)
	if left > 0 {
		timer.Reset(max(left, heldStep))
	}
	return left > 0
}

// conclude ends the shell after its final report if no other process of the command
// is left, and reports whether it did.
func (run *Execution) conclude() bool {
	var open bool
	if open, run.concluded = run.shell.conclude(); open {
		run.runner.reap(run.shell.proc)
	}
	return run.concluded
}

// ask sends SIGTERM and waits for the grace time. Bash itself ends at once, so the
// time is for its children: the command has ended when its output has.
func (run *Execution) ask() {
	run.shell.finishScript()
	run.shell.proc.Signal(syscall.SIGTERM)
	grace := time.NewTimer(run.runner.cfg.Grace)
	defer grace.Stop()
	for _, done := range []<-chan struct{}{run.shell.proc.Done(), run.shell.eof} {
		select {
		case <-done:
		case <-grace.C:
			return
		case <-run.runner.ctx.Done():
			return
		}
	}
}

// drain waits for output that is still being written after the shell's end.
func (run *Execution) drain() {
	seen := run.Out.Size()
	for range drainRounds {
		timer := time.NewTimer(run.runner.cfg.Drain)
		select {
		case <-run.shell.eof:
			timer.Stop()
			return
		case <-timer.C:
		}
		now := run.Out.Size()
		if now == seen {
			return
		}
		seen = now
	}
}

// Finish ends the remaining processes of a command that is over, and returns the result. Like
// [Runner.Run], it returns an error only if the command did not run.
func (run *Execution) Finish() (*Result, error) {
	why := run.why
	ended, problem := run.clear()
	run.stop()
	res := &Result{Shown: run.Out.Result()}
	res.TimedOut = why == timedOut
	res.Cancelled = why == cancelled || why == closing
	res.Unheard = why == unheard
	if why == returned {
		res.Left = ended
	}
	where := run.shell.report()
	status, err := run.shell.status()
	switch {
	case why != returned && status.Signal != "": // the shell may have made its report before the command began
		where.dir, where.gone = "", false
	case where.over && err == nil: // the shell's own report counts, even if it was killed before it ended
		status = supervise.Status{ExitCode: where.status}
	}
	res.Dir, res.DirGone = where.dir, where.gone
	res.ExitCode, res.Signal = status.ExitCode, status.Signal
	res.Problem = errors.Join(err, problem)
	run.runner.retire(run.shell)
	if where.refused != "" {
		return nil, &DirError{Dir: run.dir, Why: where.refused}
	}
	return res, nil
}

// clear ends the remaining processes of the command, reads the rest of its output,
// and returns how many processes it ended.
func (run *Execution) clear() (ended int, problem error) {
	if run.concluded && run.shell.rawPipe != nil {
		run.shell.takeRest()
		return 0, nil
	}
	if run.concluded {
		run.shell.pipe.until(time.Now()) // no process writes any more
		<-run.shell.eof
		return 0, nil
	}
	run.shell.listen(true) // a command that was never waited for has no reader yet
	if run.why == returned {
		run.drain()
	}
	ended, problem = run.shell.proc.Kill()
	// All writers have ended, so the pipe holds the rest of the output and then its end. The deadline is only reached if
	// a process could not be killed.
	run.shell.pipe.until(time.Now().Add(afterKill))
	<-run.shell.eof
	if problem == nil {
		<-run.shell.proc.Done()
	}
	return ended, problem
}
