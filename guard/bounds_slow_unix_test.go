//go:build slow && unix

package guard

import (
	"fmt"
	"strings"
	"testing"
)

// TestBeyondTheBounds holds that what a line names is judged, or asked for where no sandbox holds the rule, also where
// it is more than is looked at.
func TestBeyondTheBounds(t *testing.T) {
	long := strings.Repeat("a word ", 1500)
	heredoc := func(name, text string) string {
		return "cat > " + name + " <<'E'\n" + strings.Repeat(text+"\n", 20_000/len(text)) + "E"
	}
	values := func(last string) string { return "a" + strings.Repeat(" b", 5) + words(40) + " " + last }
	_, ws := workspace(t)
	for _, tt := range []struct {
		why     string
		rules   string
		command string
		hold    func(*Config)
		want    Action
	}{
		{"a line that is too long", "", "echo '" + long + "' > out", contained, Allow},
		{"a long heredoc", "", heredoc("out", "text of .envrc"), contained, Allow},
		{"a long heredoc, denied command", "deny Bash(rm *)", heredoc("out", "text"), contained, Allow},
		{"a long heredoc, denied command behind it", "deny Bash(rm *)", heredoc("out", "text") + "\nrm x", contained, Deny},
		{"a long heredoc, denied command in it", "deny Bash(rm *)", "cat <<E\n" + strings.Repeat("text\n", 4000) + "$(rm x)\nE", contained, Deny},
		{"a long heredoc that a shell runs", "deny Bash(rm *)", "bash <<'E'\n" + strings.Repeat("ls x\n", 4000) + "rm x\nE", contained, Ask},
		{"a long heredoc into a protected file", "", heredoc(".envrc", "text"), uncontained, Ask},
		{"what cannot be parsed", "", "echo $((a); (b)); echo > out", contained, Allow},
		{"what cannot be parsed cannot read what is to be asked for", "ask Read(.env)", "echo $((a); (b)); cat .env", contained, Allow},
		{"what cannot be parsed may make what is denied", "deny Edit(*.lock)", "echo $((a); (b)); touch new.lock", contained, Ask},
		{"what cannot be parsed cannot read what is denied", "deny Read(.env)", "echo $((a); (b)); cat .env", contained, Allow},

		{"after a change of directory that is not known", "", `cd "$(pwd)" && echo > .envrc`, uncontained, Ask},
		{"after such a change, a file to come", "deny Edit(*.lock)", `cd "$PWD"; echo > new.lock`, contained, Deny},
		{"after such a change, a file like any", "", `cd "$PWD"; echo > out`, contained, Allow},

		{"many values", "", "for x in " + values("x.rc") + "; do echo > $x; done", contained, Allow},
		{"known values, and a name elsewhere", "", "for x in a b; do echo .envrc > $x; done", contained, Allow},
	} {
		t.Run(tt.why, func(t *testing.T) {
			p := policy(t, ws, testRules(ws, tt.rules+"\n"), tt.hold,
				func(c *Config) { c.Settings.Sandbox.OnUnavailable = "allow" })
			v := p.Judge(Intent{Tool: "Bash", Effects: []Effect{Exec{Text: tt.command, Dir: resolve(t, p, ".")}}})
			if v.Action != tt.want {
				t.Errorf("%.80q under %q: %v by %q, want %v\n%.300s", tt.command, tt.rules, v.Action, v.Rule,
					tt.want, v.Error())
			}
		})
	}
}

func words(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, " w%d", i)
	}
	return b.String()
}
