package gateway

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"
)

// fakes opens a gateway over servers of stdio that answer as a fake does, none of which has been looked at.
func fakes(t *testing.T, n int) *bench {
	t.Helper()
	b := &bench{t: t, dir: t.TempDir()}
	for i := range n {
		b.entries = append(b.entries, &Entry{Name: fmt.Sprintf("s%d", i), Trust: User, Type: typeStdio, File: "test",
			Command: os.Args[0], Env: map[string]string{fakeVariable: "#"}})
	}
	b.open()
	return b
}

// use connects to a server as a caller, in a conversation.
func (b *bench) use(server, principal, scope string) (*upstream, *session, error) {
	s, err := b.g.server(server)
	if err != nil {
		b.t.Fatal(err)
	}
	u := b.g.upstreamFor(s, principal, scope)
	sess, err := u.acquire(b.t.Context())
	return u, sess, err
}

func (b *bench) live() (n int) {
	for _, s := range b.g.Servers() {
		n += s.Running
	}
	return n
}

// TestProcessLimits: a caller has at most so many processes. The one that was used least is stopped for another, but none that is in use.
func TestProcessLimits(t *testing.T) {
	b := fakes(t, processesOfCaller+2)
	var first *upstream
	for i := range processesOfCaller + 1 {
		u, sess, err := b.use(fmt.Sprintf("s%d", i), "ann", "one")
		if err != nil {
			t.Fatal(err)
		}
		if u.release(sess); first == nil {
			first = u
		}
	}
	if n := b.live(); n != processesOfCaller || first.isLive() {
		t.Errorf("%d run, want %d; the first runs: %v", n, processesOfCaller, first.isLive())
	}
	for i := range processesOfCaller { // all in use
		if _, _, err := b.use(fmt.Sprintf("s%d", i), "bob", "one"); err != nil {
			t.Fatal(err)
		}
	}
	if _, _, err := b.use(fmt.Sprintf("s%d", processesOfCaller), "bob", "one"); err == nil ||
		!strings.Contains(err.Error(), "8 servers are running and all are in use") {
		t.Errorf("one more than a caller may have: %v", err)
	}
	if n := b.live(); n != 2*processesOfCaller {
		t.Errorf("%d run, want %d: those of another caller were stopped", n, 2*processesOfCaller)
	}
}

// TestHostLimit: all callers together have at most so many processes.
func TestHostLimit(t *testing.T) {
	if testing.Short() {
		t.Skip("starts 33 processes")
	}
	b := fakes(t, 1)
	for i := range processesOfHost + 1 {
		u, sess, err := b.use("s0", fmt.Sprintf("caller%d", i/4), fmt.Sprintf("scope%d", i))
		if err != nil {
			t.Fatal(err)
		}
		u.release(sess)
	}
	if n := b.live(); n != processesOfHost {
		t.Errorf("%d run, want %d", n, processesOfHost)
	}
}

// TestIdleStop: a process that no call uses is stopped after a while, and its tools stay listed.
func TestIdleStop(t *testing.T) {
	b := fakes(t, 1)
	u, sess, err := b.use("s0", "ann", "one")
	if err != nil {
		t.Fatal(err)
	}
	if u.stopIfIdle(0) {
		t.Error("a process in use was stopped")
	}
	u.release(sess)
	if u.stopIfIdle(time.Hour) || !u.isLive() {
		t.Error("a process that was just used was stopped")
	}
	if !u.stopIfIdle(0) || u.isLive() || b.live() != 0 {
		t.Error("a process that is not used was not stopped")
	}
	if got := b.listed(); len(got) != 1 {
		t.Errorf("the list is %v", got)
	}
	if u, sess, err = b.use("s0", "ann", "one"); err != nil {
		t.Errorf("it does not start again: %v", err)
	} else {
		u.release(sess)
	}
}
