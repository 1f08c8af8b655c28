package command

import (
	"strings"
	"testing"
)

// TestTables holds that every line of tables.txt says something that is understood, once.
func TestTables(t *testing.T) {
	flags := map[string]string{"programs": strings.Join(roleNames[:], " ") + " looks", "wrappers": "skip assigns loud", "variable names": "operands",
		"git subcommands": "looks hides writes writes-second any bare one"}
	lists := map[string]string{"programs": "short long danger reads writes follow instead", "wrappers": "short long moves stops reads writes", "launchers": "short launch words", "subcommands": "name others", "hands over": "if unless", "variable names": "short by",
		"git subcommands": "short long runs danger verbs values writing first options listing"}
	section, seen := "", map[string]bool{}
	for line := range strings.Lines(tablesText) {
		line = strings.TrimSpace(line)
		switch {
		case line == "" || line[0] == '#':
			continue
		case line[0] == '[' && line[len(line)-1] == ']':
			section = line[1 : len(line)-1]
			continue
		}
		r := record{names: strings.Fields(line)}
		if section == "reports" {
			r.names = []string{line}
		}
		if lists[section] != "" {
			r = parseRecord(line)
		}
		for _, name := range r.names {
			key := section + " " + name + " " + r.lists["name"]
			if seen[key] {
				t.Errorf("[%s] names %s twice", section, name)
			}
			seen[key] = true
		}
		for flag := range r.flags {
			if !oneOf(flag, flags[section]) {
				t.Errorf("[%s] %s: unknown word %q", section, line, flag)
			}
		}
		for list := range r.lists {
			if !oneOf(list, lists[section]) {
				t.Errorf("[%s] %s: unknown list %q", section, line, list)
			}
		}
	}
	for _, name := range []string{"programs", "wrappers", "launchers"} {
		if len(table().lists[name]) > 0 {
			t.Errorf("[%s] was taken for a list", name)
		}
	}
	if len(table().programs) < 150 || len(table().lists["starters"]) < 100 {
		t.Error("the tables are not all there")
	}
}
