package main

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/toolhost/toolhost/cmd/toolhost/internal/remote"
	"github.com/toolhost/toolhost/mcpserver"
	"github.com/toolhost/toolhost/mcpserver/auth"
)

// A scriptedPool has workspaces of principals.
type scriptedPool struct {
	has       map[string][]string
	err       error
	suspended int
}

func (p *scriptedPool) Workspaces(_ context.Context, principal string) ([]string, error) {
	return p.has[principal], p.err
}

func (p *scriptedPool) SuspendUnused(context.Context) (int, error) {
	p.suspended++
	return 1, p.err
}

// newPool returns the workspaces of a scripted pool. What is dialled is noted.
func newPool(pool *scriptedPool, dialled *[]string) *poolPlaces {
	return &poolPlaces{pool: pool, most: 2, log: slog.New(slog.DiscardHandler), dial: func(principal, name string) remote.Dialer {
		return func(context.Context, func()) (io.ReadWriteCloser, error) {
			*dialled = append(*dialled, principal+"/"+name)
			return nil, errors.New("dialled")
		}
	}}
}

// TestPoolPlaces: each caller has workspaces of its own, of which it can make so many.
func TestPoolPlaces(t *testing.T) {
	var dialled []string
	pool := &scriptedPool{has: map[string][]string{"alice": {"one", "two"}, "bob": {"one"}}}
	p := newPool(pool, &dialled)
	for _, tt := range []struct{ who, name, says string }{
		{"alice", "one", "dialled"}, {"alice", "two", "dialled"}, {"alice", "three", "you have 2 workspaces"},
		{"bob", "one", "dialled"}, {"bob", "two", "dialled"}, {"carol", "new", "dialled"},
	} {
		w, err := p.find(auth.Identity{Principal: tt.who, Rights: auth.Read}, tt.name)
		if err != nil {
			t.Fatal(err)
		}
		dial, err := w.Dial()
		if err != nil {
			t.Fatal(err)
		}
		if _, err := dial(t.Context(), func() {}); err == nil || !strings.Contains(err.Error(), tt.says) {
			t.Errorf("%s in %s: %v", tt.who, tt.name, err)
		}
	}
	if got := strings.Join(dialled, " "); got != "alice/one alice/two bob/one bob/two carol/new" {
		t.Errorf("dialled are %s", got)
	}
	alice, err := p.find(auth.Identity{Principal: "alice"}, "one")
	if err != nil {
		t.Fatal(err)
	}
	if bob, err := p.find(auth.Identity{Principal: "bob"}, "one"); err != nil || bob.Key == alice.Key ||
		bob.Bearer == alice.Bearer {
		t.Errorf("two callers share a workspace: %q, %v", bob.Key, err)
	}
	for _, name := range []string{"", "..", "a/b", ".hidden", "-x", "a.", "a b", strings.Repeat("x", 64), "ä"} {
		if _, err := p.find(auth.Identity{Principal: "alice"}, name); !errors.Is(err, mcpserver.ErrNoWorkspace) {
			t.Errorf("the name %q: %v", name, err)
		}
	}
	if _, err := p.find(auth.Identity{Principal: "alice", Root: "/srv"}, "one"); !errors.Is(err,
		mcpserver.ErrNoWorkspace) {
		t.Errorf("a token with a root: %v", err)
	}
	pool.err = errors.New("forbidden")
	w, _ := p.find(auth.Identity{Principal: "dave"}, "one")
	dial, _ := w.Dial()
	if _, err := dial(t.Context(), func() {}); err == nil || !strings.Contains(err.Error(), "forbidden") {
		t.Errorf("an API server that refuses: %v", err)
	}
}

// TestPoolSuspends: a server looks for unused sandboxes until it ends, also after an error.
func TestPoolSuspends(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		pool := &scriptedPool{err: errors.New("no API server")}
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan struct{})
		go func() { defer close(ended); newPool(pool, new([]string)).suspend(ctx) }()
		time.Sleep(3*suspendEvery + time.Second)
		cancel()
		<-ended
		if pool.suspended != 3 {
			t.Errorf("it looked %d times in three minutes", pool.suspended)
		}
	})
}
