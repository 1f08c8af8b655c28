package gateway

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
)

// A listWire is a server whose lists a test sets. It records the requests for tools, prompts and resources.
type listWire struct {
	stepWire
	lists map[string]string // the result by method
	mu    *sync.Mutex
	sent  *[]string
}

func (w *listWire) request(ctx context.Context, method string, params json.RawMessage) (json.RawMessage, error) {
	if list, ok := w.lists[method]; ok {
		return json.RawMessage(list), nil
	}
	switch method {
	case "initialize":
		return json.RawMessage(`{"protocolVersion":"2025-06-18","capabilities":{"tools":{},"prompts":{},"resources":{}}}`), nil
	case "tools/call", "prompts/get", "resources/read":
		w.mu.Lock()
		*w.sent = append(*w.sent, method)
		w.mu.Unlock()
		return json.RawMessage(`{"content":[],"messages":[],"contents":[]}`), nil
	}
	return w.stepWire.request(ctx, method, params)
}

// A changing is a gateway with one server, which a test restarts with other lists.
type changing struct {
	*bench
	lists map[string]string
	sent  []string
}

func newChanging(t *testing.T, trust Trust) *changing {
	c := &changing{bench: &bench{t: t, as: localPrincipal}}
	mu := &sync.Mutex{}
	entries := []*Entry{{Name: "s", Trust: trust, Type: typeStdio, Command: "none", File: "test"}}
	c.g = Open(Config{Servers: func() ([]*Entry, []string) { return entries, nil }, Dir: t.TempDir(),
		Changed: func(*Gateway, bool) {}, Log: slog.New(slog.DiscardHandler)})
	t.Cleanup(func() { c.g.Close() })
	c.g.dial = func(_ *upstream, _ context.Context, s *session) error {
		s.w = &listWire{stepWire: stepWire{to: s, gone: make(chan struct{})}, lists: c.lists, mu: mu, sent: &c.sent}
		return nil
	}
	return c
}

// restart ends the server. The next request starts it with other lists.
func (c *changing) restart(lists map[string]string) {
	c.lists = lists
	s, err := c.g.server("s")
	if err != nil {
		c.t.Fatal(err)
	}
	c.stopAll(s)
}

// listsOf returns the lists of a server with these elements of one kind.
func listsOf(kind kind, elements ...string) map[string]string {
	method, field := kind.word+"s/list", kind.word+"s"
	if kind == templateKind {
		method, field = "resources/templates/list", "resourceTemplates"
	}
	return map[string]string{method: fmt.Sprintf(`{%q:[%s]}`, field, strings.Join(elements, ","))}
}

// offers returns what clients see of a kind, as JSON.
func (c *changing) offers(kind kind) string {
	consults := c.g.Consults(localPrincipal)
	switch kind {
	case promptKind:
		return string(marshal(consults.Prompts()))
	case resourceKind:
		return string(marshal(consults.Resources()))
	case templateKind:
		return string(marshal(consults.Templates()))
	}
	all := ""
	for _, d := range c.g.Tools() {
		if !d.Unlisted {
			all += d.Name + " " + d.Doc + string(d.RawSchema)
		}
	}
	return all
}

// first starts the server, so that its lists are known.
func (c *changing) first(lists map[string]string) {
	c.lists = lists
	s, err := c.g.server("s")
	if err != nil {
		c.t.Fatal(err)
	}
	c.g.look(s, localPrincipal)
}

// Elements of lists: %[1]s is the member with the name.
const (
	good    = `{%[1]q:"a:b","name":"a:b","description":"good"}`
	evil    = `{%[1]q:"a:b","name":"a:b","description":"evil"}`
	broken  = `{%[1]q:"a:b","name":"a:b","description":"good","Description":"evil"}`
	badType = `{%[1]q:"a:b","name":"a:b","description":7}`
)

func elements(kind kind, texts ...string) (all []string) {
	for _, text := range texts {
		text = fmt.Sprintf(text, kind.key)
		if kind.key == "name" {
			text = strings.Replace(text, `"name":"a:b",`, "", 1)
		}
		all = append(all, text)
	}
	return all
}

// TestPins: of what a server lists now, only the accepted definition is served, whatever else has its name.
func TestPins(t *testing.T) {
	for _, kind := range []kind{toolKind, promptKind, resourceKind, templateKind} {
		for _, tt := range []struct {
			name       string
			first, now []string
			served     bool
		}{
			{"unchanged", []string{good}, []string{good}, true},
			{"changed", []string{good}, []string{evil}, kind == resourceKind}, // their list is not reviewed
			{"a twin", []string{good}, []string{evil, good}, false},
			{"a twin, the other order", []string{good}, []string{good, evil}, false},
			{"the same twice", []string{good}, []string{good, good}, false},
			{"an invalid twin was accepted", []string{broken}, []string{evil, broken}, false},
			{"an invalid twin", []string{good}, []string{evil, broken}, false},
			{"a twin of another type", []string{good}, []string{evil, badType}, false},
			{"an invalid one at first sight", []string{broken}, []string{evil}, kind == resourceKind},
			{"twins at first sight", []string{good, broken}, []string{evil}, kind == resourceKind},
			{"twins at first sight, then one", []string{good, evil}, []string{evil}, kind == resourceKind},
			{"three", []string{good}, []string{badType, evil, good}, false},
		} {
			t.Run(kind.word+"/"+tt.name, func(t *testing.T) {
				c := newChanging(t, User)
				c.first(listsOf(kind, elements(kind, tt.first...)...))
				c.first(listsOf(kind, elements(kind, tt.now...)...))
				if got := c.offers(kind); strings.Contains(got, "good") != (tt.served && tt.now[0] == good) ||
					strings.Contains(got, "evil") != (tt.served && tt.now[0] == evil) {
					t.Errorf("clients see %s", got)
				}
				said := string(marshal(c.g.Servers()))
				if len(tt.now) > 1 && !strings.Contains(said, "left out") {
					t.Errorf("it is not said: %s", said)
				}
			})
		}
	}
}

// TestComparedBeforeCall: a server that starts with other definitions gets no request that relies on the former ones.
func TestComparedBeforeCall(t *testing.T) {
	request := func(c *changing, kind kind) {
		c.sent = nil
		switch kind {
		case toolKind:
			c.call(t.Context(), "s__a_b", "{}")
		case promptKind:
			c.run("get mcp__s__a_b")
		default:
			c.run("read " + Scheme + "s/a:b")
		}
	}
	for _, kind := range []kind{toolKind, promptKind} {
		for _, tt := range []struct {
			name string
			now  []string
			sent bool
		}{
			{"unchanged", []string{good}, true},
			{"changed", []string{evil}, false},
			{"a twin", []string{good, evil}, false},
			{"an invalid twin", []string{good, broken}, false},
			{"gone", nil, false},
		} {
			t.Run(kind.word+"/"+tt.name, func(t *testing.T) {
				c := newChanging(t, User)
				c.first(listsOf(kind, elements(kind, good)...))
				request(c, kind)
				if c.err != nil || len(c.sent) != 1 {
					t.Fatalf("the first call: %v, sent %v", c.err, c.sent)
				}
				c.restart(listsOf(kind, elements(kind, tt.now...)...))
				request(c, kind)
				if sent := len(c.sent) == 1; sent != tt.sent || (c.err == nil) != tt.sent {
					t.Errorf("sent %v, error %v", c.sent, c.err)
				}
				var withheld *errWithheld
				if !tt.sent && !errors.As(c.err, &withheld) {
					t.Errorf("the error does not say why: %v", c.err)
				}
			})
		}
	}
	t.Run("resources", func(t *testing.T) {
		c := newChanging(t, Project)
		c.first(listsOf(resourceKind, elements(resourceKind, good)...))
		c.run("accept s")
		if request(c, resourceKind); len(c.sent) != 1 {
			t.Errorf("accepted: %v, sent %v", c.err, c.sent)
		}
	})
}

// TestComparedPerConnection: what one connection lists does not permit a call on another one.
func TestComparedPerConnection(t *testing.T) {
	c := newChanging(t, User)
	c.first(listsOf(toolKind, elements(toolKind, good)...))
	c.call(t.Context(), "s__a_b", "{}")
	tools := slices.Clone(c.g.Tools())
	c.lists = listsOf(toolKind, elements(toolKind, evil)...)
	s := must(c.g.server("s"))
	other := c.g.upstreamFor(s, localPrincipal, "two")
	if sess, err := other.acquire(t.Context()); err == nil {
		other.release(sess)
	}
	c.first(listsOf(toolKind, elements(toolKind, good)...)) // the record has the accepted definition again
	c.sent = nil
	call := must(tools[0].Bind(json.RawMessage("{}")))
	env := c.env()
	env.Scope = "two"
	plan, err := call.Plan(t.Context(), env)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := plan.Run(t.Context()); err == nil || len(c.sent) != 0 {
		t.Errorf("sent %v, error %v", c.sent, err)
	}
}

// TestTwinSays: a call of a tool that is listed twice says so.
func TestTwinSays(t *testing.T) {
	c := newChanging(t, User)
	c.first(listsOf(toolKind, elements(toolKind, good, evil)...))
	if c.call(t.Context(), "s__a_b", "{}"); c.err == nil ||
		!strings.Contains(c.err.Error(), "the list has 2 of that name") {
		t.Errorf("the call: %v, %v", c.last, c.err)
	}
	if changes := must(c.g.Review("s")); len(changes) != 0 {
		t.Errorf("a twin can be accepted: %+v", changes)
	}
}
