//go:build unix

package guard

import (
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/toolhost/toolhost/guard/settings"
)

// rows returns the lines of a file of testdata; a line in double quotes is a Go string.
func rows(t *testing.T, name string) (lines []string) {
	t.Helper()
	raw, err := os.ReadFile("testdata/" + name)
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(raw)) {
		line = strings.TrimSuffix(line, "\n")
		if line == "" || line[0] == '#' {
			continue
		}
		if text, err := strconv.Unquote(line); line[0] == '"' && err == nil {
			line = text
		}
		lines = append(lines, line)
	}
	return lines
}

// gated has programs judged when they start.
func gated(c *Config) { c.ExecGate = func() error { return nil } }

// TestHonest holds that no command is refused or asked about which no rule covers, where
// programs are judged when they start.
func TestHonest(t *testing.T) {
	lines := rows(t, "honest.txt")
	if len(lines) < 150 {
		t.Fatalf("only %d commands", len(lines))
	}
	_, ws := workspace(t)
	tree(t, ws, "script.sh", "env.sh", "x.py", "out/x")
	commands := "deny Bash(rm:*)\ndeny Bash(curl:*)\ndeny Bash(git push:*)\n"
	for _, tt := range []struct {
		name, rules string
		contain     func(*Config)
		choice      bool
		most        int // that are asked, per cent
	}{
		{"contained", commands + "deny Read(.env)\ndeny Read(secrets/**)", contained, false, 0},
		{"sandbox off by choice, commands", commands, uncontained, true, 0},
		{"sandbox off by choice, files", "deny Read(.env)\ndeny Read(secrets/**)", uncontained, true, 3},
	} {
		set := testRules(ws, "mode acceptEdits\n"+tt.rules)
		set.Sandbox.OffByChoice, set.Sandbox.OnUnavailable = tt.choice, settings.OnFailureAsk
		p := policy(t, ws, set, tt.contain, gated)
		refused := 0
		for _, line := range lines {
			if v := p.Judge(Intent{Tool: "Bash", Effects: []Effect{Exec{Text: line, Dir: resolve(t, p, ".")}}}); v.Action != Allow {
				refused++
				t.Logf("%s: %s: %v", tt.name, line, v.Error())
			}
		}
		if refused*100 > tt.most*len(lines) {
			t.Errorf("%s: %d of %d are refused or asked about", tt.name, refused, len(lines))
		}
	}
}

// TestHeldWhenProgramsStart holds that the lines which the gate is to hold are neither refused nor
// passed as known: they run, and the verdict says that rules are held when programs start.
func TestHeldWhenProgramsStart(t *testing.T) {
	_, ws := workspace(t)
	set := testRules(ws, "mode acceptEdits\ndeny Bash(rm:*)")
	p := policy(t, ws, set, contained, gated)
	for _, line := range rows(t, "held.txt") {
		v := p.Judge(Intent{Tool: "Bash", Effects: []Effect{Exec{Text: line, Dir: resolve(t, p, ".")}}})
		if v.Action != Allow && v.Rule != "Bash(rm:*)" {
			t.Errorf("%s: %v", line, v.Error())
		}
	}
}

// TestRedirectedToScratch holds that a rule for a command covers its redirection to a temporary file where the user turned
// the sandbox off, and that no command writes one without a rule.
func TestRedirectedToScratch(t *testing.T) {
	_, ws := workspace(t)
	scratch := "/var/tmp" // where no root lies
	if strings.HasPrefix(ws, scratch) {
		scratch = "/tmp"
	}
	for _, tt := range []struct {
		rules, command string
		want           Action
	}{
		{"mode dontAsk\nallow Bash(echo:*)", "echo x > $SCRATCH/x", Allow},
		{"mode dontAsk\nallow Bash(cat:*)", "cat > $SCRATCH/x << EOF\nx\nEOF", Allow},
		{"mode dontAsk\nallow Bash(make:*)", "make > $SCRATCH/log 2>&1; tail $SCRATCH/log", Deny},
		{"mode dontAsk\nallow Bash(make:*)\nallow Bash(tail:*)", "make &> $SCRATCH/log; tail $SCRATCH/log", Allow},
		{"mode default\nallow Bash(make:*)", "make > $SCRATCH/x/.git/config", Ask},
		{"mode default\ndeny Edit(/" + scratch + "/no)\nallow Bash(make:*)", "make > $SCRATCH/no", Deny},
		{"mode dontAsk\nallow Bash(make:*)", "make > x", Deny}, {"mode dontAsk\nallow Bash(make:*)", "make > /opt/x", Deny},
		{"mode dontAsk", "echo x > $SCRATCH/x", Deny}, {"mode default", "echo x > $SCRATCH/x", Ask}, {"mode plan", "echo x > $SCRATCH/x", Deny},
	} {
		set := testRules(ws, tt.rules)
		set.Sandbox.OffByChoice, set.Sandbox.OnUnavailable = true, settings.OnFailureAllow
		p := policy(t, ws, set, uncontained)
		v := p.Judge(Intent{Tool: "Bash", Effects: []Effect{Exec{Text: strings.ReplaceAll(tt.command, "$SCRATCH", scratch), Dir: resolve(t, p, ".")}}})
		if v.Action != tt.want {
			t.Errorf("%q, %s: %v, want %v\n%s", tt.rules, tt.command, v.Action, tt.want, v.Error())
		}
	}
}

// TestSandboxOffByChoice holds what still stands where the user turned the sandbox off: names in the
// text, what is downloaded and run, and the refusal where a workspace turned it off.
func TestSandboxOffByChoice(t *testing.T) {
	_, ws := workspace(t)
	scratch := "/var/tmp" // where no root lies
	if strings.HasPrefix(ws, scratch) {
		scratch = "/tmp"
	}
	for _, tt := range []struct {
		command string
		choice  bool
		want    Action
	}{
		{"make", true, Allow}, {"cat .env", true, Deny}, {"cp README.md secrets/x", true, Deny}, {"foo --file=.env", true, Allow}, {"cat < .env", true, Deny},
		{"echo x > $SCRATCH/x", true, Allow}, {"cp README.md $SCRATCH/x && mkdir -p $SCRATCH/y", true, Allow}, {"touch ../x", true, Ask},
		{"rm -rf $SCRATCH", true, Ask},
		{"echo x > /opt/x", true, Ask}, {"cp README.md /opt/x", true, Ask}, {"rm -rf /tmp", true, Ask},
		{"make", false, Ask}, {"cat .env", false, Deny}, {"touch $SCRATCH/x", false, Ask},
	} {
		set := testRules(ws, "mode acceptEdits\ndeny Read(.env)\ndeny Edit(secrets/**)")
		set.Sandbox.OffByChoice, set.Sandbox.OnUnavailable = tt.choice, settings.OnFailureAsk
		p := policy(t, ws, set, uncontained)
		if v := p.Judge(Intent{Tool: "Bash", Effects: []Effect{Exec{Text: strings.ReplaceAll(tt.command, "$SCRATCH", scratch), Dir: resolve(t, p, ".")}}}); v.Action != tt.want {
			t.Errorf("%s, by choice %v: %v, want %v\n%s", tt.command, tt.choice, v.Action, tt.want, v.Error())
		}
		if warned := len(p.Warnings()) > 0; warned != tt.choice {
			t.Errorf("by choice %v: warned %v", tt.choice, warned)
		}
	}
}
