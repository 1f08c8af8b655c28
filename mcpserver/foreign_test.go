package mcpserver

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/toolhost/toolhost/builtin"
	"github.com/toolhost/toolhost/guard"
	"github.com/toolhost/toolhost/mcpserver/internal/transport"
)

// foreignTool is a tool of another server that answers with its name and its arguments.
func foreignTool(server, tool, doc, schema string) *builtin.Def {
	name := "mcp__" + server + "__" + tool
	return builtin.External(builtin.Def{Name: name, Doc: doc, Server: server, RawSchema: json.RawMessage(schema)},
		false,
		func(_ context.Context, _ *builtin.Env, args json.RawMessage) (builtin.Plan, error) {
			return builtin.Plan{
				Intent: guard.Intent{Effects: []guard.Effect{guard.CallTool{Server: server, Tool: tool}}},
				Run: func(context.Context) (builtin.Result, error) {
					return builtin.Result{Text: fmt.Sprintf("%s ran with %s", name, args)}, nil
				},
			}, nil
		})
}

const pathSchema = `{"type":"object","properties":{"path":{"type":"string"},"depth":{"type":"integer"}},"required":["path"],"oneOf":[{}]}`

// serve makes these the tools of other servers.
func serve(t testing.TB, h *Host, configured bool, tools ...*builtin.Def) {
	t.Helper()
	f := foreignSet{Tools: tools, Configured: configured}
	for _, d := range tools {
		if n := len(f.Servers); n == 0 || f.Servers[n-1].Name != d.Server {
			f.Servers = append(f.Servers, foreignServer{Name: d.Server, Purpose: "what " + d.Server + " does"})
		}
	}
	if err := h.setForeign(f); err != nil {
		t.Fatal(err)
	}
}

// TestForeignNames: a tool with the name of another, also with one that was cut for the list, does not take the others off.
func TestForeignNames(t *testing.T) {
	h, _ := openHost(t, nil, func(c *Config) { c.ToolSearch, c.Allow = "off", []string{"mcp__a", "mcp__b"} })
	cut := foreignTool("a", "long", "", "{}")
	cut.Listed = "mcp__b__one"
	err := h.setForeign(foreignSet{Tools: []*builtin.Def{cut, foreignTool("a", "two", "", "{}"),
		foreignTool("b", "one", "", "{}"), foreignTool("b", "one", "", "{}")}, Configured: true})
	if err == nil || !strings.Contains(err.Error(), `two tools with the name "mcp__b__one"`) {
		t.Error(err)
	}
	for name, want := range map[string]string{"mcp__a__two": "mcp__a__two ran", "mcp__b__one": "mcp__b__one ran",
		"mcp__a__long": "no such tool"} {
		if r := do(h, name, "{}"); !strings.Contains(r.Text, want) {
			t.Errorf("%s: %s", name, r.Text)
		}
	}
}

// listedNames returns the names on a list of tools, in order.
func listedNames(t testing.TB, a rpcAnswer) (names []string) {
	t.Helper()
	var result struct {
		Tools []struct{ Name string }
	}
	if err := json.Unmarshal(a.Result, &result); err != nil {
		t.Fatal(err)
	}
	for _, tool := range result.Tools {
		names = append(names, tool.Name)
	}
	return names
}

// TestForeignList: our tools come first, each block by name; a schema is served as it came; rules by server and by tool hold.
func TestForeignList(t *testing.T) {
	c := startPipe(t, nil, func(c *Config) {
		c.Tools, c.ToolSearch, c.Deny = []string{"Write", "Read"}, "off", []string{"mcp__a__out", "mcp__c"}
	})
	serve(t, c.host, true, foreignTool("b", "one", "One.", pathSchema), foreignTool("a", "two", "Two.", "{}"),
		foreignTool("a", "out", "Out.", "{}"), foreignTool("c", "any", "Any.", "{}"))
	c.send(listTools)
	a := c.receive()
	if got := strings.Join(listedNames(t, a), " "); got != "Read Write mcp__a__two mcp__b__one" {
		t.Errorf("listed: %s", got)
	}
	if !strings.Contains(string(a.Result), pathSchema) {
		t.Errorf("the schema was changed: %s", a.Result)
	}
}

// TestForeignSwap replaces the tools while they are listed and called: a list is of one snapshot, and a call that has been resolved runs.
func TestForeignSwap(t *testing.T) {
	t.Parallel()
	h, _ := openHost(t, nil, func(c *Config) { c.ToolSearch, c.Allow = "off", []string{"mcp__s"} })
	var sets [2][]*builtin.Def
	for i := range 20 {
		sets[0] = append(sets[0], foreignTool("s", fmt.Sprint("a", i), "", "{}"))
		sets[1] = append(sets[1], foreignTool("s", fmt.Sprint("b", i), "", "{}"))
	}
	serve(t, h, false, sets[0]...)
	s, err := NewServer(h)
	if err != nil {
		t.Fatal(err)
	}
	ctx := transport.WithPeer(t.Context(), transport.Peer{Transport: transport.Stdio, Who: Local()})
	var swaps sync.WaitGroup
	swaps.Go(func() {
		for i := range 200 {
			serve(t, h, false, sets[i%2]...)
		}
	})
	for range 50 {
		answer, err := json.Marshal(s.mcp.HandleMessage(ctx, []byte(listTools)))
		if n := strings.Count(string(answer), `"mcp__s__a`); err != nil || n != 0 && n != 20 {
			t.Fatalf("a list has %d tools of one set: %v", n, err)
		}
		if r := do(h, "mcp__s__a1", "{}"); r.IsError && !strings.Contains(r.Text, "no such tool") {
			t.Fatal(r.Text)
		}
	}
	swaps.Wait()
}
