package command

import (
	"strings"
	"testing"
)

// TestTables holds that every line of tables.txt says something that is understood, once.
func TestTables(t *testing.T) {
	flags := map[string]string{
		"programs": "reads writes copies moves pattern in-out names says looks assigns", "wrappers": "skip assigns loud",
		"git subcommands": "hides", "launchers": "bare expands globs own subcommands",
	}
	lists := map[string]string{
		"programs": "short long danger reads writes instead changes scripts not within", "wrappers": "short long moves stops reads writes",
		"git subcommands": "short long runs verbs", "script runners": "short long", "launchers": "letters words values", "runners": "verbs",
	}
	section, records, seen := "", false, map[string]bool{}
	for line := range strings.Lines(tablesText) {
		line = strings.TrimSpace(line)
		switch {
		case line == "" || line[0] == '#':
			continue
		case line[0] == '[':
			section, records = strings.Trim(line, "[]"), line[1] == '['
			continue
		}
		names, r := strings.Fields(line), record{}
		if records {
			names, r = parseRecord(line)
		}
		for _, name := range names {
			if seen[section+" "+name] {
				t.Errorf("[%s] names %s twice", section, name)
			}
			seen[section+" "+name] = true
		}
		if oneOf(section, "subcommands reports versions") { // names of programs stand for flags and lists
			continue
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
	if len(table()["programs"]) < 120 || len(table()["steering variables"]) < 60 {
		t.Error("the tables are not all there")
	}
}
