package mcpserver

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"github.com/toolhost/toolhost/builtin"
)

const askWhich = `{"questions":[{"question":"Which way?","header":"Way","options":[{"label":"left","description":"l"},{"label":"right","description":"r"}]}]}`

// TestAskUser asks the clients of both eras.
func TestAskUser(t *testing.T) {
	p, _ := openPlanner(t, nil, func(c *Config) { c.With = []string{"AskUserQuestion"} })
	ask := func(thread string, req Request) Reply {
		req.Tool, req.Args = "AskUserQuestion", []byte(askWhich)
		return p.h.Call(t.Context(), p.h.Admit(Local(), map[string]any{"threadId": thread}, "", true), req)
	}
	answers := func(raw string) Request {
		return Request{Client: builtin.Client{Elicit: func(context.Context, json.RawMessage) (json.RawMessage, error) {
			return json.RawMessage(raw), nil
		}}}
	}
	for raw, want := range map[string]string{
		`{"action":"accept","content":{"answer1":"left"}}`: `"Which way?": left`, `{"action":"decline"}`: "declined", `{"action":"cancel"}`: "No answer",
	} {
		if r := ask("legacy", answers(raw)); r.IsError || !strings.Contains(r.Text, want) {
			t.Errorf("%s: %s", raw, r.Text)
		}
	}
	if r := ask("nobody", Request{}); !r.IsError || !strings.Contains(r.Text, "cannot show questions") {
		t.Errorf("this client cannot ask one: %s", r.Text)
	}
	r := ask("modern", Request{Client: builtin.Client{CanAsk: true, Repeats: true}})
	if r.Question == nil || r.Question.Form == nil {
		t.Fatalf("a modern client gets no question: %s", r.Text)
	}
	if other := ask("modern", Request{Client: builtin.Client{CanAsk: true, Repeats: true}}); !strings.Contains(other.Text, "one at a time") {
		t.Errorf("a second question while one waits: %s", other.Text)
	}
	answer := &Answer{State: r.Question.State, By: ByClient, Form: `{"action":"accept","content":{"words1":"up"}}`}
	if r := ask("modern", Request{Client: builtin.Client{CanAsk: true, Repeats: true}, Answer: answer}); !strings.Contains(r.Text, "up") {
		t.Errorf("the answer of a modern client: %s", r.Text)
	}
	if r := ask("modern", Request{Client: builtin.Client{CanAsk: true, Repeats: true}, Answer: answer}); !r.IsError {
		t.Errorf("the answer counts twice: %s", r.Text)
	}
	for range 3 {
		ask("flood", answers(`{"action":"cancel"}`))
	}
	if r := ask("flood", answers(`{"action":"accept","content":{"answer1":"left"}}`)); !r.IsError ||
		!strings.Contains(r.Text, "last 3 questions") {
		t.Errorf("the fourth question: %s", r.Text)
	}
}

// TestAskingToolsAreListed where the client can show a form, and are not where this client cannot ask one.
func TestAskingToolsAreListed(t *testing.T) {
	for capabilities, want := range map[string]bool{`{"elicitation":{}}`: true, `{}`: false} {
		c := startPipe(t, nil, func(c *Config) { c.With = []string{"AskUserQuestion", "EnterPlanMode", "ExitPlanMode"} })
		c.send(`{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":` + capabilities + `,"clientInfo":{"name":"c","version":"1"}}}`)
		first, err := c.out.ReadString('\n')
		if err != nil {
			t.Fatal(err)
		}
		c.send(`{"jsonrpc":"2.0","method":"notifications/initialized"}`)
		c.send(`{"jsonrpc":"2.0","id":1,"method":"tools/list"}`)
		list, err := c.out.ReadString('\n')
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range []string{"AskUserQuestion", "EnterPlanMode", "ExitPlanMode"} {
			if strings.Contains(list, `"name":"`+name+`"`) != want || strings.Contains(first, name) != want {
				t.Errorf("capabilities %s: %s is listed: %v, named in the instructions: %v", capabilities, name, !want,
					strings.Contains(first, name))
			}
		}
	}
}
