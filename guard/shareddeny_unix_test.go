//go:build unix

package guard

import (
	"slices"
	"testing"

	"github.com/toolhost/toolhost/guard/settings"
)

// TestSharedDenies: which tools are missing for a bare deny of Claude Code's files, and what is said of them.
func TestSharedDenies(t *testing.T) {
	where := settings.Config{UserConfigDir: "/u", ManagedDir: "/m"}
	tools := []string{"Bash", "Edit", "Glob", "Read", "Write"}
	user := func(rule string, line int) settings.Entry {
		return settings.Entry{Text: rule, Kind: settings.User, File: "/h/s.json", Line: line, Client: true}
	}
	managed := user("Bash", 9)
	managed.Kind, managed.File = settings.Managed, "/m/c.json"
	own := user("Bash", 1)
	own.Client = false
	for _, tt := range []struct {
		name string
		deny []settings.Entry
		want []string
	}{
		{"none", nil, nil},
		{"a specifier", []settings.Entry{user("Bash(rm:*)", 1), user("Bash(*)", 2)}, nil},
		{"the tool of a server", []settings.Entry{user("mcp__toolhost__Bash", 1)}, nil},
		{"our own file", []settings.Entry{own, user("Bash", 2)}, nil},
		{"a tool that is not ours", []settings.Entry{user("WebFetch", 1)}, nil},
		{"one", []settings.Entry{user("Bash", 3)}, []string{"Bash not served: denied for Claude Code and for toolhost by /h/s.json:3",
			`to deny only Claude Code's own tools, put "rules": {"native": ["Bash"]} into /u/toolhost/toolhost.json`}},
		{"one takes several tools", []settings.Entry{user("Edit", 3)}, []string{"Edit, Write not served: denied for Claude Code and for toolhost by /h/s.json:3",
			`to deny only Claude Code's own tools, put "rules": {"native": ["Edit"]} into /u/toolhost/toolhost.json`}},
		{"many", []settings.Entry{user("Bash", 1), user("Edit", 2), user("Glob", 3), user("Read", 4), user("Write", 4)},
			[]string{"Bash, Edit, Glob, Read, Write not served: denied for Claude Code and for toolhost by /h/s.json:1, /h/s.json:2, /h/s.json:3 and 1 more",
				`to deny only Claude Code's own tools, put "rules": {"native": ["Bash", "Edit", "Glob", "Read", "Write"]} into /u/toolhost/toolhost.json`}},
		{"managed", []settings.Entry{managed, user("Bash", 3), user("Glob", 3)}, []string{"Bash not served: denied for Claude Code and for toolhost by /m/c.json:9",
			`to deny only Claude Code's own tools, put "rules": {"native": ["Bash"]} into /m/toolhost/toolhost.json`,
			"Glob not served: denied for Claude Code and for toolhost by /h/s.json:3", `to deny only Claude Code's own tools, put "rules": {"native": ["Glob"]} into /u/toolhost/toolhost.json`}},
	} {
		p, err := New(Config{Roots: []string{t.TempDir()}, Settings: &settings.Settings{Deny: tt.deny}})
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, d := range p.SharedDenies(where, tools) {
			got = append(got, d.String(), d.Remedy())
		}
		if !slices.Equal(got, tt.want) {
			t.Errorf("%s:\ngot  %q\nwant %q", tt.name, got, tt.want)
		}
	}
}
