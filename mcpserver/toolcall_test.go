package mcpserver

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/toolhost/toolhost/guard"
	"github.com/toolhost/toolhost/guard/settings"
	"github.com/toolhost/toolhost/mcpserver/auth"
)

// userSettings writes the user's settings file.
func userSettings(t *testing.T, set map[string]any) {
	t.Helper()
	raw, err := json.Marshal(set)
	if err != nil {
		t.Fatal(err)
	}
	writeFile(t, filepath.Join(ownHome(t), "config", "toolhost", "toolhost.json"), string(raw))
}

// TestToolCallVerdicts: each form of a rule decides about a tool that is listed, called through ToolCall, or called by its name without
// being listed, in the same way. What is denied is not found either.
func TestToolCallVerdicts(t *testing.T) {
	for _, tt := range []struct {
		list, rule string
		want       guard.Action
	}{
		{"", "", guard.Ask}, {"allow", "mcp__s", guard.Allow}, {"allow", "mcp__s__*", guard.Allow}, {"allow", "mcp__s__do", guard.Allow}, {"allow", "mcp__s__other", guard.Ask},
		{"allow", "ToolCall", guard.Ask}, {"allow", "ToolSearch", guard.Ask}, {"ask", "mcp__s", guard.Ask}, {"ask", "mcp__s__do", guard.Ask}, {"ask", "mcp__s__do(path:/etc*)", guard.Ask},
		{"deny", "mcp__s", guard.Deny}, {"deny", "mcp__s__*", guard.Deny}, {"deny", "mcp__s__do", guard.Deny}, {"deny", "mcp__s__d*", guard.Deny}, {"deny", "*", guard.Deny},
		{"deny", "mcp__s__do(path:/etc*)", guard.Deny}, {"deny", "mcp__other", guard.Allow}, {"plan", "", guard.Deny}, {"bypass", "", guard.Allow}, {"bypass deny", "mcp__s__do", guard.Deny},
	} {
		verdicts := map[string]string{}
		for _, mode := range []string{"off", "on"} {
			set := map[string]any{}
			permissions := map[string]any{}
			for _, list := range strings.Fields(tt.list) {
				switch list {
				case "plan":
					permissions["defaultMode"] = settings.ModePlan
				case "bypass":
					permissions["defaultMode"] = settings.ModeBypass
				default:
					permissions[list] = []string{tt.rule}
				}
			}
			if tt.list == "deny" && tt.want == guard.Allow || strings.HasPrefix(tt.list, "ask") {
				permissions["allow"] = []string{"mcp__s"}
			}
			set["permissions"] = permissions
			h, _ := openHost(t, nil, func(c *Config) {
				c.ToolSearch = mode
				userSettings(t, set)
			})
			serve(t, h, true, foreignTool("s", "do", "Does it.", pathSchema),
				foreignTool("s", "else", "Something else.", "{}"))
			inner := `{"path":"/etc/passwd"}`
			for way, call := range map[string]func() (guard.Verdict, error){
				"direct": func() (guard.Verdict, error) {
					return h.Operator().Check(t.Context(), LocalPrincipal, "mcp__s__do", json.RawMessage(inner))
				},
				"ToolCall": func() (guard.Verdict, error) {
					return h.Operator().Check(t.Context(), LocalPrincipal, toolCallName,
						json.RawMessage(`{"name":"mcp__s__do","arguments":`+inner+`}`))
				},
			} {
				v, err := call()
				if err != nil {
					t.Fatalf("%+v: %s: %v", tt, way, err)
				}
				verdicts[mode+" "+way] = fmt.Sprint(v.Action, " ", v.Rule)
				if v.Action != tt.want {
					t.Errorf("%+v: search %s, %s: %s", tt, mode, way, Explain(v))
				}
			}
			direct, wrapped := do(h, "mcp__s__do", inner), through(h, "mcp__s__do", inner)
			if ran := strings.Contains(direct.Text, "ran with"); ran != (tt.want == guard.Allow) ||
				direct.Text != wrapped.Text || direct.IsError != wrapped.IsError {
				t.Errorf("%+v: search %s: called %q, through ToolCall %q", tt, mode, direct.Text, wrapped.Text)
			}
			byName := tt.want == guard.Deny && !strings.Contains(tt.rule, "(") && tt.list != "plan"
			if tt.rule == "*" {
				continue
			}
			found := search(t, h, "+do does it") + search(t, h, "select:mcp__s__do") + search(t, h, "xyzzy")
			if strings.Contains(found, "mcp__s__do\n") == byName {
				t.Errorf("%+v: found %s", tt, found)
			}
			if byName && (strings.Contains(found, ": mcp__s__do") || strings.Contains(found, "2 tools")) {
				t.Errorf("%+v: a denied tool is named or counted: %s", tt, found)
			}
		}
		for way, v := range verdicts {
			if v != verdicts["off direct"] {
				t.Errorf("%+v: %s: %s, direct: %s", tt, way, v, verdicts["off direct"])
			}
		}
	}
}

// TestToolCallRules: rules on ToolCall itself take it away, and loosen nothing.
func TestToolCallRules(t *testing.T) {
	for list, want := range map[string]string{"deny": "mcp__s__do ran with|denied by a rule",
		"ask": "mcp__s__do ran with|requires approval"} {
		h, _ := openHost(t, nil, func(c *Config) {
			c.ToolSearch = "on"
			userSettings(t, map[string]any{"permissions": map[string]any{list: []string{"ToolCall"}, "allow": []string{"mcp__s", "ToolCall"}}})
		})
		serve(t, h, true, foreignTool("s", "do", "", "{}"))
		direct, wrapped, _ := strings.Cut(want, "|")
		if d, w := do(h, "mcp__s__do", "{}"), through(h, "mcp__s__do", "{}"); !strings.Contains(d.Text, direct) ||
			!strings.Contains(w.Text, wrapped) {
			t.Errorf("%s: %q, through ToolCall %q", list, d.Text, w.Text)
		}
	}
}

// TestToolCallInput: what cannot be called is told, and runs nothing.
func TestToolCallInput(t *testing.T) {
	t.Parallel()
	h, _ := openHost(t, map[string]string{"a.txt": "secret"},
		func(c *Config) { c.ToolSearch, c.Allow = "on", []string{"mcp__s", "Bash"} })
	serve(t, h, true, foreignTool("s", "do", "", pathSchema), foreignTool("s", "loose", "", "{}"))
	for args, want := range map[string]string{
		`{}`: "name is missing", `[]`: "expected one JSON object", `"x"`: "expected one JSON object", `{"name":5}`: "name: expected a string", `{"name":""}`: "name is missing",
		`{"name":"mcp__s__do","name":"Bash"}`: `"name" occurs twice`, `{"name":"mcp__s__do","path":"x"}`: "put the arguments of the tool into",
		`{"name":"mcp__s__do","arguments":[1]}`: "arguments: expected one JSON object", `{"name":"mcp__s__do","arguments":"text"}`: "arguments: expected one JSON object",
		`{"name":"mcp__s__do","arguments":{"path":"a","path":"b"}}`: `"path" occurs twice`,
		`{"name":"mcp__s__do","arguments":{"depth":1}}`:             "\n- path is missing\n", `{"name":"mcp__s__do","arguments":{"path":1}}`: `Its schema: {"type":"object"`,
		`{"name":"mcp__s__do","arguments":{"path":1,"depth":"x"}}`:                           "\n- depth: type: x has type \"string\", want \"integer\"\n- path: type: 1 has type \"integer\", want \"string\"\n",
		`{"name":"ToolCall","arguments":{"name":"Bash","arguments":{"command":"echo out"}}}`: "cannot call itself", `{"name":"mcp__toolhost__ToolCall"}`: "cannot call itself",
		`{"name":"Bash","arguments":{"command":"echo out"}}`: "Bash is a tool of this host: call it by its name", `{"name":"shell","arguments":{"command":"echo out"}}`: "Bash is a tool of this host",
		`{"name":"mcp__toolhost__Read","arguments":{"file_path":"a.txt"}}`: "Read is a tool of this host", `{"name":"ToolSearch","arguments":{"query":"x"}}`: "ToolSearch is a tool of this host",
		`{"name":"s/do","arguments":{}}`: "did you mean mcp__s__do?). ToolSearch finds tools", `{"name":"do"}`: "did you mean mcp__s__do", `{"name":"mcp__s__nothing_like_it"}`: "no such tool: mcp__s__nothing_like_it",
		`{"name":"` + strings.Repeat("x", 1<<20) + `"}`: "no such tool: xxx",
	} {
		r := do(h, toolCallName, args)
		if !r.IsError || !strings.Contains(r.Text, want) || len(r.Text) > 2000 ||
			strings.Contains(r.Text, "ran with") || strings.Contains(r.Text, "secret") {
			t.Errorf("%.80s: %.300s", args, r.Text)
		}
	}
	for args, want := range map[string]string{
		`{"name":"mcp__s__do","arguments":"{\"path\":\"a\"}"}`: `ran with {"path":"a"}`, `"{\"name\":\"mcp__s__do\",\"arguments\":{\"path\":\"a\"}}"`: `ran with {"path":"a"}`,
		`{"name":"mcp__s__loose"}`: "ran with {}", `{"name":"mcp__s__loose","arguments":null}`: "ran with {}", `{"name":"mcp__toolhost__mcp__s__loose","arguments":""}`: "ran with {}",
	} {
		if r := do(h, toolCallName, args); r.IsError || !strings.Contains(r.Text, want) {
			t.Errorf("%s: %s", args, r.Text)
		}
	}
}

// TestToolCallSchemaBombs: a schema that never ends, or asks for exponential work, does not harm the host. The call goes to its server.
func TestToolCallSchemaBombs(t *testing.T) {
	t.Parallel()
	wide := `"a30":{"type":"object"}`
	for i := range 30 {
		next := fmt.Sprintf(`{"$ref":"#/$defs/a%d"}`, i+1)
		wide += fmt.Sprintf(`,"a%d":{"allOf":[%s,%s]}`, i, next, next)
	}
	for name, schema := range map[string]string{
		"itself":   `{"type":"object","$ref":"#"}`,
		"spelt":    `{"type":"object","$\u0072ef":"#"}`,
		"case":     `{"type":"object","$REF":"#"}`,
		"two":      `{"type":"object","allOf":[{"$ref":"#/$defs/a"}],"$defs":{"a":{"anyOf":[{"$ref":"#"}]}}}`,
		"dynamic":  `{"type":"object","$dynamicAnchor":"a","$dynamicRef":"#a"}`,
		"anchor":   `{"type":"object","not":{"$ref":"#a"},"$anchor":"a"}`,
		"draft 07": `{"$schema":"http://json-schema.org/draft-07/schema#","type":"object","dependencies":{"x":{"$ref":"#"}}}`,
		"wide":     `{"type":"object","$ref":"#/$defs/a0","$defs":{` + wide + `}}`,
	} {
		h, _ := openHost(t, nil, func(c *Config) { c.ToolSearch, c.Allow = "on", []string{"mcp__s"} })
		serve(t, h, true, foreignTool("s", "do", "", schema))
		if r := through(h, "mcp__s__do", `{"x":1}`); r.IsError || !strings.Contains(r.Text, "ran with") {
			t.Errorf("%s: %.300s", name, r.Text)
		}
	}
}

// TestToolCallSeenInside: hooks see and rewrite the call of the tool inside, and the audit log has its name.
func TestToolCallSeenInside(t *testing.T) {
	h, _ := openHost(t, nil, func(c *Config) {
		c.ToolSearch = "on"
		userSettings(t, map[string]any{"permissions": map[string]any{"allow": []string{"mcp__s"}}, "hooks": map[string]any{"PreToolUse": []any{
			map[string]any{"matcher": "mcp__s__do",
				"hooks": []any{map[string]any{"type": "command", "command": `echo '{"hookSpecificOutput":{"hookEventName":"PreToolUse","updatedInput":{"path":"rewritten"}}}'`}}},
			map[string]any{"matcher": "mcp__s__no",
				"hooks": []any{map[string]any{"type": "command", "command": "echo not this >&2; exit 2"}}},
			map[string]any{"matcher": "ToolCall", "hooks": []any{map[string]any{"type": "command", "command": "echo never >&2; exit 2"}}},
		}}})
	})
	serve(t, h, true, foreignTool("s", "do", "", pathSchema), foreignTool("s", "no", "", "{}"))
	if r := through(h, "mcp__s__do", `{"path":"given"}`); r.Text != `mcp__s__do ran with {"path":"rewritten"}` {
		t.Errorf("not rewritten: %s", r.Text)
	}
	if r := through(h, "mcp__s__no", `{}`); !r.IsError || !strings.Contains(r.Text, "not this") {
		t.Errorf("not refused: %s", r.Text)
	}
	log, err := os.ReadFile(h.Operator().AuditPath())
	if err != nil || strings.Contains(string(log), `"tool":"ToolCall"`) ||
		!strings.Contains(string(log), `"tool":"mcp__s__do"`) || !strings.Contains(string(log), `"tool":"mcp__s__no"`) {
		t.Errorf("audited: %s %v", log, err)
	}
}

// TestToolCallOverTransport: both eras call an unlisted tool by its name and through ToolCall, an unknown name is told, and a caller that may
// only read can do neither.
func TestToolCallOverTransport(t *testing.T) {
	c := startPipe(t, nil, func(c *Config) { c.ToolSearch, c.Allow = "on", []string{"mcp__s"} })
	serve(t, c.host, true, foreignTool("s", "do", "", pathSchema))
	inner := `{"path":"a"}`
	for i, call := range []string{
		toolCall(1, "mcp__s__do", inner), toolCall(2, toolCallName, `{"name":"mcp__s__do","arguments":`+inner+`}`),
		`{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"mcp__s__do","arguments":` + inner + `,` + modernMeta + `}}`,
		`{"jsonrpc":"2.0","id":4,"method":"tools/call","params":{"name":"ToolCall","arguments":{"name":"mcp__s__do","arguments":` + inner + `},` + modernMeta + `}}`,
		`{"jsonrpc":"2.0","id":5,"method":"tools/call","params":{"name":"Tool\u0043all","arguments":{"name":"mcp__s__do","arguments":` + inner + `},` + modernMeta + `}}`,
	} {
		c.send(call)
		if a := c.receive(); string(a.ID) != fmt.Sprint(i+1) ||
			!strings.Contains(string(a.Result), `mcp__s__do ran with {\"path\":\"a\"}`) {
			t.Errorf("%s: %s %+v", call, a.Result, a.Error)
		}
	}
	c.send(toolCall(6, toolCallName, `{"name":"mcp__s__dp"}`))
	if a := c.receive(); !strings.Contains(string(a.Result), "did you mean mcp__s__do?") {
		t.Errorf("unknown: %s %+v", a.Result, a.Error)
	}
	reader := auth.Identity{Principal: "reader", Rights: auth.Read}
	for name, args := range map[string]string{"mcp__s__do": inner, toolCallName: `{"name":"mcp__s__do","arguments":` +
		inner + `}`} {
		r := c.host.Call(t.Context(), c.host.Admit(reader, nil, "", true),
			Request{Tool: name, Args: json.RawMessage(args)})
		if !r.IsError || !strings.Contains(r.Text, "needs the right exec") {
			t.Errorf("%s: %s", name, r.Text)
		}
	}
	r := c.host.Call(t.Context(), c.host.Admit(reader, nil, "", true),
		Request{Tool: toolSearchName, Args: json.RawMessage(`{"query":"do"}`)})
	if strings.Contains(r.Text, "mcp__s__do") {
		t.Errorf("a caller that may only read finds %s", r.Text)
	}
}

// TestToolListedMeanwhile: a call that was read before its server had listed its tools finds the tool.
func TestToolListedMeanwhile(t *testing.T) {
	h, _ := openHost(t, nil, func(c *Config) { c.Allow = []string{"mcp__s"} })
	if err := h.setForeign(foreignSet{Servers: []foreignServer{{Name: "s", Unknown: true}}, Configured: true}); err != nil {
		t.Fatal(err)
	}
	s, err := NewServer(h)
	if err != nil {
		t.Fatal(err)
	}
	known, e1 := adapter{Server: s}.Open([]byte(toolCall(1, "mcp__s__do", "{}")))
	unknown, e2 := adapter{Server: s}.Open([]byte(toolCall(2, "mcp__s__dp", "{}")))
	if e1 != nil || e2 != nil {
		t.Fatal(e1, e2)
	}
	serve(t, h, true, foreignTool("s", "do", "", pathSchema))
	if err := known.Validate(Local()); err != nil {
		t.Error(err)
	}
	if err := unknown.Validate(Local()); err == nil || !strings.Contains(err.Text, "did you mean mcp__s__do?") {
		t.Error(err)
	}
}

// TestToolListEndpoint: a client chooses its list by the endpoint.
func TestToolListEndpoint(t *testing.T) {
	h, _ := openHost(t, nil, func(c *Config) { c.Remote = true })
	serve(t, h, true, foreignTool("s", "do", "", pathSchema))
	url, stop := serveWeb(t, h)
	defer stop()
	for query, want := range map[string]string{"": "mcp__s__do", "?tools=all": "mcp__s__do",
		"?tools=search": "ToolCall ToolSearch"} {
		_, body := modern(listTools).do(t, url+query)
		var a rpcAnswer
		if err := json.Unmarshal([]byte(body), &a); err != nil {
			t.Fatalf("%s: %v", body, err)
		}
		if got := strings.Join(listedNames(t, a), " "); !strings.Contains(got, want) ||
			strings.Contains(got, "ToolSearch") == strings.Contains(got, "mcp__") {
			t.Errorf("%s: %s", query, got)
		}
	}
	if resp, body := modern(listTools).do(t, url+"?tools=some"); resp.StatusCode != http.StatusBadRequest ||
		!strings.Contains(body, "use search or all") {
		t.Errorf("a wrong list: %s: %s", resp.Status, body)
	}
}
