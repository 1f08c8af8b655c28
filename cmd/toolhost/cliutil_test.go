package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/toolhost/toolhost/cmd/toolhost/internal/clients"
	"github.com/toolhost/toolhost/cmd/toolhost/internal/listen"
	"github.com/toolhost/toolhost/mcpserver/doctor"
)

func TestCommandsAreDocumented(t *testing.T) {
	page, err := os.ReadFile(filepath.Join("docs", "cli.md"))
	if err != nil {
		t.Fatal(err)
	}
	for _, cmd := range command().Commands() {
		if name := cmd.Name(); !cmd.Hidden && !strings.Contains(string(page), "`"+name+" ") &&
			!strings.Contains(string(page), "`"+name+"`") && name != "exit-codes" {
			t.Errorf("docs/cli.md does not tell of %s", name)
		}
	}
	for _, line := range strings.Split(exitCodesTopic().Long, "\n") {
		if code, _, ok := strings.Cut(strings.TrimSpace(line), "  "); ok && len(code) == 1 &&
			!strings.Contains(string(page), "| "+code+" |") {
			t.Errorf("docs/cli.md does not tell of exit code %s", code)
		}
	}
}

func TestExitCode(t *testing.T) {
	for _, tt := range []struct {
		err  error
		want int
	}{
		{nil, 0}, {errReported, 1}, {errors.New("x"), 1}, {errors.Join(errReported, nil), 1},
		{usageError{errors.New("x")}, 2}, {fmt.Errorf("x: %w", usageError{errors.New("x")}), 2}, {errUnparsed, 2},
	} {
		if got := exitCode(tt.err); got != tt.want {
			t.Errorf("%v: %d, want %d", tt.err, got, tt.want)
		}
	}
}

// TestTrustShowsWhatItIs: a rule of a repository that is reviewed cannot hide itself, nor look like another.
func TestTrustShowsWhatItIs(t *testing.T) {
	root, home := t.TempDir(), t.TempDir()
	for _, name := range []string{"HOME", "XDG_CONFIG_HOME", "XDG_STATE_HOME", "LOCALAPPDATA"} {
		t.Setenv(name, home)
	}
	if err := os.Mkdir(filepath.Join(root, ".claude"), 0o755); err != nil {
		t.Fatal(err)
	}
	const hostile = `{"permissions":{"allow":["Bash(curl:*)\u001b[2K\r  nothing","Bash(\u202exe:*)\n  more"]}}`
	if err := os.WriteFile(filepath.Join(root, ".claude", "settings.json"), []byte(hostile), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{{"trust", root}, {"rules", root}} {
		cmd := command()
		var out bytes.Buffer
		cmd.SetOut(&out)
		cmd.SetErr(&out)
		cmd.SetIn(strings.NewReader("n\n"))
		cmd.SetArgs(args)
		if err := cmd.Execute(); (err == nil) != (args[0] == "rules") {
			t.Errorf("%s: %v", args[0], err)
		}
		for _, want := range []string{"Bash(curl:*)␛[2K␍  nothing", "Bash(⟨U+202E⟩xe:*)␊  more"} {
			if !strings.Contains(out.String(), want) {
				t.Errorf("%s does not show %s:\n%q", args[0], want, out.String())
			}
		}
		if strings.ContainsAny(out.String(), "\x1b\r\u202e") {
			t.Errorf("%s steers the terminal: %q", args[0], out.String())
		}
	}
}

func TestByteSize(t *testing.T) {
	for _, tt := range []struct {
		text string
		want int64
		back string
	}{
		{"0", 0, "0"}, {"64MiB", 64 << 20, "64MiB"}, {"64M", 64 << 20, "64MiB"}, {"1g", 1 << 30, "1GiB"}, {"500MB", 500e6, "500000000"},
		{"2 KiB", 2 << 10, "2KiB"}, {"7", 7, "7"}, {"7B", 7, "7"}, {"1500KiB", 1500 << 10, "1536000"},
	} {
		var b byteSize
		if err := b.Set(tt.text); err != nil || int64(b) != tt.want || b.String() != tt.back {
			t.Errorf("%q is %d (%s), %v; want %d (%s)", tt.text, b, b, err, tt.want, tt.back)
		}
		var again byteSize
		if err := again.Set(b.String()); err != nil || again != b {
			t.Errorf("%s is read as %d, want %d", b, again, b)
		}
	}
	for _, text := range []string{"", "x", "-1", "1.5M", "99999999999G", "M", "1TiB"} {
		var b byteSize
		if err := b.Set(text); err == nil {
			t.Errorf("%q is taken for %d", text, b)
		}
	}
}

func TestProgressLine(t *testing.T) {
	p := &progress{tool: "Bash"}
	if got := p.line(1500 * time.Millisecond); got != "Bash 1s" {
		t.Errorf("got %q", got)
	}
	p.told("first\nsec\tond \x1b[31mred\r\n\n")
	if got := p.line(time.Minute); got != "Bash 1m0s  sec ond [31mred" {
		t.Errorf("got %q", got)
	}
	p.told(strings.Repeat("ä", 200))
	if got := []rune(p.line(0)); len(got) != progressWidth || got[len(got)-1] != '…' {
		t.Errorf("got %d characters: %q", len(got), string(got))
	}
	var b bytes.Buffer
	if p := showProgress(&b, "Bash"); p != nil || p.callback() != nil {
		t.Error("progress is shown to what is no terminal")
	}
	(*progress)(nil).stop()
}

func TestFindingsWithoutColour(t *testing.T) {
	var b bytes.Buffer
	err := printFindings(&b, []doctor.Finding{{Level: doctor.LevelWarn, About: "state", Text: "x", Remedy: "y"}})
	if want := "warn  state    x\n               → y\n"; err != nil || b.String() != want {
		t.Errorf("got %q, %v; want %q", b.String(), err, want)
	}
}

func TestRoff(t *testing.T) {
	for text, want := range map[string]string{
		"a-b\\c": `a\-b\ec`, ".TH": `\&.TH`, "x\n.y\n'z": "x\n\\&.y\n\\&'z",
	} {
		if got := roff(text); got != want {
			t.Errorf("%q: got %q, want %q", text, got, want)
		}
	}
}

func FuzzByteSize(f *testing.F) {
	for _, text := range []string{"0", "64MiB", "1 G", "7B", "500MB", "-1K", "9223372036854775807", "9e3"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		var b, again byteSize
		if b.Set(text) != nil {
			return
		}
		if err := again.Set(b.String()); b < 0 || err != nil || again != b {
			t.Errorf("%q is %d, printed as %s, which is read as %d, %v", text, b, b, again, err)
		}
	})
}

// The name of a directory steers no terminal when install tells of a file in it.
func TestReportOfInstall(t *testing.T) {
	const odd = "/we\x1b[2Jird\n/mcp.json"
	var out strings.Builder
	for _, action := range []clients.Action{clients.Added, clients.Unchanged} {
		report := clients.Report{File: odd, Action: action, Diff: "--- " + odd, Backup: odd, Ran: []string{odd}}
		if err := printReport(&out, clients.Client{Title: "C", Next: "go on"}, clients.Request{}, report); err != nil {
			t.Fatal(err)
		}
	}
	if text := out.String(); strings.Contains(text, "\x1b") || !strings.Contains(text, "/we␛[2Jird␊/mcp.json") {
		t.Errorf("%q", text)
	}
}

// A token that was just made is shown at a terminal only.
func TestAnnouncedToken(t *testing.T) {
	made := &callers{token: "SECRET", file: "/state/token", made: true}
	for person, want := range map[bool]string{true: "token SECRET (kept in /state/token)",
		false: "(show it with: cat '/state/token')"} {
		var out strings.Builder
		announce(&out, person, &listen.Listener{URL: "http://localhost"}, made, "/mcp", nil)
		if text := out.String(); !strings.Contains(text, want) || strings.Contains(text, "SECRET") != person {
			t.Errorf("person %v: %s", person, text)
		}
	}
}

// What a server announces steers no terminal, and its line for the shell holds whatever the paths are called.
func TestAnnouncement(t *testing.T) {
	var out strings.Builder
	l := &listen.Listener{URL: "http://localhost", Socket: "/it's/\x1b[2J.sock"}
	announce(&out, true, l, &callers{token: "t", file: "/it's\nhere/token"}, "/mcp",
		[]string{"/ws\nlistening on \x1b[31mhttp://elsewhere"})
	for _, want := range []string{`listening on unix:/it's/␛[2J.sock`, `serving /ws␊listening on ␛[31mhttp://elsewhere`,
		`cat '/it'\''s␊here/token'`} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("%q is not in %s", want, out.String())
		}
	}
	if strings.Contains(out.String(), "\x1b") {
		t.Errorf("%q", out.String())
	}
}

// The rule that is made of a path means this path, whatever stands at its end.
func TestLiterally(t *testing.T) {
	for path, want := range map[string]string{
		"/a/b.txt": "/a/b.txt", `/a*?[b]\`: `/a\*\?\[b]\\`, "/a b ": "/a[ ]b[ ]", "/a\t\n": "/a[\t][\n]", "/a\u00a0": "/a[\u00a0]", "/a\xff ": "/a\xff[ ]",
	} {
		if got := literally(path); got != want {
			t.Errorf("%q: got %q, want %q", path, got, want)
		}
	}
}
