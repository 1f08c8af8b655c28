//go:build unix

package rulebook

import (
	"path"
	"testing"

	"toolhost/guard/internal/pathname"
	"toolhost/guard/settings"
)

// compiled is the list of rules for a workspace /ws and a home directory /home/u.
func compiled(t *testing.T, kind Kind, s pathname.Spelling, rules ...string) *List {
	t.Helper()
	ws := pathname.Place{Given: "/ws", Real: "/ws"}
	c := &Compiler{Home: pathname.Place{Given: "/home/u", Real: "/home/u"}, Roots: []pathname.Place{ws}, Bounds: []pathname.Place{ws}}
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
	for _, name := range []string{"secrets/x", "SECRETS/X", "\u017fecrets/x", "a.pem", "a.PEM", "STRASSE", "sec\u200crets/x"} {
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
			if r := compiled(t, kind, pathname.Exact, rules...).File(tt.tool, tt.access, tt.given, tt.real, false); r != nil {
				got = r.Text
			}
			if got != want {
				t.Errorf("%s %s, which is %s: %s by %q, want %q", tt.tool, tt.given, tt.real, kind, got, want)
			}
		}
	}
}
