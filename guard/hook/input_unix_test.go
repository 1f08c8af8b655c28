//go:build unix

package hook

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"github.com/toolhost/toolhost/guard/settings"
)

// tells runs an event with a hook that keeps its input, and returns the input.
func tells(t *testing.T, run func(*Runner, []settings.HookMatcher)) string {
	t.Helper()
	r := newRunner(t, Config{})
	run(r, commands("cat > told"))
	text, err := os.ReadFile(filepath.Join(r.dir, "told"))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func TestInput(t *testing.T) {
	t.Parallel()
	const common = `"session_id":"s1","transcript_path":"","cwd":"/work","permission_mode":"default",`
	const tool = `"tool_name":"Bash","tool_input":{"command":"ls"},"tool_use_id":"t1"`
	c := bashCall("ls")
	tests := []struct {
		event string
		run   func(*Runner, []settings.HookMatcher)
		more  string
	}{
		{settings.PreToolUse, func(r *Runner, set []settings.HookMatcher) { r.Pre(t.Context(), set, c) }, ""},
		{settings.PermissionRequest, func(r *Runner, set []settings.HookMatcher) { r.Request(t.Context(), set, c, "why") }, `,"reason":"why"`},
		{settings.PermissionDenied, func(r *Runner, set []settings.HookMatcher) { r.Denied(t.Context(), set, c, "why") }, `,"reason":"why"`},
		{settings.PostToolUse, func(r *Runner, set []settings.HookMatcher) {
			r.Post(t.Context(), set, c, json.RawMessage(`{ "b":1, "a":[ 2 ] }`), 1500*time.Microsecond)
		}, `,"tool_response":{"a":[2],"b":1},"duration_ms":1`},
		{settings.PostToolUseFailure, func(r *Runner, set []settings.HookMatcher) {
			r.Failure(t.Context(), set, c, "it broke", 0)
		}, `,"error":"it broke","duration_ms":0`},
	}
	for _, test := range tests {
		want := "{" + common + `"hook_event_name":"` + test.event + `",` + tool + test.more + "}\n"
		if diff := cmp.Diff(want, tells(t, test.run)); diff != "" {
			t.Errorf("%s: %s", test.event, diff)
		}
	}
}

// However a client writes its input, hooks that search the text find the words.
func TestInputIsCanonical(t *testing.T) {
	t.Parallel()
	tests := []struct{ name, raw, want string }{
		{"escapes", `{"command":"\u0072m \u002drf \u003e \u0026"}`, `{"command":"rm -rf > &"}`},
		{"an escaped key", `{"comm\u0061nd":"rm"}`, `{"command":"rm"}`},
		{"a key twice", `{"command":"ls","command":"rm"}`, `{"command":"rm"}`},
		{"space", "{ \"command\" :\n \"rm\" }", `{"command":"rm"}`},
		{"numbers", `{"n":12345678901234567890,"f":1.50}`, `{"f":1.50,"n":12345678901234567890}`},
		{"nothing", "", "{}"},
	}
	for _, test := range tests {
		got := tells(t, func(r *Runner, set []settings.HookMatcher) {
			r.Pre(t.Context(), set, Call{Input: json.RawMessage(test.raw)})
		})
		if !strings.Contains(got, `"tool_input":`+test.want+"}") {
			t.Errorf("%s: got %s, want the input %s", test.name, got, test.want)
		}
	}
}

// An input that hooks would not understand is refused and not shown to them.
func TestBadInput(t *testing.T) {
	t.Parallel()
	for _, raw := range []string{`"{\"command\":\"rm\"}"`, `[]`, `null`, `3`, `true`, `{`, `{} {}`} {
		r := newRunner(t, Config{})
		got := r.Pre(t.Context(), commands("touch ran"), Call{Input: json.RawMessage(raw)})
		if _, err := os.Stat(filepath.Join(r.dir, "ran")); got.Action != Deny || err == nil {
			t.Errorf("%s: got %v, and the hook ran: %v", raw, got, err == nil)
		}
	}
}

// A hook need not read its input.
func TestUnreadInput(t *testing.T) {
	t.Parallel()
	input, _ := json.Marshal(map[string]string{"content": strings.Repeat("x", 1<<20)}) // more than a pipe holds
	got := newRunner(t, Config{}).Pre(t.Context(), commands("true", "head -c 10 > /dev/null"), Call{Input: input})
	if diff := cmp.Diff(Decision{}, got); diff != "" {
		t.Error(diff)
	}
}

func TestEnviron(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	planted := filepath.Join(dir, "planted")
	if err := os.WriteFile(planted, []byte("touch sourced\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	r := newRunner(t, Config{Dir: dir})
	r.env = environ([]string{
		"KEPT=1", "TOOLHOST_TOKEN=secret", "toolhost_token=secret", "BASH_ENV=" + planted, "ENV=" + planted,
		"BASH_FUNC_cat%%=() { touch sourced; }", "SHELLOPTS=xtrace", "CLAUDE_PROJECT_DIR=/elsewhere", "PATH=.:bin::/usr/bin:/bin", "broken",
	}, dir)
	r.Pre(t.Context(), commands("env > vars; pwd -P > cwd"), bashCall("ls"))
	text, err := os.ReadFile(filepath.Join(dir, "vars"))
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for line := range strings.Lines(string(text)) {
		if name, _, _ := strings.Cut(line, "="); !slices.Contains([]string{"PWD", "SHLVL", "_", "OLDPWD"}, name) {
			got = append(got, strings.TrimSpace(line))
		}
	}
	slices.Sort(got)
	if diff := cmp.Diff([]string{"CLAUDE_PROJECT_DIR=" + dir, "KEPT=1", "PATH=/usr/bin:/bin"}, got); diff != "" {
		t.Error(diff)
	}
	if _, err := os.Stat(filepath.Join(dir, "sourced")); err == nil {
		t.Error("the environment had something run before the hook")
	}
	cwd, _ := os.ReadFile(filepath.Join(dir, "cwd"))
	if want, _ := filepath.EvalSymlinks(dir); strings.TrimSpace(string(cwd)) != want {
		t.Errorf("the hook ran in %s, want %s", cwd, want)
	}
}

// A program that an agent puts into the project is not run for one on PATH.
func TestRelativePath(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "jq"), []byte("#!/bin/sh\ntouch planted\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	r := newRunner(t, Config{Dir: dir})
	r.env = environ([]string{"PATH=.::/usr/bin:/bin"}, dir)
	r.Pre(t.Context(), commands("jq -n 1"), bashCall("ls"))
	if _, err := os.Stat(filepath.Join(dir, "planted")); err == nil {
		t.Error("the planted program ran")
	}
}

// TestArguments: a hook with arguments is started without a shell.
func TestArguments(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	script := filepath.Join(dir, "a guard")
	if err := os.WriteFile(script, []byte("#!/bin/sh\ncat >/dev/null; printf '<%s>' \"$@\" >&2; exit 2\n"),
		0o755); err != nil {
		t.Fatal(err)
	}
	for name, tt := range map[string]struct {
		hook settings.Hook
		want string
	}{
		"absolute":    {settings.Hook{Command: script, Args: []string{"a b", "$HOME", ""}}, "<a b><$HOME><>"},
		"in the root": {settings.Hook{Command: "${CLAUDE_PROJECT_DIR}/a guard", Args: []string{"${CLAUDE_PROJECT_DIR}"}}, "<" + dir + ">"},
		"relative":    {settings.Hook{Command: "./a guard", Args: []string{}}, "<>"},
		"on the PATH": {settings.Hook{Command: "sh", Args: []string{"-c", "echo here >&2; exit 2"}}, "here"},
		"nowhere":     {settings.Hook{Command: "no-such-program", Args: []string{}}, "was not found on the PATH"},
		"a shell":     {settings.Hook{Command: "echo here >&2; exit 2", Shell: "bash"}, "here"},
		"no shell":    {settings.Hook{Command: "exit 0", Shell: "fish"}, "bash or powershell is expected"},
	} {
		tt.hook.Type = "command"
		got := newRunner(t, Config{Dir: dir}).Pre(t.Context(), strict([]settings.HookMatcher{at(1, "", tt.hook)}),
			bashCall("ls"))
		if got.Action != Deny || !strings.Contains(got.Reason, tt.want) {
			t.Errorf("%s: got %+v, want %q", name, got, tt.want)
		}
	}
}

// TestAsync: a hook that no one waits for decides nothing, and ends with the runner.
func TestAsync(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	fifo := filepath.Join(dir, "fifo")
	if err := unix.Mkfifo(fifo, 0o600); err != nil {
		t.Fatal(err)
	}
	r := newRunner(t, Config{Dir: dir})
	h := command("echo started >fifo; sleep 600; exit 2")
	h.Async = true
	if got := r.Pre(t.Context(), []settings.HookMatcher{at(1, "", h)}, bashCall("ls")); got.Action != none {
		t.Errorf("got %+v", got)
	}
	if said, err := os.ReadFile(fifo); err != nil || string(said) != "started\n" {
		t.Errorf("%q, %v", said, err)
	}
	r.Close()
}

func TestCannotStart(t *testing.T) {
	t.Parallel()
	for name, cfg := range map[string]Config{
		"no directory":         {Dir: "/no/such/project"},
		"a starter that fails": {Start: func(context.Context, Spec) (Process, error) { return nil, os.ErrPermission }},
	} {
		got := newRunner(t, cfg).Pre(t.Context(), strict(commands("true")), bashCall("ls"))
		if got.Action != Deny || got.Reason == "" {
			t.Errorf("%s: got %+v, want a refusal", name, got)
		}
	}
}
