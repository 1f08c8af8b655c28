//go:build unix

package hook

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"github.com/toolhost/toolhost/guard/hostprogram"
	"github.com/toolhost/toolhost/guard/settings"
	"github.com/toolhost/toolhost/integration/testenv"
)

func TestMain(m *testing.M) {
	testenv.Plain()
	goleak.VerifyTestMain(m)
}

// newRunner returns a Runner whose project is a temporary directory.
func newRunner(t *testing.T, cfg Config) *Runner {
	t.Helper()
	if cfg.Dir == "" {
		cfg.Dir = t.TempDir()
	}
	if cfg.Start == nil {
		cfg.Start = StartPlain
	}
	r := New(cfg)
	transport := &http.Transport{}
	t.Cleanup(transport.CloseIdleConnections)
	r.client.Transport = transport
	t.Cleanup(r.Close)
	return r
}

// at is a group of hooks for a matcher; it stands in line n of "settings.json".
func at(n int, matcher string, hooks ...settings.Hook) settings.HookMatcher {
	return settings.HookMatcher{Matcher: matcher, Hooks: hooks, Source: settings.Entry{File: "settings.json", Line: n}}
}

func command(text string) settings.Hook { return settings.Hook{Type: "command", Command: text} }

// commands are hooks for every tool, in lines 1, 2, …
func commands(texts ...string) []settings.HookMatcher {
	var set []settings.HookMatcher
	for i, text := range texts {
		set = append(set, at(i+1, "", command(text)))
	}
	return set
}

// strict makes the failures of hooks refuse.
func strict(set []settings.HookMatcher) []settings.HookMatcher {
	for _, group := range set {
		for i := range group.Hooks {
			group.Hooks[i].Strict = true
		}
	}
	return set
}

// say is a command that prints a text.
func say(text string) string { return "cat <<'END'\n" + text + "\nEND" }

// permission is an answer to PreToolUse, with more fields if given.
func permission(action string, more ...string) string {
	return fmt.Sprintf(`{"hookSpecificOutput": {"hookEventName": "PreToolUse", "permissionDecision": %q%s}}`, action,
		strings.Join(more, ""))
}

func bashCall(text string) Call {
	input, _ := json.Marshal(map[string]string{"command": text})
	return Call{SessionID: "s1", Cwd: "/work", Mode: settings.ModeDefault, Tool: "Bash", ToolUseID: "t1", Input: input}
}

func TestPre(t *testing.T) {
	t.Parallel()
	rewrite := func(to string) string {
		return say(`{"hookSpecificOutput": {"updatedInput": {"command": "` + to + `"}}}`)
	}
	tests := []struct {
		name  string
		hooks []settings.HookMatcher
		want  Decision // Reason and Context: what they contain
	}{
		{"no hooks", nil, Decision{}},
		{"none matches", []settings.HookMatcher{at(1, "Edit", command("exit 2"))}, Decision{}},
		{"silence", commands("true"), Decision{}},
		{"text", commands("echo all fine"), Decision{}},
		{"a list in text", commands("echo '[hook] fine'"), Decision{}},
		{"an empty object", commands("echo '{}'"), Decision{}},
		{"unknown fields", commands(`echo '{"x": 1, "hookSpecificOutput": {"y": null}}'`), Decision{}},
		{"allow", commands(say(permission("allow"))), Decision{Action: Allow, From: "settings.json:1"}},
		{"ask", commands(say(permission("ask", `, "permissionDecisionReason": "sure?"`))), Decision{Action: Ask, Reason: "sure?", From: "settings.json:1"}},
		{"deny", commands(say(permission("deny", `, "permissionDecisionReason": "never"`))), Decision{Action: Deny, Reason: "never", From: "settings.json:1"}},
		{"deny without a reason", commands(say(permission("deny"))), Decision{Action: Deny, Reason: "refuses this and gives no reason", From: "settings.json:1"}},
		{"exit 2", commands("echo no network >&2; exit 2"), Decision{Action: Deny, Reason: "no network", From: "settings.json:1"}},
		{"exit 2 in silence", commands("exit 2"), Decision{Action: Deny, Reason: `hook "exit" (settings.json:1) refuses`, From: "settings.json:1"}},
		{"what bash cannot read ends with 2", commands("if"), Decision{Action: Deny, Reason: "syntax error", From: "settings.json:1"}},
		{"exit 2 counts, not the output", commands("echo '" + permission("allow") + "'; echo no >&2; exit 2"), Decision{Action: Deny, Reason: "no", From: "settings.json:1"}},
		{"approve", commands(`echo '{"decision": "approve", "reason": "ok"}'`), Decision{Action: Allow, From: "settings.json:1"}},
		{"block", commands(`echo '{"decision": "block", "reason": "old way"}'`), Decision{Action: Deny, Reason: "old way", From: "settings.json:1"}},
		{"stop", commands(`echo '{"continue": false, "stopReason": "enough"}'`), Decision{Action: Deny, Reason: "enough", From: "settings.json:1"}},
		{"go on", commands(`echo '{"continue": true, "suppressOutput": true}'`), Decision{}},
		{"the stricter of the old and the new way", commands(`echo '{"decision": "approve", "hookSpecificOutput": {"permissionDecision": "deny", "permissionDecisionReason": "new"}}'`),
			Decision{Action: Deny, Reason: "new", From: "settings.json:1"}},
		{"context", commands(`echo '{"hookSpecificOutput": {"additionalContext": "use make"}}'`), Decision{Context: []string{"use make"}}},
		{"deny before ask before allow", commands(say(permission("allow")), say(permission("deny", `, "permissionDecisionReason": "d"`)), say(permission("ask"))),
			Decision{Action: Deny, Reason: "d", From: "settings.json:2"}},
		{"ask before allow", commands(say(permission("allow")), say(permission("ask", `, "permissionDecisionReason": "a"`))),
			Decision{Action: Ask, Reason: "a", From: "settings.json:2"}},
		{"two reasons", commands("echo one >&2; exit 2", "echo two >&2; exit 2"), Decision{Action: Deny, Reason: "one\ntwo", From: "settings.json:1"}},
		{"a rewritten input", commands(rewrite("ls -l")), Decision{UpdatedInput: json.RawMessage(`{"command":"ls -l"}`), From: "settings.json:1"}},
		{"rewritten alike", commands(rewrite("ls -l"), rewrite("ls -l")+"\n"), Decision{UpdatedInput: json.RawMessage(`{"command":"ls -l"}`), From: "settings.json:1"}},
		{"one leaves it as it is", commands(rewrite("ls"), rewrite("ls -l")), Decision{UpdatedInput: json.RawMessage(`{"command":"ls -l"}`), From: "settings.json:2"}},
		{"rewritten differently", commands(rewrite("ls -l"), rewrite("ls -a")),
			Decision{Action: Deny, Reason: "settings.json:1) and "}},
		{"no rewriting with a deny", commands(rewrite("ls -l"), "echo no >&2; exit 2"), Decision{Action: Deny, Reason: "no", From: "settings.json:2"}},
		{"no opinion", commands(say(permission("defer", `, "permissionDecisionReason": "r", "updatedInput": {"a": 1}`))), Decision{}},
		{"no opinion beside a deny", commands(say(permission("defer")), "echo no >&2; exit 2"), Decision{Action: Deny, Reason: "no", From: "settings.json:2"}},
		{"null is no input", commands(`echo '{"hookSpecificOutput": {"updatedInput": null}}'`), Decision{}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			got := newRunner(t, Config{}).Pre(t.Context(), test.hooks, bashCall("ls"))
			if strings.Contains(got.Reason, test.want.Reason) && test.want.Reason != "" {
				got.Reason = test.want.Reason
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// A hook that fails refuses the call if it is strict, or if its answer means that. Otherwise the call goes on, and its result
// says so.
func TestPreFailure(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name    string
		hooks   []settings.HookMatcher
		want    string
		refuses bool // if it is not strict, too
	}{
		{"another exit code", commands("echo broken >&2; exit 1"), "exit code 1: broken", false},
		{"a failure in silence", commands("exit 3"), "exit code 3, and nothing on standard error", false},
		{"no such command", commands("/no/such/guard"), "exit code 127", false},
		{"a signal", commands("kill -9 $$"), "exit code 137", false},
		{"broken JSON", commands(`echo '{"hookSpecificOutput": {"permissionDecision": "deny"}'`), "begins as JSON but cannot be read: unexpected end", true},
		{"more than JSON", commands(`echo '{} {}'`), "begins as JSON but cannot be read", false},
		{"text before JSON", commands("echo starting; " + say(permission("deny"))), "text before the JSON", true},
		{"a field of the wrong kind", commands(`echo '{"hookSpecificOutput": "deny"}'`), "hookSpecificOutput holds a string", true},
		{"an unknown decision", commands(say(permission("block"))), `permissionDecision is "block"; one of [allow ask deny]`, true},
		{"an unknown old decision", commands(`echo '{"decision": "deny"}'`), `decision is "deny"; approve or block`, true},
		{"a decision in the wrong place", commands(`echo '{"permissionDecision": "deny"}'`), "belong into hookSpecificOutput", true},
		{"the answer to another event", commands(`echo '{"hookSpecificOutput": {"hookEventName": "PostToolUse"}}'`), `hookEventName is "PostToolUse"`, false},
		{"the form of another event", commands(`echo '{"hookSpecificOutput": {"decision": {"behavior": "deny"}}}'`), "answers a PermissionRequest", true},
		{"an input that is no object", commands(`echo '{"hookSpecificOutput": {"updatedInput": "ls"}}'`), "updatedInput is a string", false},
		{"no command", commands(""), "names no command", false},
		{"an unknown type", []settings.HookMatcher{at(1, "", settings.Hook{Type: "comand"})}, `its type is "comand"`, false},
		{"a bad matcher", []settings.HookMatcher{at(1, "^(?!Read)", command("true"))}, "has no lookaround", false},
		{"too much output", commands(fmt.Sprintf("head -c %d /dev/zero", maxOutput+1)), "longer than 8 MiB", false},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			r := newRunner(t, Config{})
			refused := func(got Decision) bool {
				return got.Action == Deny && got.From == "settings.json:1" && strings.Contains(got.Reason, test.want)
			}
			got := r.Pre(t.Context(), test.hooks, bashCall("ls"))
			switch {
			case test.refuses && !refused(got):
				t.Errorf("got %+v, want a refusal with %q", got, test.want)
			case !test.refuses && (got.Action != none || len(got.Context) != 1 || !strings.Contains(got.Context[0], test.want)):
				t.Errorf("got %+v, want context with %q", got, test.want)
			}
			if got := r.Pre(t.Context(), strict(test.hooks), bashCall("ls")); !refused(got) || !test.refuses &&
				!strings.Contains(got.Reason, "onFailure") {
				t.Errorf("strict: got %+v, want a refusal with %q", got, test.want)
			}
		})
	}
}

func TestRequest(t *testing.T) {
	t.Parallel()
	decision := func(text string) string {
		return `echo '{"hookSpecificOutput": {"hookEventName": "PermissionRequest", "decision": ` + text + `}}'`
	}
	tests := []struct {
		name, hook string
		want       Decision
	}{
		{"silence", "true", Decision{}},
		{"allow", decision(`{"behavior": "allow"}`), Decision{Action: Allow, From: "settings.json:1"}},
		{"allow another input", decision(`{"behavior": "allow", "updatedInput": {"command": "ls -l"}}`),
			Decision{Action: Allow, From: "settings.json:1", UpdatedInput: json.RawMessage(`{"command":"ls -l"}`)}},
		{"deny", decision(`{"behavior": "deny", "message": "not today", "interrupt": true}`), Decision{Action: Deny, Reason: "not today", From: "settings.json:1"}},
		{"exit 2", "echo no >&2; exit 2", Decision{Action: Deny, Reason: "no", From: "settings.json:1"}},
		{"a failure leaves it to the person", "echo oops >&2; exit 1",
			Decision{Context: []string{`The PermissionRequest hook "echo" (settings.json:1) failed: exit code 1: oops`}}},
		{"asking is no answer", decision(`{"behavior": "ask"}`), Decision{Context: []string{"is \"ask\"; one of [allow deny]"}}},
		{"the form of another event", say(permission("allow")), Decision{Context: []string{`hookEventName is "PreToolUse"`}}},
		{"the form of another event, unnamed", `echo '{"hookSpecificOutput": {"permissionDecision": "allow"}}'`, Decision{Context: []string{"answers a PreToolUse"}}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			got := newRunner(t, Config{}).Request(t.Context(), commands(test.hook), bashCall("ls"), "a rule asks")
			if len(got.Context) == 1 && len(test.want.Context) == 1 &&
				strings.Contains(got.Context[0], test.want.Context[0]) {
				got.Context = test.want.Context
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestPost(t *testing.T) {
	t.Parallel()
	replace := func(field, text string) string {
		return `echo '{"hookSpecificOutput": {"` + field + `": "` + text + `"}}'`
	}
	tests := []struct {
		name  string
		hooks []string
		want  After
	}{
		{"silence", []string{"true"}, After{}},
		{"approve", []string{`echo '{"decision": "approve"}'`}, After{}},
		{"block", []string{`echo '{"decision": "block", "reason": "lint"}'`}, After{Block: true, Reason: "lint", From: "settings.json:1"}},
		{"exit 2", []string{"echo vet >&2; exit 2"}, After{Block: true, Reason: "vet", From: "settings.json:1"}},
		{"stop", []string{`echo '{"continue": false, "stopReason": "s"}'`}, After{Block: true, Reason: "s", From: "settings.json:1"}},
		{"two block", []string{"echo a >&2; exit 2", "echo b >&2; exit 2"}, After{Block: true, Reason: "a\nb", From: "settings.json:1"}},
		{"context", []string{`echo '{"hookSpecificOutput": {"additionalContext": "c"}}'`, "true"}, After{Context: []string{"c"}}},
		{"replaced", []string{replace("updatedMCPToolOutput", "***")}, After{Output: json.RawMessage(`"***"`), From: "settings.json:1"}},
		{"replaced, by the newer name", []string{"true", replace("updatedToolOutput", "***")}, After{Output: json.RawMessage(`"***"`), From: "settings.json:2"}},
		{"replaced alike", []string{replace("updatedToolOutput", "***"), replace("updatedMCPToolOutput", "***")}, After{Output: json.RawMessage(`"***"`), From: "settings.json:1"}},
		{"replaced differently", []string{replace("updatedToolOutput", "*"), replace("updatedToolOutput", "**")}, After{Output: json.RawMessage("withheld"), From: "settings.json:1"}},
		{"a failure", []string{"echo oops >&2; exit 1"}, After{Context: []string{`The PostToolUse hook "echo" (settings.json:1) failed: exit code 1: oops`}}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			got := newRunner(t, Config{}).Post(t.Context(), commands(test.hooks...), bashCall("ls"),
				json.RawMessage(`"out"`), time.Second)
			if bytes.Contains(got.Output, []byte("withheld")) {
				got.Output = json.RawMessage("withheld")
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// After a failure and a refusal hooks are told, and what they cannot do is not done.
func TestFailureAndDenied(t *testing.T) {
	t.Parallel()
	r := newRunner(t, Config{})
	got := r.Failure(t.Context(), commands(`echo '{"decision": "block", "reason": "look again", "hookSpecificOutput": {"updatedToolOutput": "x"}}'`), bashCall("ls"), "exit code 1", time.Second)
	if want := (After{Block: true, Reason: "look again", From: "settings.json:1"}); !cmp.Equal(want, got) {
		t.Errorf("got %+v, want %+v", got, want)
	}
	r.Denied(t.Context(), commands("cat > told; exit 2"), bashCall("ls"), "a rule denies")
	text, err := os.ReadFile(r.dir + "/told")
	if err != nil || !strings.Contains(string(text), `"reason":"a rule denies"`) {
		t.Errorf("told %s, %v", text, err)
	}
}

// What goes wrong where no one hears of it is logged.
func TestLog(t *testing.T) {
	t.Parallel()
	var text bytes.Buffer
	r := newRunner(t, Config{Log: slog.New(slog.NewTextHandler(&text, nil))})
	r.Denied(t.Context(), commands("exit 7"), bashCall("ls"), "")
	r.Post(t.Context(), commands(`echo '{"systemMessage": "formatted two files"}'`), bashCall("ls"), nil, 0)
	for _, want := range []string{"exit code 7", "settings.json:1", "formatted two files"} {
		if !strings.Contains(text.String(), want) {
			t.Errorf("the log lacks %q: %s", want, &text)
		}
	}
}

// What a contained hook allows does not count, and one that the host cannot run safely refuses the call.
func TestOutside(t *testing.T) {
	const allow = `echo "{\"hookSpecificOutput\":{\"hookEventName\":\"PreToolUse\",\"permissionDecision\":\"allow\"}}"`
	for _, tt := range []struct {
		name    string
		outside bool
		refused error
		start   error // of a contained hook
		text    string
		want    action
		void    bool
	}{
		{name: "outside", outside: true, text: allow, want: Allow},
		{name: "contained", text: allow, want: none, void: true},
		{name: "contained, refuses", text: "exit 2", want: Deny},
		{name: "not safe", outside: true, refused: errors.New("no sandbox"), text: allow, want: Deny},
		{name: "nothing contains it", start: errors.New("no sandbox"), text: allow, want: Deny},
		{name: "no such program", start: os.ErrNotExist, text: allow, want: none},
	} {
		start := func(ctx context.Context, s Spec) (Process, error) {
			if s.Contained && tt.start != nil {
				return nil, tt.start
			}
			s.Contained = false
			return StartPlain(ctx, s)
		}
		r := New(Config{Dir: t.TempDir(), Start: start,
			Outside: func(settings.Hook) (bool, error) { return tt.outside, tt.refused }})
		set := []settings.HookMatcher{at(1, "", command(tt.text))}
		if d := r.Pre(t.Context(), set, Call{Tool: "Bash"}); d.Action != tt.want || tt.void != (d.Void != "") {
			t.Errorf("%s: got %v (%s), void %q; want %v", tt.name, d.Action, d.Reason, d.Void, tt.want)
		}
		r.Close()
	}
}

// TestPath: hooks outside of the sandbox find no program where commands write, and those of the user all the same.
func TestPath(t *testing.T) {
	root, mine := t.TempDir(), t.TempDir()
	hostprogram.Distrust(root)
	for dir, code := range map[string]string{root: "exit 2", mine: "exit 0"} {
		if err := os.WriteFile(filepath.Join(dir, "notifier"), []byte("#!/bin/sh\n"+code+"\n"), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	r := newRunner(t, Config{Dir: root})
	r.env = environ([]string{"PATH=" + root + ":" + mine + ":/usr/bin:/bin"}, root)
	for _, h := range []settings.Hook{{Command: "notifier"}, {Command: "notifier", Args: []string{"x"}},
		{Command: "sh -c notifier"}} {
		h.Type = "command"
		if d := r.Pre(t.Context(), []settings.HookMatcher{{Hooks: []settings.Hook{h}}},
			bashCall("ls")); d.Action != none {
			t.Errorf("%s %q: got %v (%s)", h.Command, h.Args, d.Action, d.Reason)
		}
	}
}
