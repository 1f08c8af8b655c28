//go:build unix

package rules

import (
	"fmt"
	"path"
	"strings"
	"testing"

	"github.com/toolhost/toolhost/guard/internal/pathname"
	"github.com/toolhost/toolhost/guard/settings"
)

// compiled is the list of rules for a workspace /ws and a home directory /home/u.
func compiled(t *testing.T, kind Kind, s pathname.Spelling, rules ...string) *List {
	t.Helper()
	ws := pathname.Place{Given: "/ws", Real: "/ws"}
	c := &Compiler{Home: pathname.Place{Given: "/home/u", Real: "/home/u"}, Roots: []pathname.Place{ws},
		Bounds: []pathname.Place{ws}}
	var entries []settings.Entry
	for _, text := range rules {
		entries = append(entries, settings.Entry{Text: text, File: "settings.json"})
	}
	l := c.Compile(kind, entries, s)
	for _, warning := range c.Warnings {
		t.Errorf("%q: %s", rules, warning)
	}
	return l
}

func TestCaseInsensitive(t *testing.T) {
	l := compiled(t, Deny, pathname.Folded, "Read(Secrets/**)", "Read(*.PEM)", "Read(stra\u00dfe)")
	for _, name := range []string{"secrets/x", "SECRETS/X", "\u017fecrets/x", "a.pem", "a.PEM", "STRASSE",
		"sec\u200crets/x"} {
		file := path.Join("/ws", name)
		if l.File("Read", Reading, file, file, false) == nil {
			t.Errorf("%q is not denied where case does not count", name)
		}
	}
}

// TestWhichRule: which rule of a list speaks of a file that goes by two names.
func TestWhichRule(t *testing.T) {
	rules := []string{"Read(.env)", "Edit(src/**)", "Write(new/*)", "Read(~/notes)", "Read(//etc/x)"}
	for _, tt := range []struct {
		tool        string
		access      Access
		given, real string
		deny, allow string // the rules that take and give rights
	}{
		{"Read", Reading, "/ws/a/.env", "/ws/a/.env", "Read(.env)", "Read(.env)"},
		{"Read", Reading, "/ws/link", "/ws/a/.env", "Read(.env)", ""}, // an allow needs both names
		{"Read", Reading, "/ws/.env", "/out/f", "Read(.env)", ""},
		{"Edit", Writing, "/ws/.env", "/ws/.env", "Read(.env)", ""}, // who may not read may not write
		{"Write", Writing, "/ws/src/f", "/ws/src/f", "Edit(src/**)", "Edit(src/**)"},
		{"Write", Writing, "/ws/new/f", "/ws/new/f", "Write(new/*)", "Write(new/*)"},
		{"Edit", Writing, "/ws/new/f", "/ws/new/f", "Write(new/*)", ""}, // an allow speaks for its tool alone
		{"Read", Reading, "/ws/src/f", "/ws/src/f", "", ""},
		{"Grep", Reading, "/home/u/notes/a", "/home/u/notes/a", "Read(~/notes)", "Read(~/notes)"},
		{"Read", Reading, "/etc/x", "/etc/x", "Read(//etc/x)", "Read(//etc/x)"},
	} {
		for kind, want := range map[Kind]string{Deny: tt.deny, Allow: tt.allow} {
			got := ""
			if r := compiled(t, kind, pathname.Exact, rules...).File(tt.tool, tt.access, tt.given, tt.real,
				false); r != nil {
				got = r.Text
			}
			if got != want {
				t.Errorf("%s %s, which is %s: %s by %q, want %q", tt.tool, tt.given, tt.real, kind, got, want)
			}
		}
	}
}

// TestNamesAsWritten: what stands in a deny is guarded under exactly that name, whatever is odd about it.
func TestNamesAsWritten(t *testing.T) {
	for _, tt := range []struct {
		rule, name string
		want       bool
	}{
		{`Read(end\ )`, "end ", true},
		{`Read(end\ )`, "end", false},
		{`Read(end\ /x)`, "end /x", true},
		{`Read(end\\ )`, `end\`, true}, // the backslash is quoted, the space is not
		{`Read(end )`, "end", true},
		{`Read( begin)`, " begin", true},
		{`Read( begin)`, "begin", true},
		{`Read( a/b)`, " a/b", true},
		{`Read(x[!/]y)`, "x.y", true}, // to git too a set does not end at a slash
		{`Read(x[!/]y)`, "d/x.y", false},
		{`Read(d/x[a/b]y)`, "d/xby", true},
		{"Read([uv]\u0308)", "u\u0308", true}, // in the one form a letter with its accent, in the other one character
		{"Read(d/[uv]\u0308)", "d/u\u0308", true},
		{"Read(u\u0308)", "\u00fc", true},
		{"Read(\u00fc)", "u\u0308", true},
		{"Read(\u00fc/[uv]\u0308)", "\u00fc/u\u0308", true},
	} {
		for _, s := range []pathname.Spelling{pathname.Composed, pathname.Folded} {
			file := "/ws/" + tt.name
			if got := compiled(t, Deny, s, tt.rule).File("Read", Reading, file, file, false) != nil; got != tt.want {
				t.Errorf("%s and %q: denied %v, want %v", tt.rule, tt.name, got, tt.want)
			}
		}
	}
}

// TestBracesOfAFile lets a file of settings stand for more patterns than there is room for: it says so, each pattern holds as it
// is written, and the braces of another file still count.
func TestBracesOfAFile(t *testing.T) {
	if testing.Short() {
		t.Skip("slow")
	}
	ws := pathname.Place{Given: "/ws", Real: "/ws"}
	for name, spec := range map[string]string{
		"many": strings.Repeat("{a,b}", 9) + "*q", "long": strings.Repeat("{a,b}", 9) + strings.Repeat("?x", 400), "one": strings.Repeat("{a,b}", 9) + strings.Repeat("x", 900_000),
	} {
		c := &Compiler{Home: ws, Roots: []pathname.Place{ws}, Bounds: []pathname.Place{ws}}
		var entries []settings.Entry
		for i := range max(900_000/len(spec), 1) {
			entries = append(entries, settings.Entry{Text: fmt.Sprintf("Read(%d%s)", i, spec), File: "/ws/.claude/settings.json"})
		}
		entries = append(entries, settings.Entry{Text: "Read(**/*.{pem,key})", File: "/home/u/.claude/settings.json"})
		l := c.Compile(Deny, entries, pathname.Exact)
		if len(c.Warnings) == 0 || !strings.Contains(c.Warnings[len(c.Warnings)-1], "not all are guarded") {
			t.Errorf("%s: %d warnings", name, len(c.Warnings))
		}
		for _, path := range []string{"/ws/a.pem", "/ws/b.key"} {
			if l.File("Read", Reading, path, path, false) == nil {
				t.Errorf("%s: %s is not guarded", name, path)
			}
		}
		if used := maxSpread - *c.roomOf("/home/u/.claude/settings.json"); used > 1<<10 {
			t.Errorf("%s: the rule of another file took %d bytes", name, used)
		}
	}
}
