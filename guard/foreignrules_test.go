package guard_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/toolhost/toolhost/guard"
	"github.com/toolhost/toolhost/guard/alias"
	"github.com/toolhost/toolhost/guard/settings"
)

// longTool is a tool whose name is shortened for lists.
const longTool = "mcp__s__a-name-that-is-much-longer-than-what-models-take-in-a-list"

// ruled returns a policy with one rule.
func ruled(t *testing.T, list, rule string) *guard.Policy {
	t.Helper()
	set, entry := &settings.Settings{DefaultMode: settings.ModeDefault}, []settings.Entry{{Text: rule,
		File: "f", Line: 1}}
	switch list {
	case "deny":
		set.Deny = entry
	case "ask":
		set.Ask = entry
	case "allow":
		set.Allow = entry
	}
	p, err := guard.New(guard.Config{Roots: []string{t.TempDir()}, Settings: set})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func judged(p *guard.Policy, tool string, args map[string]any) guard.Action {
	return p.Judge(guard.Intent{Tool: tool, Args: args,
		Effects: []guard.Effect{guard.CallTool{Server: "s", Tool: "t"}}}).Action
}

// TestForeignNames: a rule that takes rights away holds by each name of a tool, and one that gives them by its own name.
func TestForeignNames(t *testing.T) {
	const prefix = "mcp__toolhost__"
	short := alias.Listed(longTool)
	for _, tt := range []struct {
		rule, tool     string
		denies, allows bool
	}{
		{longTool, longTool, true, true},
		{short, longTool, true, false},
		{prefix + longTool, longTool, true, false},
		{prefix + short, longTool, true, false},
		{short[:20] + "*" + short[len(short)-4:], longTool, true, false},
		{"mcp__s", longTool, true, true},
		{"mcp__s__", longTool, true, false},
		{"mcp__s__*", longTool, true, true},
		{prefix + "mcp__s", longTool, true, false},
		{prefix + "mcp__s__", longTool, true, false},
		{prefix + "mcp__s__*", longTool, true, false},
		{prefix + "mcp__*", longTool, true, false},
		{prefix + "*in-a-list", longTool, true, false},
		{"mcp__toolhost", longTool, true, false},
		{prefix + "*", longTool, true, false},
		{"mcp__*__a-name*", longTool, true, false},
		{"mcp__*", longTool, true, false},
		{"*-in-a-list", longTool, true, false},
		{"mcp__s__a.b/c", "mcp__s__a_b_c", true, true},
		{"mcp__my.server__x", "mcp__my_server__x", true, true},
		{"mcp__s", "mcp__s2__a", false, false},
		{"mcp__s__a", "mcp__s__ab", false, false},
		{"mcp__s__a", "mcp__t__a", false, false},
		{prefix + "mcp__s__a", "mcp__s__b", false, false},
		{prefix + "Read", "mcp__s__Read", false, false},
		{"Read", "mcp__s__Read", false, false},
		{longTool[:42], longTool, false, false},
	} {
		for _, list := range []string{"deny", "ask", "allow"} {
			p, want := ruled(t, list, tt.rule), guard.Ask
			switch {
			case list == "deny" && tt.denies:
				want = guard.Deny
			case list == "allow" && tt.allows:
				want = guard.Allow
			}
			if got := judged(p, tt.tool, nil); got != want {
				t.Errorf("%s %s: %s is %v, want %v", list, tt.rule, tt.tool, got, want)
			}
			if on, _ := p.ToolEnabled(tt.tool); on == (list == "deny" && tt.denies) {
				t.Errorf("%s %s: %s is listed: %v", list, tt.rule, tt.tool, on)
			}
		}
	}
}

// TestForeignParameters: a rule on a parameter matches each value below it, at any depth, whatever its key looks like.
func TestForeignParameters(t *testing.T) {
	for _, tt := range []struct {
		rule, args string
		denies     bool
	}{
		{"mcp__s__t(path:*secret*)", `{"path":"a/secret/b"}`, true},
		{"mcp__s__t(path:*secret*)", `{"path":"a"}`, false},
		{"mcp__s__t(path:*secret*)", `{"PATH":"secret"}`, true},
		{"mcp__s__t(Path:*secret*)", `{"path":"secret"}`, true},
		{"mcp__s__t(masks:x)", `{"ma\u017fks":"x"}`, true},
		{"mcp__s__t(path:*secret*)", `{"path":["a","secret"]}`, true},
		{"mcp__s__t(path:*secret*)", `{"path":[["a"],[["secret"]]]}`, true},
		{"mcp__s__t(path:*secret*)", `{"path":{"to":{"file":"secret"}}}`, true},
		{"mcp__s__t(path:*secret*)", `{"options":{"path":"secret"}}`, true},
		{"mcp__s__t(path:*secret*)", `{"files":[{"path":"a"},{"Path":"secret"}]}`, true},
		{"mcp__s__t(path:*secret*)", `{"name":"secret","files":[{"path":"a"}]}`, false},
		{"mcp__s__t(path:*secret*)", `{"path":"a","Path":"secret"}`, true},
		{"mcp__s__t(path:*secret*)", `{"path":"line\nsecret\nline"}`, true},
		{"mcp__s__t(path:*)", `{"path":""}`, true},
		{"mcp__s__t(path:*)", `{"path":null}`, true},
		{"mcp__s__t(path:*)", `{"path":[]}`, true},
		{"mcp__s__t(path:*)", `{"path":{}}`, true},
		{"mcp__s__t(path:**)", `{"Path":{}}`, true},
		{"mcp__s__t(path:*)", `{"other":"path"}`, false},
		{"mcp__s__t(force:true)", `{"force":true}`, true},
		{"mcp__s__t(force:true)", `{"force":false}`, false},
		{"mcp__s__t(force:true)", `{"force":[false,true]}`, true},
		{"mcp__s__t(n:null)", `{"n":null}`, true},
		{"mcp__s__t(n:100)", `{"n":1e2}`, true},
		{"mcp__s__t(n:100)", `{"n":100.0}`, true},
		{"mcp__s__t(n:100)", `{"n":"100"}`, true},
		{"mcp__s__t(n:9007199254740993)", `{"n":9007199254740993}`, true},
		{"mcp__s__t(n:100)", `{"n":1000}`, false},
		{"mcp__s__t($filter.by:x)", `{"$filter.by":"x"}`, true},
		{"mcp__s(path:x)", `{"path":"x"}`, true},
		{"mcp__s__*(path:x)", `{"path":"x"}`, true},
		{"mcp__toolhost__mcp__s__t(path:x)", `{"path":"x"}`, true},
		{"mcp__toolhost__mcp__s__*(path:x)", `{"path":"x"}`, true},
		{"mcp__toolhost__mcp__s(path:x)", `{"path":"x"}`, true},
		{"*(path:x)", `{"path":["x"]}`, true},
		{"*t(path:x)", `{"path":["x"]}`, true},
		{"mcp__other__t(path:x)", `{"path":"x"}`, false},
		{"mcp__s__other(path:x)", `{"path":"x"}`, false},
	} {
		d := json.NewDecoder(strings.NewReader(tt.args))
		d.UseNumber()
		var args map[string]any
		if err := d.Decode(&args); err != nil {
			t.Fatal(err)
		}
		want := guard.Ask
		if tt.denies {
			want = guard.Deny
		}
		if got := judged(ruled(t, "deny", tt.rule), "mcp__s__t", args); got != want {
			t.Errorf("deny %s: %s is %v, want %v", tt.rule, tt.args, got, want)
		}
		if got := judged(ruled(t, "allow", tt.rule), "mcp__s__t", args); got != guard.Ask {
			t.Errorf("allow %s: %s is %v", tt.rule, tt.args, got)
		}
	}
}

// TestForeignRuleWarnings: a rule that can match nothing says so.
func TestForeignRuleWarnings(t *testing.T) {
	for rule, want := range map[string]string{
		"mcp__s__t": "", "mcp__s": "", "mcp__s__*": "", "mcp__toolhost__mcp__s__t": "", "mcp__toolhost__Read": "", "mcp__toolhost__*": "", "mcp__s__t(path:x)": "",
		"mcp__s__t(x)": "names no parameter", "mcp__s__t(:x)": "names no parameter", "mcp__a, mcp__b": "is not a rule", "mcp__s__t(path:)": "names no parameter",
	} {
		if got := strings.Join(ruled(t, "deny", rule).Warnings(), "\n"); (got == "") != (want == "") ||
			!strings.Contains(got, want) {
			t.Errorf("deny %s: %q, want %q", rule, got, want)
		}
	}
	if got := strings.Join(ruled(t, "allow", "mcp__s__t(path:x)").Warnings(), "\n"); !strings.Contains(got,
		"allows nothing") {
		t.Errorf("an allow on a parameter: %q", got)
	}
}

// TestIdleRules: a rule that matches no known tool gets a warning, unless the tools of its server are not known.
func TestIdleRules(t *testing.T) {
	tools, served := []string{"mcp__s__get", longTool, "mcp__s__", "mcp__late__"}, []string{"s", "late"}
	for _, tt := range []struct{ list, rule, want string }{
		{"deny", "mcp__s__get", ""}, {"deny", "mcp__s", ""}, {"deny", "mcp__s__*", ""}, {"deny", "mcp__s__g*", ""}, {"deny", "mcp__toolhost__mcp__s__get", ""},
		{"deny", alias.Listed(longTool), ""}, {"allow", "mcp__s__get", ""}, {"deny", "mcp__toolhost__Read", ""}, {"deny", "Read", ""}, {"deny", "mcp__toolhost", ""}, {"deny", "mcp__toolhost__*", ""},
		{"deny", "mcp__late__x", ""}, {"deny", "mcp__*__x", ""},
		{"deny", "mcp__s__get(path:x)", ""},
		{"deny", "mcp__s__got", "did you mean mcp__s__get?"}, {"deny", "mcp__S__get", "no server \"S\" is configured"}, {"deny", "mcp__s__set*", "matches no known tool"}, {"deny", "mcp__s__set(path:x)", "matches no known tool"},
		{"ask", "mcp__gone__get", "no server \"gone\" is configured"}, {"deny", "mcp__toolhost__mcp__s__set", "matches no known tool"}, {"deny", "mcp__toolhost__mcp__gone", "no server"},
		{"allow", alias.Listed(longTool), "needs the full name, " + longTool}, {"allow", "mcp__toolhost__mcp__s__get", "did you mean mcp__s__get?"},
	} {
		got := strings.Join(ruled(t, tt.list, tt.rule).IdleRules(tools, served,
			func(s string) bool { return s == "late" }), "\n")
		if (got == "") != (tt.want == "") || !strings.Contains(got, tt.want) || got != "" &&
			!strings.HasPrefix(got, "f:1: permissions."+tt.list) {
			t.Errorf("%s %s: %q, want %q", tt.list, tt.rule, got, tt.want)
		}
	}
	p, err := guard.New(guard.Config{Roots: []string{t.TempDir()}, Settings: &settings.Settings{
		Deny: []settings.Entry{{Text: "mcp__github__delete", Client: true}, {Text: "mcp__lat__x", Client: true},
			{Text: "mcp__s__gett", Client: true}},
	}})
	if err != nil {
		t.Fatal(err)
	}
	if got := p.IdleRules(tools, served, func(string) bool { return false }); len(got) != 2 ||
		strings.Contains(strings.Join(got, ""), "github") {
		t.Errorf("rules for servers of Claude Code itself: %q", got)
	}
}
