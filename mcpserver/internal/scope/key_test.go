package scope

import (
	"strings"
	"testing"
)

func TestParseScopeKey(t *testing.T) {
	for _, tt := range []struct {
		text string
		want Key
		ok   bool
	}{
		{"chat", Key{"chat", false}, true},
		{"chat=shared", Key{"chat", false}, true},
		{"my.app/chat=exact", Key{"my.app/chat", true}, true},
		{"", Key{}, false},
		{"=exact", Key{}, false},
		{"chat=", Key{}, false},
		{"chat=Exact", Key{}, false},
		{"chat=exact=shared", Key{}, false},
		{MetaHandle, Key{}, false},
		{"progressToken", Key{}, false},
		{"io.modelcontextprotocol/clientInfo=exact", Key{}, false},
	} {
		got, err := ParseKey(tt.text)
		if (err == nil) != tt.ok || tt.ok && got != tt.want {
			t.Errorf("%q: %+v, %v", tt.text, got, err)
		}
	}
}

func TestFurtherScopeKeys(t *testing.T) {
	table := newTable(t)
	table.cfg.Keys = allKeys([]Key{{"chat", true}, {"threadId", false}})
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
		s, _, err := table.Resolve("p", tt.meta, "", false)
		if err != nil || s.key.kind != tt.kind || s.Exact != tt.exact {
			t.Errorf("%v: %+v, exact %v, %v", tt.meta, s.key, s.Exact, err)
		}
	}
	s, _, _ := table.Resolve("p", map[string]any{"chat": strings.Repeat("x", 1<<20)}, "", false)
	if len(s.key.value) > 200 {
		t.Errorf("%d bytes of a client's own are kept", len(s.key.value))
	}
}

func TestStrictScopes(t *testing.T) {
	table := newTable(t)
	table.cfg.Strict = true
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
		{"a new handle", map[string]any{MetaHandle: NewHandle}, "", false, true},
		{"a handle that is none", map[string]any{MetaHandle: 5.0}, "", false, false},
		{"an empty handle", map[string]any{MetaHandle: "", "threadId": "1"}, "", false, false},
		{"no handle", map[string]any{MetaHandle: nil, "threadId": "1"}, "", false, true},
		{"stdio", nil, "", true, true},
	} {
		_, _, err := table.Resolve("p", tt.meta, tt.session, tt.stdio)
		if (err == nil) != tt.ok {
			t.Errorf("%s: %v", tt.name, err)
		}
		if err != nil && err != errHandle && !strings.Contains(err.Error(), "threadId") || err != nil &&
			!strings.Contains(err.Error(), `"toolhost/session": "new"`) {
			t.Errorf("%s: the error does not say how to get a scope: %v", tt.name, err)
		}
	}
	if n := len(table.byKey); n != 3 {
		t.Errorf("%d scopes were made", n)
	}
}
