package sandbox

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"syscall"

	"github.com/toolhost/toolhost/guard/sandbox/execgate"
	"github.com/toolhost/toolhost/guard/sandbox/internal/contract"
	"github.com/toolhost/toolhost/guard/sandbox/internal/landlock"
	"github.com/toolhost/toolhost/guard/sandbox/internal/place"
)

// landlocked contains commands by Landlock and the system call filter alone.
// Every command has an init process of its own, which it cannot signal or trace and
// which inherits its orphans.
type landlocked struct {
	writes *WriteGate // or nil

	mu     sync.Mutex
	policy Policy
	closed bool
	live   map[*supervised]bool
}

func startLandlock(ctx context.Context, p Policy, o Options) (*landlocked, Report, error) {
	version := landlock.Version()
	if version < landlock.Minimum {
		return nil, Report{}, &unavailableError{backendLandlock, "this kernel has no Landlock",
			"Linux 5.19 or later has it, if it is among the modules of the kernel parameter lsm="}
	}
	p.Denied = slices.Clone(p.Denied)
	l := &landlocked{writes: o.Writes, policy: p, live: make(map[*supervised]bool)}
	pl, err := resolve(p)
	if err != nil {
		return nil, Report{}, err
	}
	n, err := l.initProcess(ctx, nil)
	if err != nil {
		return nil, Report{}, err
	}
	return l, landlockReport(version, &pl.Plan), n.close()
}

// landlockReport returns what Landlock enforces of a plan: it can only allow, so nothing in an open directory can be
// denied.
func landlockReport(version int, pl *contract.Plan) Report {
	inside := func(list []place.Object) bool {
		return slices.ContainsFunc(list, func(t place.Object) bool {
			return slices.ContainsFunc(pl.Writable, func(w place.Object) bool { return place.Within(t.Path, w.Path) })
		})
	}
	r := Report{Backend: backendLandlock, Enforces: enforcement{Writes: true, Denies: true, Network: true, Processes: true}}
	if inside(pl.ReadOnly) {
		r.Enforces.Denies = false
		r.Why = append(r.Why, "landlock: protected files inside the workspace can be changed.")
	}
	if inside(pl.Denied) || inside(pl.Masked) {
		r.Enforces.Denies = false
		r.Why = append(r.Why, "landlock: denied files inside the workspace can be read.")
	}
	if version < landlock.Scopes {
		r.Enforces.Processes = false
		r.Why = append(r.Why, "landlock: a command can escape its supervisor by killing it; Linux 6.12 or later "+
			"prevents that.")
	}
	r.Why = append(r.Why, "landlock: names of hidden files stay visible, and permissions, times and attributes of our "+
		"own files outside the workspace can be changed.",
		"landlock: commands have no terminals, shared memory and message queues, for they would be "+
			"those of all your programs.",
		"landlock: commands have no network at all, not even among themselves.")
	return r
}

// initProcess starts the init process of a command under the current policy. The programs of the command are judged
// unless the gate is nil.
func (l *landlocked) initProcess(ctx context.Context, gate *execgate.Gate) (*insideProcess, error) {
	l.mu.Lock()
	policy, closed := l.policy, l.closed
	policy.Denied = slices.Clone(policy.Denied)
	l.mu.Unlock()
	if closed {
		return nil, ErrClosed
	}
	pl, err := resolve(policy)
	if err != nil {
		return nil, err
	}
	pl.Execs, pl.Writes = gate != nil, l.writes != nil
	n, files, err := startInit(ctx, nil, backendLandlock, &pl.Plan, &syscall.SysProcAttr{Setsid: true})
	if err != nil {
		return nil, err
	}
	if err := serveCalls(files, nil, gate.Only(true), l.writes); err != nil {
		return nil, errors.Join(err, n.close())
	}
	return n, nil
}

func (l *landlocked) spawn(s Spec) (Process, error) {
	n, err := l.initProcess(context.Background(), s.Execs)
	if err != nil {
		return nil, err
	}
	p, err := n.spawn(s)
	if err != nil {
		return nil, errors.Join(err, n.close())
	}
	w := &supervised{Process: p, initProcess: n, engine: l}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		go w.Kill()
		return nil, ErrClosed
	}
	l.live[w] = true
	return w, nil
}

// supervised is a command with its init process.
type supervised struct {
	Process
	initProcess *insideProcess
	engine      *landlocked
	once        sync.Once
}

// Kill implements Process; the init process goes too.
func (w *supervised) Kill() (ended int, err error) {
	w.once.Do(func() {
		ended, err = w.Process.Kill()
		w.Process.Wait() // so that the status is known before the init process goes
		err = errors.Join(err, w.initProcess.close())
		w.engine.mu.Lock()
		delete(w.engine.live, w)
		w.engine.mu.Unlock()
	})
	return ended, err
}

func (l *landlocked) deny(paths []string) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return ErrClosed
	}
	for _, p := range paths {
		if slices.ContainsFunc(l.policy.Writable, func(w string) bool { return place.Within(p, w) }) {
			return fmt.Errorf("sandbox: %s lies in a writable directory, where Landlock cannot hide it", p)
		}
		if !slices.Contains(l.policy.Denied, p) {
			l.policy.Denied = append(l.policy.Denied, p)
		}
	}
	return nil
}

// hold implements engine: it cannot make a file in a writable directory read-only.
func (*landlocked) hold([]string) error { return nil }

// show implements engine: nothing is mounted.
func (*landlocked) show(Private, []string) error { return nil }

// refresh implements engine: there are no overlays.
func (*landlocked) refresh() error { return nil }

func (l *landlocked) try(c contract.Canary) (contract.Attempt, error) {
	n, err := l.initProcess(context.Background(), nil)
	if err != nil {
		return contract.Attempt{}, err
	}
	defer n.close()
	return n.try(c)
}

func (l *landlocked) close() error {
	l.mu.Lock()
	l.closed = true
	live := l.live
	l.live = nil
	l.mu.Unlock()
	var errs []error
	for w := range live {
		if _, err := w.Kill(); err != nil {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}
