package mcpserver

import (
	"context"
	"encoding/json"
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"

	"toolhost/mcpserver/internal/wire"
)

func TestParseScopeKey(t *testing.T) {
	for _, tt := range []struct {
		text string
		want ScopeKey
		ok   bool
	}{
		{"chat", ScopeKey{"chat", false}, true},
		{"chat=shared", ScopeKey{"chat", false}, true},
		{"my.app/chat=exact", ScopeKey{"my.app/chat", true}, true},
		{"", ScopeKey{}, false},
		{"=exact", ScopeKey{}, false},
		{"chat=", ScopeKey{}, false},
		{"chat=Exact", ScopeKey{}, false},
		{"chat=exact=shared", ScopeKey{}, false},
		{metaHandle, ScopeKey{}, false},
		{"progressToken", ScopeKey{}, false},
		{"io.modelcontextprotocol/clientInfo=exact", ScopeKey{}, false},
	} {
		got, err := ParseScopeKey(tt.text)
		if (err == nil) != tt.ok || tt.ok && got != tt.want {
			t.Errorf("%q: %+v, %v", tt.text, got, err)
		}
	}
}

func TestFurtherScopeKeys(t *testing.T) {
	table := newTable(t)
	table.keys = scopeKeys([]ScopeKey{{"chat", true}, {"threadId", false}})
	for _, tt := range []struct {
		meta  map[string]any
		kind  string
		exact bool
	}{
		{map[string]any{"chat": "1", "openai/session": "2"}, "chat", true},
		{map[string]any{"threadId": "1"}, "threadId", false}, // as it was said
		{map[string]any{"openai/session": "2"}, "openai/session", true},
		{map[string]any{"other": "1"}, "principal", false},
	} {
		s, _, err := table.resolve("p", tt.meta, "", false)
		if err != nil || s.key.kind != tt.kind || s.exact != tt.exact {
			t.Errorf("%v: %+v, exact %v, %v", tt.meta, s.key, s.exact, err)
		}
	}
	s, _, _ := table.resolve("p", map[string]any{"chat": strings.Repeat("x", 1<<20)}, "", false)
	if len(s.key.value) > 200 {
		t.Errorf("%d bytes of a client's own are kept", len(s.key.value))
	}
}

func TestStrictScopes(t *testing.T) {
	table := newTable(t)
	table.strict = true
	for _, tt := range []struct {
		name    string
		meta    map[string]any
		session string
		stdio   bool
		ok      bool
	}{
		{"nothing", nil, "", false, false},
		{"an MCP session", nil, "s", false, false},
		{"a shared key", map[string]any{"claudecode/sessionId": "1"}, "", false, false},
		{"an exact key", map[string]any{"threadId": "1"}, "", false, true},
		{"a new handle", map[string]any{metaHandle: newHandle}, "", false, true},
		{"a handle that is none", map[string]any{metaHandle: 5.0}, "", false, false},
		{"an empty handle", map[string]any{metaHandle: "", "threadId": "1"}, "", false, false},
		{"no handle", map[string]any{metaHandle: nil, "threadId": "1"}, "", false, true},
		{"stdio", nil, "", true, true},
	} {
		_, _, err := table.resolve("p", tt.meta, tt.session, tt.stdio)
		if (err == nil) != tt.ok {
			t.Errorf("%s: %v", tt.name, err)
		}
		if err != nil && err != errHandle && !strings.Contains(err.Error(), "threadId") || err != nil && !strings.Contains(err.Error(), `"toolhost/session": "new"`) {
			t.Errorf("%s: the error does not say how to get a scope: %v", tt.name, err)
		}
	}
	if n := len(table.byKey); n != 3 {
		t.Errorf("%d scopes were made", n)
	}
}

func TestOnePrincipalPushesOutItsOwn(t *testing.T) {
	table := newTable(t)
	quiet := table.use(scopeKey{"quiet", "threadId", "1"}, true)
	for i := range MaxScopes + 100 {
		table.use(scopeKey{"loud", "threadId", fmt.Sprint(i)}, true)
	}
	if table.byKey[quiet.key] != quiet {
		t.Error("another principal's scopes pushed this one out")
	}
	if n := len(table.byKey); n > MaxScopes || table.byUsed.Len() != n || table.of["loud"] != n-1 {
		t.Errorf("%d scopes, %d of the loud one", n, table.of["loud"])
	}
}

func TestSessionArgument(t *testing.T) {
	h, _ := openHost(t, map[string]string{"a.txt": "a\n"}, func(c *Config) { c.SessionArgument = true })
	read := h.tools[0]
	for _, d := range h.tools {
		if d.Name == "Read" {
			read = d
		}
	}
	if shown := h.shown(read); shown.Schema.Properties["session"] == nil || read.Schema.Properties["session"] != nil {
		t.Error("the argument is not shown, or became the tool's own")
	}
	call := func(session string) (*Arrival, Reply) {
		message := []byte(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"Read","arguments":{"file_path":"a.txt","session":` + session + `}}}`)
		m, f := wire.Open(message)
		if f != nil {
			t.Fatal(f.Text)
		}
		h.nameSession(&m, message)
		a := h.Arrive(Local(), m.Params.Meta, "", true)
		args := h.withoutSession("Read", json.RawMessage(`{"file_path":"a.txt","session":`+session+`}`))
		return a, h.tellSession(h.Call(context.Background(), a, Request{Tool: "Read", Args: args}))
	}
	_, r := call(`"new"`)
	if r.IsError || r.Session == "" || !strings.Contains(r.Text, r.Session) {
		t.Fatalf("%+v", r)
	}
	a, again := call(`"` + r.Session + `"`)
	if again.IsError || a.scope.key.kind != kindHandle || strings.Contains(again.Text, r.Session) {
		t.Errorf("%+v in %s: %s", again.Session, a.scope.key.kind, again.Text)
	}
	if _, made := call(`"my-session"`); !made.IsError || !strings.Contains(made.Text, `"session": "new"`) {
		t.Errorf("an invented session: %s", made.Text)
	}
	if a, empty := call(`""`); empty.IsError || a.scope.key.kind != "process" {
		t.Errorf("an empty session: %s", empty.Text)
	}
	if _, wrong := call(`7`); wrong.IsError {
		t.Errorf("a session that is none is left out: %s", wrong.Text)
	}
}

// Sessions come and go; nothing of them stays.
func TestLifecyclesLeaveAFlatHeap(t *testing.T) {
	lifecycles := often(1_000, 30_000)
	h, _ := openHost(t, map[string]string{"a.txt": strings.Repeat("a line\n", 100)})
	run := func(n int) {
		for i := range n {
			session := fmt.Sprintf("session-%d", i)
			a := h.Arrive(Local(), nil, session, false)
			if r := h.Call(t.Context(), a, Request{Tool: "Read", Args: json.RawMessage(`{"file_path":"a.txt"}`)}); r.IsError {
				t.Fatal(r.Text)
			}
			h.scopes.end(scopeKey{LocalPrincipal, kindSession, session})
		}
	}
	heap := func() int64 {
		runtime.GC()
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return int64(m.HeapAlloc)
	}
	run(500) // fills what is bounded
	before := heap()
	run(lifecycles)
	after := heap()
	t.Logf("%d lifecycles: heap %d KB, then %d KB; %d scopes are left", lifecycles, before>>10, after>>10, len(h.scopes.byKey))
	if grown := after - before; grown > 1<<20 {
		t.Errorf("the heap has grown by %d bytes", grown)
	}
	if len(h.scopes.byKey) != 0 {
		t.Errorf("%d scopes are left", len(h.scopes.byKey))
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
