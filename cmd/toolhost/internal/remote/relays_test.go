package remote

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/toolhost/toolhost/integration/testenv"
)

// places are far hosts by the names of their workspaces.
type places map[string]*site

func newRelays(t testing.TB, cfg RelaysConfig) *Relays {
	cfg.Log, cfg.Done = slog.New(slog.DiscardHandler), func(string, int, time.Duration) {}
	if cfg.Idle == 0 {
		cfg.Idle = 10 * time.Minute
	}
	if cfg.PerCaller == 0 {
		cfg.PerCaller = 16
	}
	r := NewRelays(cfg)
	t.Cleanup(r.Close)
	return r
}

// of is a workspace of a caller.
func (p places) of(caller, name string) Workspace {
	return Workspace{Caller: caller, Name: name, Key: name, Bearer: caller, Dial: func() (Dialer, error) {
		s := p[name]
		if s == nil {
			return nil, errors.New("no such workspace")
		}
		return func(context.Context, func()) (io.ReadWriteCloser, error) { return s.dial() }, nil
	}}
}

// enter makes a request in a workspace and returns the answer.
func enter(r *Relays, w Workspace, method, body string, header ...string) (string, error) {
	next, err := r.Enter(w, method == http.MethodGet)
	if err != nil {
		return "", err
	}
	out := httptest.NewRecorder()
	request := httptest.NewRequest(method, "/mcp", strings.NewReader(body))
	for i := 0; i < len(header); i += 2 {
		request.Header.Set(header[i], header[i+1])
	}
	next.ServeHTTP(out, request)
	return out.Body.String(), nil
}

func mustEnter(t *testing.T, r *Relays, w Workspace, body string) {
	t.Helper()
	if got, err := enter(r, w, http.MethodPost, body); err != nil || got != "done "+body {
		t.Fatalf("%s in %s: %q, %v", body, w.Name, got, err)
	}
}

// TestRelaysIdle: the link of a workspace is closed when it has been idle, not before, and not while tasks run there. It
// is opened again by the next call.
func TestRelaysIdle(t *testing.T) {
	testenv.NotShort(t, "starts processes")
	synctest.Test(t, func(t *testing.T) {
		all := places{"a": newSite(t), "b": newSite(t)}
		r := newRelays(t, RelaysConfig{Idle: time.Minute})
		mustEnter(t, r, all.of("alice", "a"), "first")
		mustEnter(t, r, all.of("alice", "b"), "first")
		all["b"].setTasks(1)
		for range 5 {
			time.Sleep(30 * time.Second)
			mustEnter(t, r, all.of("alice", "a"), "more")
		}
		if n := r.Open(); n != 2 {
			t.Fatalf("%d workspaces have a link, one of which is used and one has a task", n)
		}
		time.Sleep(2 * time.Minute)
		if n := r.Open(); n != 1 {
			t.Errorf("%d workspaces have a link, one of them has a task", n)
		}
		all["b"].setTasks(0)
		time.Sleep(time.Minute)
		if n := r.Open(); n != 0 {
			t.Errorf("%d idle workspaces have a link", n)
		}
		mustEnter(t, r, all.of("alice", "a"), "again")
		all["a"].setTasks(1)
		time.Sleep(maxStay + 2*time.Minute)
		if n := r.Open(); n != 0 {
			t.Errorf("%d workspaces have a link after tasks have run for too long", n)
		}
	})
}

// TestRelaysParked: a client that waits for events of an idle workspace keeps its stream, does not keep the workspace from
// being idle, and opens another stream when there is a link again.
func TestRelaysParked(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		all := places{"a": newSite(t)}
		r := newRelays(t, RelaysConfig{Idle: time.Minute})
		mustEnter(t, r, all.of("alice", "a"), "first")
		ended := make(chan string, 1)
		go func() {
			got, err := enter(r, all.of("alice", "a"), http.MethodGet, "", "Events", "yes")
			ended <- fmt.Sprint(got, err)
		}()
		time.Sleep(5 * time.Minute)
		if n := r.Open(); n != 0 {
			t.Fatalf("%d workspaces have a link while a client waits for events", n)
		}
		select {
		case got := <-ended:
			t.Fatalf("the stream has ended: %s", got)
		default:
		}
		mustEnter(t, r, all.of("alice", "a"), "second")
		if got := <-ended; !strings.HasPrefix(got, "data: hello\n\n:\n\n") || !strings.HasSuffix(got, "<nil>") {
			t.Errorf("the stream had %q", got)
		}
		synctest.Wait()
		if len(r.parked) != 0 {
			t.Errorf("%d workspaces are remembered for clients that are gone", len(r.parked))
		}
	})
}

// TestRelaysLimits: a caller has links to so many workspaces. The one that has rested longest makes room, one with a call
// does not.
func TestRelaysLimits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		all := places{}
		for _, name := range []string{"a", "b", "c", "d"} {
			all[name] = newSite(t)
		}
		r := newRelays(t, RelaysConfig{PerCaller: 2})
		hold := func(name string) (end func()) {
			ctx, cancel := context.WithCancel(t.Context())
			next, err := r.Enter(all.of("alice", name), false)
			if err != nil {
				t.Fatal(err)
			}
			done := make(chan struct{})
			go func() {
				defer close(done)
				request := httptest.NewRequest(http.MethodPost, "/mcp", strings.NewReader("held")).WithContext(ctx)
				request.Header.Set("Hold", "yes")
				next.ServeHTTP(httptest.NewRecorder(), request)
			}()
			synctest.Wait()
			return func() { cancel(); <-done }
		}
		endA := hold("a")
		mustEnter(t, r, all.of("alice", "b"), "1")
		mustEnter(t, r, all.of("alice", "c"), "2") // in place of b
		endC := hold("c")
		if _, err := enter(r, all.of("alice", "d"), http.MethodPost, "3"); !errors.Is(err, ErrManyRelays) {
			t.Errorf("a third workspace besides two with calls: %v", err)
		}
		mustEnter(t, r, all.of("bob", "d"), "4") // whose limit is his own
		endA()
		mustEnter(t, r, all.of("alice", "d"), "5") // in place of a
		endC()
		if n := r.Open(); n != 2 {
			t.Errorf("%d workspaces have a link", n)
		}
		if _, err := enter(r, all.of("alice", "none"), http.MethodPost, "6"); err == nil {
			t.Error("a workspace that does not exist was entered")
		}
	})
}

// TestRelaysShared: the links of a caller that others use as well take no room from it, and are not closed for it. There
// are never more of them than the callers may have together.
func TestRelaysShared(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		all := places{"a": newSite(t), "b": newSite(t), "c": newSite(t)}
		r := newRelays(t, RelaysConfig{PerCaller: 1})
		mustEnter(t, r, all.of("alice", "a"), "1")
		mustEnter(t, r, all.of("bob", "a"), "2")
		mustEnter(t, r, all.of("alice", "b"), "3")
		if n := r.Open(); n != 2 {
			t.Errorf("%d workspaces have a link: that of bob was closed for alice", n)
		}
		mustEnter(t, r, all.of("bob", "c"), "4") // in place of a, which is his alone now
		if n := r.Open(); n != 2 {
			t.Errorf("two callers with one link each have %d", n)
		}
		mustEnter(t, r, all.of("bob", "b"), "5")
		mustEnter(t, r, all.of("alice", "c"), "6") // b is left to bob
		r.Revoke("alice")
		synctest.Wait()
		if all["b"].revoked != "alice" {
			t.Error("a host that alice has left to another caller was not told that her token was revoked")
		}
	})
}

// TestRelaysSlow: a workspace whose host does not answer keeps no other one waiting.
func TestRelaysSlow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		all := places{"quick": newSite(t)}
		r := newRelays(t, RelaysConfig{})
		slow := Workspace{Caller: "bob", Name: "slow", Key: "slow", Dial: func() (Dialer, error) {
			return func(ctx context.Context, _ func()) (io.ReadWriteCloser, error) { <-ctx.Done(); return nil, ctx.Err() }, nil
		}}
		var waiting sync.WaitGroup
		for range 100 {
			waiting.Go(func() {
				if got, err := enter(r, slow, http.MethodPost, `{"id":7,"method":"tools/call"}`); err != nil ||
					!strings.Contains(got, `"id":7`) || !strings.Contains(got, "was not sent") {
					t.Errorf("a call to a host that is not there: %q, %v", got, err)
				}
			})
		}
		synctest.Wait()
		began := time.Now()
		mustEnter(t, r, all.of("alice", "quick"), "now")
		if took := time.Since(began); took != 0 {
			t.Errorf("the call took %s", took)
		}
		waiting.Wait()
	})
}

// TestRelaysRevoke: what a caller has open ends in each workspace that it has entered, and in no other.
func TestRelaysRevoke(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		all := places{"a": newSite(t), "b": newSite(t)}
		r := newRelays(t, RelaysConfig{})
		mustEnter(t, r, all.of("alice", "a"), "1")
		mustEnter(t, r, all.of("bob", "b"), "1")
		r.Revoke("alice")
		synctest.Wait()
		if all["a"].revoked != "alice" || all["b"].revoked != "" {
			t.Errorf("the hosts were told %q and %q", all["a"].revoked, all["b"].revoked)
		}
	})
}
