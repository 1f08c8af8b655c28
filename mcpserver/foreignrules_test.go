package mcpserver

import (
	"fmt"
	"strings"
	"testing"

	"github.com/toolhost/toolhost/builtin"
	"github.com/toolhost/toolhost/guard"
	"github.com/toolhost/toolhost/guard/alias"
	"github.com/toolhost/toolhost/integration/samples"
)

const longForeign = "a-name-that-is-much-longer-than-what-models-take-in-a-list"

// servesLong opens a host with a tool whose name is shortened for lists.
func servesLong(t *testing.T, schema string, change func(*Config)) (h *Host, full, short string) {
	t.Helper()
	h, _ = openHost(t, nil, func(c *Config) {
		c.Allow = []string{"mcp__s"}
		change(c)
	})
	d := foreignTool("s", longForeign, "", schema)
	d.Listed = alias.Listed(d.Name)
	serve(t, h, true, d, foreignTool("s", "other", "", "{}"))
	return h, d.Name, d.Listed
}

// TestForeignRuleWays: a deny holds by each name of a tool, in whatever way the tool is called.
func TestForeignRuleWays(t *testing.T) {
	t.Parallel()
	full := "mcp__s__" + longForeign
	short := alias.Listed(full)
	for i, rule := range []string{
		full, short, ownPrefix + full, ownPrefix + short, "mcp__s", "mcp__s__*", ownPrefix + "mcp__s", ownPrefix +
			"mcp__s__*", "mcp__s__a-name*", ownPrefix + "*",
		full + "(path:*secret*)", short + "(path:*secret*)", ownPrefix + short + "(Path:*secret*)",
		"mcp__s(path:*secret*)", "mcp__s__*(path:*secret*)",
	} {
		for k, mode := range []string{"off", "on"} {
			if (i+k)%samples.Step(1) > 2 {
				continue
			}
			h, full, short := servesLong(t, "{}", func(c *Config) { c.ToolSearch, c.Deny = mode, []string{rule} })
			args := `{"path":"a secret"}`
			for way, reply := range map[string]Reply{
				"full": do(h, full, args), "short": do(h, short, args), "ToolCall": through(h, full, args), "ToolCall, short": through(h, short, args),
				"ToolCall, prefixed": through(h, ownPrefix+full, args), "ToolCall, prefixed and short": through(h, ownPrefix+short, args),
				"in a list": do(h, full, `{"files":[{"PATH":"a secret"}]}`), "as a string": through(h, full, `"{\"path\":\"a secret\"}"`),
			} {
				if strings.Contains(reply.Text, "ran with") || !strings.Contains(reply.Text, "denied by a rule") {
					t.Errorf("%s, search %s, %s: %s", rule, mode, way, reply.Text)
				}
			}
			if strings.Contains(rule, "(") {
				if r := do(h, full, `{"path":"a"}`); !strings.Contains(r.Text, "ran with") {
					t.Errorf("%s: another value: %s", rule, r.Text)
				}
				continue
			}
			for _, d := range h.Tools(Local()) {
				if d.Name == full {
					t.Errorf("%s: the tool is listed", rule)
				}
			}
			if rule == ownPrefix+"*" { // ToolSearch is denied too
				continue
			}
			if found := search(t, h, "select:"+full+","+short); strings.Contains(found, full+"\n") {
				t.Errorf("%s: found %s", rule, found)
			}
		}
	}
}

// TestToolCallNameRules: a rule on the name in a ToolCall holds for each name of the tool.
func TestToolCallNameRules(t *testing.T) {
	full := "mcp__s__" + longForeign
	for _, rule := range []string{"ToolCall(name:" + full + ")", "ToolCall(name:" + alias.Listed(full) + ")",
		"ToolCall(name:" + ownPrefix + full + ")", "ToolCall(name:mcp__s__*)"} {
		h, full, short := servesLong(t, "{}", func(c *Config) { c.ToolSearch, c.Deny = "on", []string{rule} })
		for _, name := range []string{full, short, ownPrefix + full, ownPrefix + short} {
			if r := through(h, name, "{}"); strings.Contains(r.Text, "ran with") {
				t.Errorf("%s: %s ran", rule, name)
			}
		}
		if r := do(h, full, "{}"); !strings.Contains(r.Text, "ran with") {
			t.Errorf("%s: a direct call: %s", rule, r.Text)
		}
	}
}

// TestForeignArguments: direct calls are checked as those through ToolCall are, and the server gets what was checked.
func TestForeignArguments(t *testing.T) {
	t.Parallel()
	const schema = `{"type":"object","properties":{"path":{"type":"string"},"o":{"type":"object"},"n":{"type":"number"}},"required":["path"],"additionalProperties":false}`
	for _, tt := range []struct{ args, want string }{
		{`{"path":"x"}`, `ran with {"path":"x"}`},
		{`{}`, "path is missing"},
		{`{"path":7}`, "path: "},
		{`{"path":"x","other":1}`, `"other" is not a parameter`},
		{`{"path":"x","path":"y"}`, "twice"},
		{`{"path":"x","wait_for_previous":true}`, `ran with {"path":"x"}`}, // which a client adds
		{`{"path":"x","o":{"a":1,"a":2}}`, `ran with {"o":{"a":2},"path":"x"}`},
		{`{"path":"x","n":9007199254740993}`, `ran with {"n":9007199254740993,"path":"x"}`},
		{`{"path":"5","n":"5","o":"{\"a\":\"1\"}"}`, `ran with {"n":5,"o":{"a":"1"},"path":"5"}`}, // as models send them
		{`{"path":"x","n":null}`, `ran with {"path":"x"}`},
		{`{"path":"x","n":"five"}`, "n: "},
		{`{"path":"x","o":"{\"path\":\"a secret\"}"}`, "denied by a rule"},
		{`[]`, "one JSON object"},
	} {
		h, full, _ := servesLong(t, schema, func(c *Config) { c.ToolSearch, c.Deny = "on", []string{"mcp__s(path:*secret*)"} })
		direct, wrapped := do(h, full, tt.args), through(h, full, tt.args)
		if !strings.Contains(direct.Text, tt.want) || direct.IsError != wrapped.IsError {
			t.Errorf("%s: got %q, through ToolCall %q, want %q", tt.args, direct.Text, wrapped.Text, tt.want)
		}
		if direct.IsError && !strings.HasPrefix(tt.args, "[") && !strings.Contains(tt.want, "twice") &&
			!strings.Contains(tt.want, "denied") && !strings.Contains(direct.Text, "Its schema: {") {
			t.Errorf("%s: the schema is missing: %q", tt.args, direct.Text)
		}
	}
}

// TestErrorLimit: an error of a call that did not run is as long as the client passes on.
func TestErrorLimit(t *testing.T) {
	schema := `{"type":"object","required":["path"],"properties":{"path":{"type":"string","description":"` +
		strings.Repeat("long ", 3000) + `"}}}`
	h, full, _ := servesLong(t, schema, func(*Config) {})
	for client, most := range map[string]int{"claude-code": 10_000, "qwen-code": 1_500, "copilot": 19_500} {
		r := h.Call(t.Context(), h.AdmitNamed("one"), Request{Tool: full, Args: []byte("{}"), ClientLimits: func(other int) builtin.ClientLimits {
			return clientInfo{Name: client}.passes(other, len("{}"))
		}})
		if n := len([]rune(r.Text)); !r.IsError || n > most || !strings.Contains(r.Text, "path is missing") ||
			n < most/2 {
			t.Errorf("%s: %d characters: %.100s", client, n, r.Text)
		}
	}
}

// TestAgentToolNames: the lists of an agent take each name of a tool of another server.
func TestAgentToolNames(t *testing.T) {
	h, full, short := servesLong(t, "{}", func(c *Config) { c.ToolSearch = "off" })
	for _, tt := range []struct {
		tools, denied []string
		long, other   bool
	}{
		{nil, nil, true, true},
		{nil, []string{full}, false, true},
		{nil, []string{short}, false, true},
		{nil, []string{ownPrefix + full}, false, true},
		{nil, []string{ownPrefix + short}, false, true},
		{nil, []string{"mcp__s__a-*"}, false, true},
		{nil, []string{"mcp__s"}, false, false},
		{nil, []string{"mcp__s__*"}, false, false},
		{nil, []string{ownPrefix + "mcp__s"}, false, false},
		{[]string{full}, nil, true, false},
		{[]string{short}, nil, true, false},
		{[]string{ownPrefix + short}, nil, true, false},
		{[]string{"mcp__s"}, nil, true, true},
		{[]string{ownPrefix + "mcp__s__*"}, nil, true, true},
		{[]string{"mcp__s"}, []string{short}, false, true},
		{[]string{"Read"}, nil, false, false},
	} {
		one := &child{parent: LocalPrincipal, depth: 1}
		one.spec.Agent.Tools, one.spec.Agent.Denied, one.spec.Agent.ID = tt.tools, tt.denied, "a1"
		principal := one.spec.Agent.Principal()
		h.children.set(principal, one)
		policy := h.policies.of(principal)
		for name, want := range map[string]bool{full: tt.long, "mcp__s__other": tt.other} {
			v := policy.Judge(guard.Intent{Tool: name, Effects: []guard.Effect{guard.CallTool{Server: "s", Tool: "t"}}})
			on, _ := policy.ToolEnabled(name)
			if got := v.Action == guard.Allow; got != want || on != want {
				t.Errorf("tools %v, denied %v: %s allowed %v, listed %v, want %v", tt.tools, tt.denied, name,
					got, on, want)
			}
		}
		h.children.set(principal, nil)
	}
}

// TestIdleRuleWarnings: the doctor and the list of rules say which rules match no known tool.
func TestIdleRuleWarnings(t *testing.T) {
	t.Parallel()
	h, _, _ := servesLong(t, "{}", func(c *Config) { c.Deny = []string{"mcp__s__othre", "mcp__gone", "mcp__s__other"} })
	warnings := strings.Join(h.Operator().RuleWarnings(), "\n")
	findings := fmt.Sprint(h.Operator().Examine(t.Context()))
	for _, want := range []string{`the rule "mcp__s__othre" matches no known tool: did you mean mcp__s__other?`,
		`the rule "mcp__gone" matches no known tool`} {
		if !strings.Contains(warnings, want) || !strings.Contains(findings, want) {
			t.Errorf("%q is missing in %s, or in %s", want, warnings, findings)
		}
	}
	if strings.Contains(warnings, `the rule "mcp__s__other"`) {
		t.Errorf("a rule on a known tool: %s", warnings)
	}
}
