//go:build unix

package hook

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/toolhost/toolhost/guard/settings"
)

func TestMatches(t *testing.T) {
	t.Parallel()
	tests := []struct {
		matcher, tool string
		want          bool
	}{
		{"", "Bash", true},
		{"*", "Bash", true},
		{" * ", "Bash", true},
		{" ", "Bash", true},
		{"|", "Bash", true},
		{"Bash", "Bash", true},
		{"Bash", "BashOutput", false},
		{"Bash", "bash", false},
		{"Edit|Write", "Write", true},
		{"Edit | Write", "Edit", true},
		{"Edit,Write", "Write", true},
		{"Edit, Write|", "Write", true},
		{"Edit|Write", "Read", false},
		{"mcp__a-b__c", "mcp__a-b__c", true},
		{"mcp__a", "mcp__a__b", false},
		{".*", "Bash", true},
		{"Ba.h", "Bash", true},
		{"Ba.h", "TheBashTool", true}, // not anchored
		{"^Ba.h$", "TheBashTool", false},
		{"mcp__a__.*", "mcp__a__b", true},
		{"Bash|E.*", "Edit", true},
		{"mcp__toolhost__.*", "Edit", true},
		{"mcp__.*", "Edit", true},
		{"mcp__toolhost__Edit", "Edit", true},
		{"mcp__toolhost__Edit|Write", "Edit", true},
		{"mcp__toolhost__Edit", "Write", false},
		{"^mcp__toolhost__(Edit|Write)$", "Write", true},
		{"^mcp__toolhost__(Edit|Write)$", "Read", false},
		{"mcp__toolhost", "Bash", true},
		{"mcp__other__.*", "Edit", false},
		{"mcp__other__Edit", "Edit", false},
	}
	for _, test := range tests {
		if got, err := matches(test.matcher, test.tool); err != nil || got != test.want {
			t.Errorf("%q of %s: got %v, %v, want %v", test.matcher, test.tool, got, err, test.want)
		}
	}
	for _, bad := range []string{"(", "^(?!Read)", `\`, "a{2,1}"} {
		if _, err := matches(bad, "Bash"); err == nil {
			t.Errorf("%q: no error", bad)
		}
	}
}

// Hooks that are written alike run once.
func TestOnce(t *testing.T) {
	t.Parallel()
	r := newRunner(t, Config{})
	slow := command("echo x >> ran")
	slow.Timeout = time.Hour
	set := []settings.HookMatcher{at(1, "Bash", command("echo x >> ran"), command("echo x >> ran")), at(2, "*", slow),
		at(3, "Edit", command("echo y >> ran"))}
	r.Pre(t.Context(), set, bashCall("ls"))
	if got, _ := os.ReadFile(filepath.Join(r.dir, "ran")); string(got) != "x\n" {
		t.Errorf("ran %q, want once", got)
	}
	different := []settings.Hook{
		{Type: "http", URL: "http://a/"}, {Type: "http", URL: "http://a/", Headers: map[string]string{"A": "1"}},
		{Type: "http", URL: "http://b/"}, {Type: "command", Command: "http://a/"},
	}
	if got := r.matching([]settings.HookMatcher{at(1, "", different...)}, bashCall("ls")); len(got) != len(different) {
		t.Errorf("chose %d of %d different hooks", len(got), len(different))
	}
}

func TestIf(t *testing.T) {
	t.Parallel()
	conditional := command("exit 2")
	conditional.If = "Bash(git *)"
	set := []settings.HookMatcher{at(1, "", conditional)}
	match := func(rule string, c Call) bool {
		return rule == "Bash(git *)" && string(c.Input) == `{"command":"git push"}`
	}
	for name, test := range map[string]struct {
		cfg  Config
		call Call
		want action
	}{
		"it matches":     {Config{Match: match}, bashCall("git push"), Deny},
		"it does not":    {Config{Match: match}, bashCall("ls"), none},
		"nobody can say": {Config{}, bashCall("ls"), Deny},
	} {
		if got := newRunner(t, test.cfg).Pre(t.Context(), set, test.call); got.Action != test.want {
			t.Errorf("%s: got %v, want %v", name, got.Action, test.want)
		}
	}
}

// Messages are for a model, and hooks may hold secrets.
func TestLabel(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		hook settings.Hook
		want string
	}{
		{command("/opt/guard --key secret"), `"/opt/guard" (f:1)`},
		{command("KEY=secret guard"), "at f:1"},
		{command(" "), "at f:1"},
		{settings.Hook{Type: "http", URL: "https://me:secret@a.test/b?key=secret#secret"}, `"https://a.test/b" (f:1)`},
		{settings.Hook{Type: "http", URL: "http://%zz?secret"}, `"an address that cannot be read" (f:1)`},
	} {
		if got := (chosen{Hook: test.hook, from: "f:1"}).label(); got != test.want {
			t.Errorf("got %s, want %s", got, test.want)
		}
	}
}

func TestIdle(t *testing.T) {
	tools := []string{"Read", "Edit", "Write", "Bash", "Glob", "Grep", "TaskStop"}
	for matcher, want := range map[string]string{
		"": "", "*": "", "Bash": "", "Edit|MultiEdit|Write": "", "mcp__toolhost__Bash": "", "mcp__.*": "", "^(Edit|Write)$": "", "bash|Write": "",
		"Task": "", "TodoWrite": "", "mcp__github__create_issue": "", "ExitPlanMode": "", "MultiEdit": "", "KillShell": "write TaskStop", "^(?!Read)": "",
		"Bash(git commit:*)": `write "matcher": "Bash", and "if": "Bash(git commit:*)"`, "Edit(*.ts)": `"matcher": "Edit"`,
		"bash": "write Bash", "Shell": "write Bash", "run_shell_command": "write Bash", "Bsah": "write Bash", "Wite": "write Write", "edit|wrote": "write Edit",
		"^bash$": "write Bash",
	} {
		if got := Idle(matcher, tools); !strings.Contains(got, want) || (got == "") != (want == "") {
			t.Errorf("%q: %q, want %q", matcher, got, want)
		}
	}
}
