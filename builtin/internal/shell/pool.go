package shell

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/toolhost/toolhost/builtin/internal/shell/supervise"
)

// refillAfter is how long after a command new shells are started, unless the pool
// is empty. A start takes more than a millisecond of a processor and must not
// delay the result of the command, which takes 0.2 ms. A longer delay would slow
// down a client that sends one command after the other.
const refillAfter = 300 * time.Microsecond

// A pool has the shells that are started before they are needed. The runner's lock guards it.
type pool struct {
	warm    []*shell
	coming  int                 // shells being started
	waiting []chan *shell       // callers that wait for one of them; at most coming
	later   *time.Timer         // for the next start; nil before the first
	reaping []supervise.Process // of concluded commands with open files, until the system has released them
	retired []*shell            // to close
}

// take returns a shell that waits for its script: a warm one that still runs, or
// one that is being started and not yet reserved, or a new one.
func (r *Runner) take(ctx context.Context) (*shell, error) {
	r.login.Wait(ctx)
	for {
		s, promise, err := r.reserve()
		switch {
		case err != nil:
			return nil, err
		case promise != nil:
			s = <-promise // a start ends sooner or later; ctx is examined afterwards
		case s == nil:
			r.mu.Lock()
			env := r.env
			r.mu.Unlock()
			return startShell(r.cfg, r.bash, env)
		}
		if s == nil {
			continue // that start failed; the next one returns the error
		}
		if s.waiting() {
			return s, nil
		}
		s.discard()
	}
}

// reserve returns a shell of the pool, or a channel for one that is being started,
// or neither.
func (r *Runner) reserve() (*shell, <-chan *shell, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	p := &r.pool
	switch {
	case r.closed:
		return nil, nil, ErrClosed
	case len(p.warm) > 0:
		s := p.warm[0]
		p.warm = p.warm[1:]
		if len(p.warm) == 0 {
			r.fill() // the next command may follow at once
		}
		return s, nil, nil
	case p.coming > len(p.waiting):
		promise := make(chan *shell, 1)
		p.waiting = append(p.waiting, promise)
		return nil, promise, nil
	}
	return nil, nil, nil
}

// retire closes the shell of a command that has ended, after the result was sent.
func (r *Runner) retire(s *shell) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.pool.retired = append(r.pool.retired, s)
}

// leave ends work that began with start. It schedules the start of new shells.
func (r *Runner) leave() {
	defer r.work.Done()
	r.mu.Lock()
	defer r.mu.Unlock()
	p := &r.pool
	if r.closed {
		return
	}
	if len(p.warm)+p.coming == 0 {
		r.fill()
	}
	if p.later == nil {
		p.later = time.AfterFunc(refillAfter, r.runDeferred)
	} else {
		p.later.Reset(refillAfter)
	}
}

// runDeferred does the work that was delayed until the result of a command was sent.
func (r *Runner) runDeferred() {
	r.mu.Lock()
	retired := r.pool.retired
	r.pool.retired = nil
	r.fill()
	r.mu.Unlock()
	for _, s := range retired {
		s.close()
	}
}

// refill starts shells in the background until the pool is full. It ignores
// errors: the next Run tries again and returns them.
func (r *Runner) refill() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.fill()
}

// fill is refill for callers that hold the lock.
func (r *Runner) fill() {
	for p := &r.pool; !r.closed && len(p.warm)+p.coming-len(p.waiting) < r.cfg.Warm; {
		p.coming++
		env, generation := r.env, r.generation
		r.work.Go(func() {
			s, _ := startShell(r.cfg, r.bash, env)
			if !r.add(s, generation) && s != nil {
				s.discard()
			}
		})
	}
}

// add adds a started shell to the pool, or nil if the start failed. It reports
// whether the shell is needed.
func (r *Runner) add(s *shell, generation int) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	p := &r.pool
	p.coming--
	useful := s != nil && !r.closed && generation == r.generation
	switch {
	case useful && len(p.waiting) > 0:
		p.waiting[0] <- s
		p.waiting = p.waiting[1:]
	case useful:
		p.warm = append(p.warm, s)
	case len(p.waiting) > p.coming:
		p.waiting[0] <- nil
		p.waiting = p.waiting[1:]
	}
	return useful
}

// reap records a process that was concluded with open files.
func (r *Runner) reap(p supervise.Process) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.pool.reaping = append(r.pool.reaping, p)
}

// reaped waits until the system has released the processes that were concluded
// with open files: until then they may hold locks, which the next command must not
// meet.
func (r *Runner) reaped(ctx context.Context) error {
	r.mu.Lock()
	reaping := r.pool.reaping
	r.mu.Unlock()
	if len(reaping) == 0 {
		return nil
	}
	for _, p := range reaping {
		select {
		case <-p.Done():
		case <-ctx.Done():
			return fmt.Errorf("the call was cancelled before the command started: %w", ctx.Err())
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.pool.reaping = slices.DeleteFunc(slices.Clone(r.pool.reaping), func(p supervise.Process) bool {
		select {
		case <-p.Done():
			return true
		default:
			return false
		}
	})
	return nil
}
