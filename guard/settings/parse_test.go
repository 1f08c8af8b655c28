package settings

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func parseText(t testing.TB, kind Kind, text string) (*layer, error) {
	t.Helper()
	return parse(source{kind: kind, file: "f.json", root: "/r"}, newKeySet(), []byte(text))
}

func TestParsePositions(t *testing.T) {
	l, err := parseText(t, Project, "\xef\xbb\xbf// a comment\n{\n  /* more\n  */ \"permissions\": {\n    \"deny\": [\"a\",\n\n\"b\", \"\\u0063\", // \"no\"\n],\n  },\r\n \"env\": {\"X\": \"1\"}, \"gate\": {\"parallel\": 4},\n} // end")
	if err != nil {
		t.Fatal(err)
	}
	at := func(text string, line int) Entry {
		return Entry{Text: text, Kind: Project, File: "f.json", Line: line, Root: "/r"}
	}
	want := []Entry{at("a", 5), at("b", 7), at("c", 7)}
	if diff := cmp.Diff(want, l.lists[keyDeny]); diff != "" {
		t.Errorf("deny: %s", diff)
	}
	if l.env["X"] != at("1", 10) || l.scalars["gate.parallel"] != at("4", 10) {
		t.Errorf("env %+v scalars %+v", l.env, l.scalars)
	}
	if len(l.warnings) != 0 {
		t.Errorf("warnings %v", l.warnings)
	}
}

func TestParseErrors(t *testing.T) {
	for _, tt := range []struct {
		name, text   string
		line, column int
		want         string
	}{
		{"missing comma", "{\n  \"a\": 1\n  \"b\": 2\n}", 3, 3, "after object value"},
		{"cut off", "{\n  \"permissions\": {\"deny\": [\"x\"", 2, 31, "unexpected EOF"},
		{"two values", "{}\n{}", 2, 1, "after top-level value"},
		{"a list", "\n  []", 2, 3, "a JSON object is expected"},
		{"a bare word", "hello", 1, 1, "invalid literal"},
		{"not UTF-8", "{\n \"env\": {\"A\": \"\xff\"}}", 2, 16, "not UTF-8"},
		{"deep", "{\"a\":" + strings.Repeat("[", 100000), 1, 5 + maxDepth, "levels of nesting"},
		{"unclosed string", "{\"a", 1, 4, ""},
		{"unclosed comment", "{} /*", 1, 4, ""},
		{"single quotes", "{'a': 1}", 1, 2, ""},
	} {
		_, err := parseText(t, User, tt.text)
		var p *parseError
		if !errors.As(err, &p) {
			t.Errorf("%s: got %v", tt.name, err)
			continue
		}
		if p.File != "f.json" || p.Line != tt.line || p.Column != tt.column || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: got %v, want %d:%d %s", tt.name, err, tt.line, tt.column, tt.want)
		}
	}
}

// Brackets inside strings and comments are no nesting.
func TestParseDepthOfText(t *testing.T) {
	many := strings.Repeat("[{", 100)
	l, err := parseText(t, User, "/*"+many+"*/ {\"permissions\": {\"deny\": [\""+many+"\\\"["+many+"\"]}} //"+many)
	if err != nil || len(l.lists[keyDeny]) != 1 {
		t.Errorf("got %v, %v", l, err)
	}
}

func TestParseWarnings(t *testing.T) {
	for _, tt := range []struct {
		name, text string
		at         string
		want       string
	}{
		{"misspelt key", `{"permisions": {}}`, "1:2", `unknown key "permisions" (did you mean "permissions"?)`},
		{"wrong case", `{"permissions": {"Deny": []}}`, "1:18", `did you mean "permissions.deny"?`},
		{"far from any", `{"xyzzy": 1}`, "1:2", `unknown key "xyzzy"`},
		{"number in a list", `{"permissions": {"allow": [1]}}`, "1:28", `an entry of permissions.allow is the number 1; a string is expected. It is skipped`},
		{"object in a list", `{"permissions": {"deny": [{}]}}`, "1:27", `is an object`},
		{"unknown import", `{"gateway": {"import": ["projekt"]}}`, "1:25", `an entry of gateway.import is "projekt" (did you mean "project"?); one of "project", "user", "local" is expected. The entry is skipped`},
		{"unknown provider", `{"web": {"search": [{"provider": "google"}]}}`, "1:21", `the provider of an entry of web.search is "google"; one of "searxng", "brave", "command" is expected. The entry is skipped`},
		{"no provider", `{"web": {"search": {"url": "http://localhost"}}}`, "1:20", `the provider of an entry of web.search is ""`},
		{"number above the greatest", `{"agent": {"depth": 9}}`, "1:21", `agent.depth is the number 9; a whole number from 1 to 3 is expected. It is skipped`},
		{"number below the least", `{"agent": {"depth": 0}}`, "1:21", `a whole number from 1 to 3 is expected`},
		{"list as object", `{"permissions": {"allow": {}}}`, "1:27", `an array of strings is expected`},
		{"allow as string", `{"permissions": {"allow": "Bash"}}`, "1:27", `permissions.allow is the string "Bash"; an array of strings is expected. It is skipped`},
		{"deny as string", `{"permissions": {"deny": "Bash"}}`, "1:26", `taken as the only entry`},
		{"empty entry", `{"permissions": {"deny": [" "]}}`, "1:27", `is empty`},
		{"group as list", `{"permissions": []}`, "1:17", `permissions is an array; an object is expected`},
		{"switch as string", `{"sandbox": {"enabled": "false"}}`, "1:25", `sandbox.enabled is the string "false"; true or false is expected`},
		{"mode", `{"permissions": {"defaultMode": "acceptedits"}}`, "1:33", `(did you mean "acceptEdits"?)`},
		{"mode as number", `{"permissions": {"defaultMode": 3}}`, "1:33", `is the number 3; one of "plan"`},
		{"duration as number", `{"bash": {"maxTimeout": 50}}`, "1:25", `a duration such as "50s"`},
		{"negative duration", `{"bash": {"maxTimeout": "-1s"}}`, "1:25", `a duration`},
		{"no calls at once", `{"gate": {"parallel": 0}}`, "1:23", `a whole number above 0`},
		{"half a call", `{"gate": {"parallel": 1.5}}`, "1:23", `is the number 1.5`},
		{"managed key", `{"allowManagedHooksOnly": true}`, "1:27", `counts in managed settings only`},
		{"twice", `{"env": {}, "env": {}}`, "1:13", `"env" stands here twice`},
		{"unsupported", `{"sandbox": {"network": {"httpProxyPort": 1}}}`, "1:26", `does not apply`},
		{"path of bubblewrap", `{"sandbox": {"bwrapPath": "/usr/bin/bwrap"}}`, "1:14", `"sandbox.bwrapPath" names bubblewrap, which toolhost no longer uses`},
		{"backend of old", `{"sandbox": {"backend": "Bubblewrap"}}`, "1:14", `names bubblewrap`},
		{"backends of old", `{"sandbox": {"backends": ["bwrap", "landlock"]}}`, "1:14", `Remove it`},
		{"sandbox of another program", `{"sandbox": "bwrap"}`, "1:2", `names bubblewrap`},
		{"comment", `{"sandbox": {"far": 1 /* bwrap */}}`, "1:14", `unknown key "sandbox.far"`},
		{"credential without mode", `{"sandbox": {"credentials": {"files": [{"path": "x"}]}}}`, "1:40", `has the mode ""; "deny" and "mask" are known here. It is denied`},
		{"credential as string", `{"sandbox": {"credentials": {"files": ["x"]}}}`, "1:40", `an object such as {"path": …, "mode": "deny"} is expected. It is denied`},
		{"credential without path", `{"sandbox": {"credentials": {"files": [{"mode": "deny"}]}}}`, "1:40", `is an object; an object such as`},
		{"env list", `{"env": []}`, "1:9", `an object of strings`},
		{"env number", `{"env": {"A": 1}}`, "1:15", `env.A is the number 1`},
		{"env name", `{"env": {"A=B": "1"}}`, "1:10", `cannot be an environment variable`},
		{"hooks as list", `{"hooks": []}`, "1:11", `an object of events`},
		{"hook event", `{"hooks": {"PreTooluse": []}}`, "1:12", `did you mean "PreToolUse"?`},
		{"hook groups", `{"hooks": {"PreToolUse": {}}}`, "1:26", `an array of {matcher, hooks}`},
		{"hook group", `{"hooks": {"PreToolUse": ["x"]}}`, "1:27", `an object {matcher, hooks}`},
		{"hook group key", `{"hooks": {"PreToolUse": [{"macher": "x"}]}}`, "1:28", `did you mean "matcher"?`},
		{"hook list", `{"hooks": {"PreToolUse": [{"hooks": "x"}]}}`, "1:37", `an array`},
		{"hook", `{"hooks": {"PreToolUse": [{"hooks": ["x"]}]}}`, "1:38", `an object {type, command}`},
		{"hook matcher", `{"hooks": {"PreToolUse": [{"matcher": 1, "hooks": [{"type": "command", "command": "x"}]}]}}`, "1:39", `apply to every tool`},
		{"hook without command", `{"hooks": {"PreToolUse": [{"hooks": [{"type": "command"}]}]}}`, "1:38", `names no command`},
		{"hook without url", `{"hooks": {"PreToolUse": [{"hooks": [{"type": "http"}]}]}}`, "1:38", `names no url`},
		{"hook type", `{"hooks": {"PreToolUse": [{"hooks": [{"type": "comand"}]}]}}`, "1:38", `the type of a hook is "comand"`},
		{"hook of a client", `{"hooks": {"PreToolUse": [{"hooks": [{"type": "prompt", "prompt": "?"}]}]}}`, "1:38", `does not run hooks of type "prompt"`},
		{"hook timeout", `{"hooks": {"PreToolUse": [{"hooks": [{"type": "command", "command": "x", "timeout": -1}]}]}}`, "1:85", `a number of seconds above 0`},
		{"hook field", `{"hooks": {"PreToolUse": [{"hooks": [{"type": "command", "command": "x", "tmeout": 1}]}]}}`, "1:74", `did you mean "timeout"?`},
		{"hook field type", `{"hooks": {"PreToolUse": [{"hooks": [{"type": "http", "url": 1}]}]}}`, "1:62", `the url of a hook is the number 1`},
		{"hook headers", `{"hooks": {"PreToolUse": [{"hooks": [{"type": "http", "url": "u", "headers": {"A": 1}}]}]}}`, "1:84", `header A of a hook`},
		{"empty file", " \n", "0:0", "the file is empty"},
	} {
		l, err := parseText(t, User, tt.text)
		if err != nil || len(l.warnings) == 0 {
			t.Errorf("%s: got %v, %v", tt.name, l, err)
			continue
		}
		w := l.warnings[0]
		if got := fmt.Sprintf("%d:%d", w.Line, w.Column); got != tt.at || !strings.Contains(w.Text, tt.want) {
			t.Errorf("%s: got %s %s\nwant %s %s", tt.name, got, w.Text, tt.at, tt.want)
		}
	}
}

// One bad entry leaves the rest in force.
func TestParseKeepsTheRest(t *testing.T) {
	l, err := parseText(t, User, `{"nonsense": 1, "permissions": {"deny": ["a", 1, null, ["x"], "b"], "allow": 3}, "permissions": {"deny": ["c"]}, "sandbox": null}`)
	if err != nil || texts(l.lists[keyDeny]) != "a,b,c" {
		t.Errorf("got %v, %v", l, err)
	}
}

func TestParseQuiet(t *testing.T) {
	l, err := parseText(t, User, `{"$schema": "x", "model": "opus", "statusLine": {}, "hooks": {"Stop": [{}], "SessionStart": []},
		"permissions": {"deny": null, "disableAutoMode": "disable"}, "enabledPlugins": {},
		"apiKeyHelper": "x", "preferredNotifChannel": "x", "claudeMdExcludes": ["x"], "sshConfigs": [], "autoUpdates": false, "feedbackSurveyState": {}}`)
	if err != nil || len(l.warnings) != 0 {
		t.Errorf("got %v, %v", l.warnings, err)
	}
}

func TestParseHooks(t *testing.T) {
	l, err := parseText(t, User, `{"hooks": {"PostToolUse": [
		{"matcher": "Edit|Write", "hooks": [{"type": "command", "command": "fmt", "timeout": 2.5, "if": "Edit(*.go)", "async": true, "args": ["-l", "a b"], "shell": "bash"},
			{"type": "http", "url": "http://x", "headers": {"A": "b"}, "allowedEnvVars": ["T"], "timeout": 1e99}]},
		{"hooks": [{"type": "agent"}]}], "onFailure": "allow"}}`)
	if err != nil {
		t.Fatal(err)
	}
	want := map[string][]HookMatcher{PostToolUse: {{Matcher: "Edit|Write",
		Hooks: []Hook{{Type: "command", Command: "fmt", Args: []string{"-l", "a b"}, Shell: "bash", Async: true, Timeout: 2500 * time.Millisecond, If: "Edit(*.go)"},
			{Type: "http", URL: "http://x", Headers: map[string]string{"A": "b"}, AllowedEnvVars: []string{"T"}, Timeout: maxHookTimeout}},
		Source: Entry{Text: "Edit|Write", Kind: User, File: "f.json", Line: 2, Root: "/r"}}}}
	if diff := cmp.Diff(want, l.hooks); diff != "" {
		t.Error(diff)
	}
	if l.scalars["hooks.onFailure"].Text != "allow" {
		t.Errorf("onFailure %+v", l.scalars)
	}
}

// TestExamples: what the schema shows as an example is good, and says something.
func TestExamples(t *testing.T) {
	for _, k := range keys() {
		example, err := json.Marshal(k.example())
		if err != nil {
			t.Fatal(err)
		}
		text := string(example)
		if text == k.def || text == strconv.Quote(k.def) || text == "[]" || text == "0" {
			t.Errorf("%s: the example %s says nothing", k.name, text)
		}
		path := strings.Split(k.name, ".")
		for _, name := range slices.Backward(path) {
			text = fmt.Sprintf("{%q: %s}", name, text)
		}
		kind := User
		if k.from == onlyManaged {
			kind = Managed
		}
		if l, err := parseText(t, kind, text); err != nil || len(l.warnings) > 0 {
			t.Errorf("%s: %v, %v", text, err, l.warnings)
		}
	}
}

func TestSchema(t *testing.T) {
	resolved, err := Schema().Resolve(nil)
	if err != nil {
		t.Fatal(err)
	}
	for text, good := range map[string]bool{
		`{}`: true, everything: true, `{"model": "x"}`: true,
		`{"permissions": {"deny": "x"}}`:                         false,
		`{"permissions": {"defaultMode": "nope"}}`:               false,
		`{"sandbox": {"network": {"allowedDomains": [1]}}}`:      false,
		`{"bash": {"foregroundWindow": 50}}`:                     false,
		`{"bash": {"foregroundWindow": "1m30s"}}`:                true,
		`{"hooks": {"PreToolUse": [{"hooks": [{"type":"x"}]}]}}`: false,
	} {
		var v any
		if err := json.Unmarshal([]byte(text), &v); err != nil {
			t.Fatal(err)
		}
		if err := resolved.Validate(v); (err == nil) != good {
			t.Errorf("%s: %v", text, err)
		}
	}
	if _, err := json.Marshal(Schema()); err != nil {
		t.Error(err)
	}
}

// Each key of the table must reach a field, or be one the merger asks for.
func TestKeysAreWired(t *testing.T) {
	asked := map[string]bool{keyManagedRules: true, keyManagedHooks: true, keyManagedReads: true, keyNoHooks: true,
		keyOnFailure: true}
	for _, k := range keys() {
		if wired := (k.list != nil) != (k.set != nil); wired == asked[k.name] ||
			(k.form == formList) != (k.list != nil) || k.doc == "" {
			t.Errorf("%s: list %v set %v", k.name, k.list != nil, k.set != nil)
		}
	}
}

func FuzzParse(f *testing.F) {
	for _, text := range []string{everything, "{}", "[]", "", "{\"a\": /* */ [1, \"\\ud800\", ] // x", "\xef\xbb\xbf{}",
		`{"permissions": {"deny": "x"}}`} {
		f.Add([]byte(text))
	}
	if text, err := os.ReadFile("testdata/usual.json"); err == nil {
		f.Add(text)
	}
	words := newKeySet()
	f.Fuzz(func(t *testing.T, text []byte) {
		l, err := parse(source{kind: Managed, file: "f"}, words, text)
		if err != nil {
			var p *parseError
			if !errors.As(err, &p) || p.Line < 1 || p.Column < 1 {
				t.Fatalf("error without position: %v", err)
			}
			return
		}
		lines := 1 + strings.Count(string(text), "\n")
		for _, list := range l.lists {
			for _, e := range list {
				if e.Line < 1 || e.Line > lines || e.Text == "" {
					t.Fatalf("%+v in a file of %d lines", e, lines)
				}
			}
		}
		merge(words, []view{{layer: l, free: true}})
	})
}

// Claude Code calls its default mode "manual" too.
func TestModeAlias(t *testing.T) {
	l, err := parseText(t, User, `{"permissions": {"defaultMode": "manual"}}`)
	if err != nil || len(l.warnings) > 0 || l.scalars[keyMode].Text != ModeDefault {
		t.Errorf("got %+v, %v", l, err)
	}
}
