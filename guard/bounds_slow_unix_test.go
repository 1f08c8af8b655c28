//go:build slow && unix

package guard

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestBeyondTheBounds holds that what a line names is judged, or asked for, also where
// it is more than is looked at.
func TestBeyondTheBounds(t *testing.T) {
	long := strings.Repeat("a word ", 1500)
	heredoc := func(name, text string) string {
		return "cat > " + name + " <<'E'\n" + strings.Repeat(text+"\n", 20_000/len(text)) + "E"
	}
	values := func(last string) string { return "a" + strings.Repeat(" b", 5) + words(40) + " " + last }
	_, ws := workspace(t)
	if !testing.Short() {
		manyFiles(t, ws)
	}
	for _, tt := range []struct {
		why     string
		rules   string
		command string
		hold    func(*Config)
		want    Action
	}{
		{"a protected name in a line that is too long", "", "echo '" + long + "' > .envrc", uncontained, Ask},
		{"a line that is too long", "", "echo '" + long + "' > out", contained, Allow},
		{"a long heredoc", "", heredoc("out", "text of .envrc"), contained, Allow},
		{"a long heredoc, denied command", "deny Bash(rm *)", heredoc("out", "text"), contained, Allow},
		{"a long heredoc, denied command behind it", "deny Bash(rm *)", heredoc("out", "text") + "\nrm x", contained, Deny},
		{"a long heredoc, denied command in it", "deny Bash(rm *)", "cat <<E\n" + strings.Repeat("text\n", 4000) + "$(rm x)\nE", contained, Deny},
		{"a long heredoc that a shell runs", "deny Bash(rm *)", "bash <<'E'\n" + strings.Repeat("ls x\n", 4000) + "rm x\nE", contained, Ask},
		{"a long heredoc into a protected file", "", heredoc(".envrc", "text"), uncontained, Ask},
		{"a heredoc that is too long, into a protected file", "", heredoc(".envrc", "text") + strings.Repeat("\n", 300_000), uncontained, Ask},
		{"a protected name behind what cannot be parsed", "", "echo $((a); (b)); echo > .envrc", uncontained, Ask},
		{"a protected name behind a carriage return", "", "echo a;\r\necho > .envrc\r\n", uncontained, Ask},
		{"a protected name behind very many commands", "", strings.Repeat("a;", 1001) + "echo > .envrc", uncontained, Ask},
		{"a protected name behind deep nesting", "", strings.Repeat("timeout 1 ", 20) + "touch .envrc", uncontained, Ask},
		{"what cannot be parsed", "", "echo $((a); (b)); echo > out", contained, Allow},
		{"what cannot be parsed may name what is to be asked for", "ask Read(.env)", "echo $((a); (b)); cat .env", contained, Ask},
		{"what cannot be parsed may make what is denied", "deny Edit(*.lock)", "echo $((a); (b)); touch new.lock", contained, Ask},
		{"what cannot be parsed cannot read what is denied", "deny Read(.env)", "echo $((a); (b)); cat .env", contained, Allow},

		{"after a change of directory that is not known", "", `cd "$(pwd)" && echo > .envrc`, uncontained, Ask},
		{"after such a change, a file to come", "deny Edit(*.lock)", `cd "$PWD"; echo > new.lock`, contained, Deny},
		{"after such a change, a file like any", "", `cd "$PWD"; echo > out`, contained, Allow},

		{"a value among many", "", "for x in " + values(".envrc") + "; do echo > $x; done", uncontained, Ask},
		{"many values", "", "for x in " + values("x.rc") + "; do echo > $x; done", contained, Allow},
		{"a value that read gives", "", "x=a; read x <<< .envrc; echo > $x", uncontained, Ask},
		{"a value that mapfile gives", "", "x=a; mapfile x <<< .envrc; echo > $x", uncontained, Ask},
		{"a value that declare gives", "", `x=a; declare "x=.envrc"; echo > $x`, uncontained, Ask},
		{"a value that an array gives", "", "x=a; x=(.envrc); echo > $x", uncontained, Ask},
		{"a value that a substitution gives", "", "x=a; x=$(echo .envrc); echo > $x", uncontained, Ask},
		{"known values, and a name elsewhere", "", "for x in a b; do echo .envrc > $x; done", contained, Allow},

		{"a protected name among many", "", "rm many/*/*", uncontained, Ask},
		{"a protected name among many, in another directory", "", "rm many/x/*", contained, Allow},
		{"a protected name among many, reading", "", "cat many/*/*", contained, Allow},
		{"a name to be asked for among many", "ask Edit(x1499)", "rm many/x/*", contained, Ask},
		{"a name to be asked for among many, reading", "ask Read(x1499)", "cat many/x/*", contained, Ask},
		{"a denied name among many", "deny Edit(x1499)\nallow Bash", "rm many/x/*", uncontained, Deny},
		{"a protected directory behind a link", "", "rm many/git/*", uncontained, Ask},
		{"a protected name among many that are copied", "", "cp -r many/y/. .", uncontained, Ask},
		{"many that are copied", "", "cp -r many/x/. src", contained, Allow},

		{"a protected name in a large patch", "", "git apply large.patch", uncontained, Ask},
		{"a large patch", "", "git apply plain.patch", contained, Allow},
		{"a denied name in a large patch", "deny Edit(last.txt)", "git apply large.patch", contained, Deny},
		{"a patch that is too large", "", "patch -p1 < huge.patch", contained, Ask},
	} {
		if testing.Short() && (strings.Contains(tt.command, "many/") || strings.Contains(tt.command, ".patch")) {
			continue
		}
		t.Run(tt.why, func(t *testing.T) {
			p := policy(t, ws, testRules(ws, tt.rules+"\n"), tt.hold, func(c *Config) { c.Settings.Sandbox.OnUnavailable = "allow" })
			v := p.Judge(Intent{Tool: "Bash", Effects: []Effect{Exec{Text: tt.command, Dir: resolve(t, p, ".")}}})
			if v.Action != tt.want {
				t.Errorf("%.80q under %q: %v by %q, want %v\n%.300s", tt.command, tt.rules, v.Action, v.Rule, tt.want, v.Error())
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

// manyFiles makes directories and patches with more in them than is looked at.
func manyFiles(t *testing.T, ws string) {
	t.Helper()
	tree(t, ws, "many/y/.vscode/x", "many/y/mcp.json", "many/git -> "+ws+"/.git/hooks")
	for i := range 1500 {
		for _, dir := range []string{"many/x", "many/y", ".git/hooks"} {
			name := filepath.Join(ws, dir, fmt.Sprintf("x%d", i))
			if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(name, nil, 0o644); err != nil {
				t.Fatal(err)
			}
		}
	}
	var b strings.Builder
	for i := range 3000 {
		fmt.Fprintf(&b, "+++ b/x%d\n", i)
	}
	for name, text := range map[string]string{
		"plain.patch": b.String(), "large.patch": b.String() + "+++ b/last.txt\n+++ b/.envrc\n", "huge.patch": strings.Repeat(" \n", 3<<20),
	} {
		if err := os.WriteFile(filepath.Join(ws, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}
