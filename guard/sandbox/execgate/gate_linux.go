package execgate

import (
	"context"
	"time"

	"golang.org/x/sys/unix"

	"github.com/toolhost/toolhost/guard/sandbox/internal/behalf"
	"github.com/toolhost/toolhost/guard/sandbox/internal/kernel"
	"github.com/toolhost/toolhost/guard/sandbox/internal/proc"
)

// withdrawAfter is how often the gate checks that a process still waits while its judge takes time.
const withdrawAfter = 100 * time.Millisecond

// begin lets the command's own program start. It is the first one that is started under a gate; for later ones begin
// reports false.
func (g *Gate) begin(c *kernel.Call) bool {
	g.mu.Lock()
	begun := g.shell != 0
	g.mu.Unlock()
	if begun {
		return false
	}
	g.root(c.Thread)
	c.Continue()
	return true
}

// root records the process numbers of the command's shell and of its parent.
func (g *Gate) root(shell int) {
	s, err := proc.StatOf(shell)
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.shell = shell; err == nil {
		g.parent = s.Parent
	}
}

// roots returns the numbers that root recorded.
func (g *Gate) roots() (shell, parent int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.shell, g.parent
}

// answer answers a call of a program of one command. root is the root directory of the command, or nil if it is not
// known.
func (g *Gate) answer(c *kernel.Call, root *behalf.Root) unix.Errno {
	g.mu.Lock()
	judge := g.judge
	g.mu.Unlock()
	l := &look{call: c, gate: g, root: root}
	defer l.close()
	switch {
	case c.Number == unix.SYS_SECCOMP:
		l.nested(judge)
		return unix.EBUSY // the error of the kernel
	case judge == nil:
		return unix.EACCES
	}
	refused := false
	switch err := l.look().(type) {
	case nil:
	case unix.Errno:
		if err != unix.EMFILE && err != unix.ENFILE && err != unix.ENOMEM { // these are shortages of the host
			return err
		}
		l.exec.Unreadable = err
	case *behalf.UnseenError:
		l.exec.Unreadable = errUnreadableProcess
	default:
		if err != errNotExecutable {
			l.exec.Unreadable = err
		}
		refused = true
	}
	if !c.Waits() { // else the process that was examined may be another one
		return unix.EINTR
	}
	ctx, stop := g.while(c)
	defer stop()
	v := judge(ctx, &l.exec)
	switch {
	case !v.Allow || refused || l.exec.Unreadable != nil:
		return unix.EACCES
	case v.Confirm || shared(c.Thread):
		l.confirm(v)
		return unix.EACCES
	}
	c.Continue()
	return 0
}

// nested tells the judge of a program that wants a seccomp listener of its own. The kernel allows one for a thread.
func (l *look) nested(judge Judge) {
	s, err := proc.StatOf(l.call.Thread)
	if err != nil || judge == nil || !l.call.Waits() {
		return
	}
	l.exec = Exec{Path: s.Name, Args: []string{s.Name}, Thread: l.call.Thread, Asker: l.asker, Unreadable: errNested}
	ctx, stop := l.gate.while(l.call)
	defer stop()
	judge(ctx, &l.exec)
}

// while returns a context that lasts as long as the caller waits and the gate is open.
func (g *Gate) while(c *kernel.Call) (_ context.Context, stop func()) {
	ctx, cancel := context.WithCancel(g.ctx)
	t := time.AfterFunc(withdrawAfter, func() {
		tick := time.NewTicker(withdrawAfter)
		defer tick.Stop()
		for c.Waits() {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
			}
		}
		cancel()
	})
	return ctx, func() {
		t.Stop()
		cancel()
	}
}
