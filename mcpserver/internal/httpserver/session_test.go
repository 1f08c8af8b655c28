package httpserver

import (
	"context"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/toolhost/toolhost/mcpserver/auth"
)

func TestSessionTableEvictsPerPrincipal(t *testing.T) {
	const most = 50
	table := newSessionTable(most)
	var gone []string
	table.ended = func(principal, id string) { gone = append(gone, principal) }
	alice, bob := principalSessions{table, auth.Identity{Principal: "alice"}}, principalSessions{table,
		auth.Identity{Principal: "bob"}}
	id, first := alice.Generate(), bob.Generate()
	for range most {
		bob.Generate()
		if _, err := bob.Validate(first); err != nil {
			t.Fatal("a session that was just used was evicted")
		}
	}
	if _, err := alice.Validate(id); err != nil {
		t.Error("the sessions of bob have evicted the one of alice")
	}
	if len(table.known) != most || table.byUsed.Len() != most || table.perPrincipal["bob"] != most-1 {
		t.Errorf("%d sessions, %d in byUsed, per principal %v; the limit is %d", len(table.known), table.byUsed.Len(),
			table.perPrincipal, most)
	}
	if len(gone) != 2 || slices.Contains(gone, "alice") {
		t.Errorf("ended was called for %v, want bob twice", gone)
	}
	anonymous := principalSessions{table: table}
	if _, err := anonymous.Validate(anonymous.Generate()); err == nil {
		t.Error("the zero principal has a session")
	}
}

func TestSessionExpiry(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		table := newSessionTable(10)
		var gone []string
		table.ended = func(_, id string) { gone = append(gone, id) }
		valid, revoke := context.WithCancel(t.Context())
		p := principalSessions{table, auth.Identity{Principal: "p", Valid: valid}}
		used, idle, revoked := p.Generate(), p.Generate(), p.Generate()
		time.Sleep(SessionIdle)
		for _, id := range []string{used, revoked} {
			if _, err := p.Validate(id); err != nil {
				t.Error(err)
			}
		}
		time.Sleep(time.Second)
		p.Generate()
		if !slices.Equal(gone, []string{idle}) {
			t.Errorf("after %s, ended was called for %v, want %s", SessionIdle, gone, idle)
		}
		revoke()
		if _, err := p.Validate(revoked); err == nil || !slices.Equal(gone, []string{idle, revoked}) {
			t.Errorf("after the revocation: Validate returned %v, ended was called for %v", err, gone)
		}
	})
}
