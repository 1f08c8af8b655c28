package scope

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/toolhost/toolhost/readstate"
)

func newTable(t *testing.T) *Table {
	t.Helper()
	seen, err := readstate.Open(readstate.Config{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { seen.Close() })
	return New(Config{Seen: seen, Secret: make([]byte, 32), Gate: func() GateOptions { return GateOptions{} }})
}

func TestResolve(t *testing.T) {
	table := newTable(t)
	tests := []struct {
		name, principal string
		meta            map[string]any
		session         string
		stdio           bool
		kind            string
		exact           bool
	}{
		{"a client's own key", "p", map[string]any{"threadId": "1"}, "s", false, "threadId", true},
		{"another client's", "p", map[string]any{"vscode.conversationId": "1"}, "", true, "vscode.conversationId", true},
		{"a key that subagents share", "p", map[string]any{"claudecode/sessionId": "1"}, "", true, "claudecode/sessionId", false},
		{"keys of the wrong type are none", "p", map[string]any{"threadId": 1}, "s", false, "mcp-session", false},
		{"an MCP session", "p", nil, "s", false, "mcp-session", false},
		{"the stdio process", "p", nil, "", true, "process", false},
		{"nothing at all", "p", nil, "", false, "principal", false},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			s, _, err := table.Resolve(test.principal, test.meta, test.session, test.stdio)
			if err != nil {
				t.Fatal(err)
			}
			if s.key.kind != test.kind || s.Exact != test.exact {
				t.Errorf("kind %q, exact %v", s.key.kind, s.Exact)
			}
			again, _, _ := table.Resolve(test.principal, test.meta, test.session, test.stdio)
			other, _, _ := table.Resolve("q", test.meta, test.session, test.stdio)
			if s != again || s == other {
				t.Error("the same call has another scope, or another principal the same")
			}
		})
	}
}

func TestHandles(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		table := newTable(t)
		s, handle, err := table.Resolve("p", map[string]any{MetaHandle: NewHandle}, "", false)
		if err != nil || handle == "" || !s.Exact {
			t.Fatalf("scope %v, handle %q, error %v", s, handle, err)
		}
		with := func(principal, handle string) (*Scope, error) {
			s, _, err := table.Resolve(principal, map[string]any{MetaHandle: handle}, "", false)
			return s, err
		}
		if again, err := with("p", handle); again != s || err != nil {
			t.Errorf("the handle names another scope: %v", err)
		}
		altered := []byte(handle)
		altered[3] ^= 1
		for name, h := range map[string]string{"altered": string(altered), "made up": "abc", "a path": "../../etc"} {
			if _, err := with("p", h); err == nil {
				t.Errorf("a handle that is %s was taken", name)
			}
		}
		if _, err := with("q", handle); err == nil {
			t.Error("another principal's handle was taken")
		}
		restarted := New(table.cfg)
		if _, _, err := restarted.Resolve("p", map[string]any{MetaHandle: handle}, "", false); err != nil {
			t.Errorf("after a restart: %v", err)
		}
		time.Sleep(HandleAge + time.Second)
		if _, err := with("p", handle); err == nil {
			t.Error("an expired handle was taken")
		}
	})
}

func TestIdleScopesAreForgotten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		table := newTable(t)
		old := table.use(identity{"p", "threadId", "old"}, true, true)
		busy := table.use(identity{"p", "threadId", "busy"}, true, true)
		ticket := busy.Gate.Admit()
		time.Sleep(Idle + time.Second)
		table.use(identity{"p", "threadId", "new"}, true, true)
		if len(table.byKey) != 2 || table.byKey[old.key] != nil || table.byKey[busy.key] != busy {
			t.Errorf("%d scopes are left", len(table.byKey))
		}
		ticket.Release()
	})
}

func TestScopesAreBounded(t *testing.T) {
	table := newTable(t)
	for i := range MaxScopes + 100 {
		table.use(identity{"p", "threadId", string(rune(i))}, false, false)
	}
	if len(table.byKey) > MaxScopes || table.byUsed.Len() != len(table.byKey) {
		t.Errorf("%d scopes are kept", len(table.byKey))
	}
}

func TestOnePrincipalPushesOutItsOwn(t *testing.T) {
	table := newTable(t)
	quiet := table.use(identity{"quiet", "threadId", "1"}, true, true)
	for i := range MaxScopes + 100 {
		table.use(identity{"loud", "threadId", fmt.Sprint(i)}, true, true)
	}
	if table.byKey[quiet.key] != quiet {
		t.Error("another principal's scopes pushed this one out")
	}
	if n := len(table.byKey); n > MaxScopes || table.byUsed.Len() != n || table.of["loud"] != n-1 {
		t.Errorf("%d scopes, %d of the loud one", n, table.of["loud"])
	}
}

// Clocks are set back and forth: a handle from a little ahead is good, one from far ahead is not.
func TestHandlesOfAnotherClock(t *testing.T) {
	table := newTable(t)
	now := time.Now()
	for ahead, want := range map[time.Duration]bool{
		0: true, time.Hour: true, -time.Hour: true, HandleAge + time.Hour: false, -HandleAge - time.Hour: false,
	} {
		if got := table.genuine("p", table.mint("p", now.Add(ahead)), now); got != want {
			t.Errorf("%v ahead: %v", ahead, got)
		}
	}
}
