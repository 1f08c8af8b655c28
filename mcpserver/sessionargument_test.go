package mcpserver

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
)

func TestSessionArgument(t *testing.T) {
	h, _ := openHost(t, map[string]string{"a.txt": "a\n"}, func(c *Config) { c.SessionArgument = true })
	read := h.tools.own[0]
	for _, d := range h.tools.own {
		if d.Name == "Read" {
			read = d
		}
	}
	if shown := h.tools.shown(read); shown.Schema.Properties["session"] == nil ||
		read.Schema.Properties["session"] != nil {
		t.Error("the argument is not shown, or became the tool's own")
	}
	call := func(session string) (*Admission, Reply) {
		text := []byte(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"Read","arguments":{"file_path":"a.txt","session":` + session + `}}}`)
		opened, f := adapter{Server: &Server{host: h}}.Open(text)
		if f != nil {
			t.Fatal(f.Text)
		}
		m := opened.(*message)
		m.nameSession()
		a := h.Admit(Local(), m.Params.Meta, "", true)
		args := h.tools.withoutSession(h.tools.resolve("Read"),
			json.RawMessage(`{"file_path":"a.txt","session":`+session+`}`))
		return a, h.tools.tellSession(h.Call(context.Background(), a, Request{Tool: "Read", Args: args}))
	}
	_, r := call(`"new"`)
	if r.IsError || r.Session == "" || !strings.Contains(r.Text, r.Session) {
		t.Fatalf("%+v", r)
	}
	a, again := call(`"` + r.Session + `"`)
	if again.IsError || !strings.HasPrefix(a.scope.Label, "handle:") || strings.Contains(again.Text, r.Session) {
		t.Errorf("%+v in %s: %s", again.Session, a.scope.Label, again.Text)
	}
	if _, made := call(`"my-session"`); !made.IsError || !strings.Contains(made.Text, `"session": "new"`) {
		t.Errorf("an invented session: %s", made.Text)
	}
	if a, empty := call(`""`); empty.IsError || !strings.HasPrefix(a.scope.Label, "process:") {
		t.Errorf("an empty session: %s", empty.Text)
	}
	if _, wrong := call(`7`); wrong.IsError {
		t.Errorf("a session that is none is left out: %s", wrong.Text)
	}
}
