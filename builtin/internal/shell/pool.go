package shell

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/toolhost/toolhost/builtin/internal/shell/supervise"
)

// refillAfter is how long after a command the next shells are started, unless
// none is left: a start takes a processor for more than a millisecond, and the
// command's result comes first, which takes 0.2 ms. Longer would be felt by a
// client that sends one command after the other.
const refillAfter = 300 * time.Microsecond

// A pool is the shells that are started ahead. The runner's lock guards it.
type pool struct {
	warm    []*shell
	coming  int                 // shells being started
	waiting []chan *shell       // callers that wait for one of them; there are never more than shells to come
	later   *time.Timer         // of a start of more; nil: none has been planned yet
	reaping []supervise.Process // of commands that were concluded with something open, as long as the system takes them apart
	retired []*shell            // to close
}

// take returns a shell that waits for its script: one started ahead if there is
// one that still lives, or the first that is being started and that no one waits
// for yet, else a new one.
func (r *Runner) take(ctx context.Context) (*shell, error) {
	r.login.Wait(ctx)
	for {
		s, promise, err := r.reserve()
		switch {
		case err != nil:
			return nil, err
		case promise != nil:
			s = <-promise // a start ends sooner or later; ctx is looked at afterwards
		case s == nil:
			r.mu.Lock()
			env := r.env
			r.mu.Unlock()
			return startShell(r.cfg, r.bash, env)
		}
		if s == nil {
			continue // that start failed; one of our own will tell why
		}
		if s.waiting() {
			return s, nil
		}
		s.discard()
	}
}

// reserve takes a shell out of the pool, or the promise of one; neither if none
// comes that is not promised.
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
			r.fill() // the next command may come at once
		}
		return s, nil, nil
	case p.coming > len(p.waiting):
		promise := make(chan *shell, 1)
		p.waiting = append(p.waiting, promise)
		return nil, promise, nil
	}
	return nil, nil, nil
}

// retire takes a shell whose command has ended, to close it when there is time.
func (r *Runner) retire(s *shell) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.pool.retired = append(r.pool.retired, s)
}

// leave ends a piece of work that began with start. Shells are started ahead
// again, but not at once.
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
		p.later = time.AfterFunc(refillAfter, r.tidy)
	} else {
		p.later.Reset(refillAfter)
	}
}

// tidy does what was put off until the result of a command is out.
func (r *Runner) tidy() {
	r.mu.Lock()
	retired := r.pool.retired
	r.pool.retired = nil
	r.fill()
	r.mu.Unlock()
	for _, s := range retired {
		s.close()
	}
}

// refill starts shells in the background until enough wait. A shell that cannot
// be started is no concern here: the next Run tries again and reports why.
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

// add adds a shell that was being started to the pool, nil if it could not be, and
// reports whether there was a use for it.
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

// reap notes a process that was concluded with something open.
func (r *Runner) reap(p supervise.Process) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.pool.reaping = append(r.pool.reaping, p)
}

// reaped waits until the system has taken the processes apart that were concluded
// with something open so far: until then they hold that, a lock for one, and the
// next command is not to meet it.
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
