package httpserver

import (
	"context"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/toolhost/toolhost/mcpserver/auth"
)

func TestSessionsOfOneDoNotPushOutAnothers(t *testing.T) {
	const most = 50
	table := newSessionTable(most)
	var gone []string
	table.ended = func(principal, id string) { gone = append(gone, principal) }
	alice, bob := principalSessions{table, auth.Identity{Principal: "alice"}}, principalSessions{table, auth.Identity{Principal: "bob"}}
	id, first := alice.Generate(), bob.Generate()
	for range most {
		bob.Generate()
		if _, err := bob.Validate(first); err != nil {
			t.Fatal("the session that was used last goes first")
		}
	}
	if _, err := alice.Validate(id); err != nil {
		t.Error("the session of one was pushed out by another")
	}
	if len(table.known) != most || table.byUsed.Len() != most || table.perPrincipal["bob"] != most-1 {
		t.Errorf("%d sessions, %d by use, %v; %d are the most", len(table.known), table.byUsed.Len(), table.perPrincipal, most)
	}
	if len(gone) != 2 || slices.Contains(gone, "alice") {
		t.Errorf("it is told of the end of %v", gone)
	}
	nobody := principalSessions{table: table}
	if _, err := nobody.Validate(nobody.Generate()); err == nil {
		t.Error("nobody has a session")
	}
}

func TestSessionsEndByThemselves(t *testing.T) {
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
			t.Errorf("after %s of idleness it is told of %v, want %s", SessionIdle, gone, idle)
		}
		revoke()
		if _, err := p.Validate(revoked); err == nil || !slices.Equal(gone, []string{idle, revoked}) {
			t.Errorf("after its credential was revoked: %v, it is told of %v", err, gone)
		}
	})
}
