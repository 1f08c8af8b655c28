package command

import (
	_ "embed"
	"strings"
	"sync"
)

//go:embed tables.txt
var tablesText string

// A record is what a line of a table says of the names that it begins with.
type record struct {
	names []string
	flags map[string]bool
	lists map[string]string // elements are separated by spaces
}

// tables are the contents of tables.txt.
type tables struct {
	programs  map[string]program
	wrappers  map[string]wrapper
	launchers map[string]launcher
	usual     map[string]string // "npm i": install
	records   map[string]record // of the other tables, by their section and name
	lists     map[string]map[string]bool
}

// table is read when it is first asked for: many calls need none of it.
var table = sync.OnceValue(func() *tables {
	t := &tables{map[string]program{}, map[string]wrapper{}, map[string]launcher{}, map[string]string{}, map[string]record{}, map[string]map[string]bool{}}
	section := ""
	for line := range strings.Lines(tablesText) {
		line = strings.TrimSpace(line)
		switch {
		case line == "" || line[0] == '#':
		case line[0] == '[' && line[len(line)-1] == ']':
			section = line[1 : len(line)-1]
			t.lists[section] = map[string]bool{}
		default:
			t.add(section, line)
		}
	}
	return t
})

func (t *tables) add(section, line string) {
	switch section {
	case "reports":
		t.lists[section][line] = true
	case "programs":
		r := parseRecord(line)
		for _, name := range r.names {
			t.programs[name] = program{roleOf(r), r.flags["looks"], r.lists["short"], r.lists["long"], r.lists["danger"], r.lists["reads"], r.lists["writes"], r.lists["follow"], r.lists["instead"]}
		}
	case "wrappers":
		r := parseRecord(line)
		short, open := strings.CutPrefix(r.lists["short"], "*")
		for _, name := range r.names {
			t.wrappers[name] = wrapper{spec{short: short, long: r.lists["long"], open: open}, r.flags["skip"], r.flags["assigns"], r.flags["loud"],
				r.lists["moves"], r.lists["stops"], r.lists["reads"], r.lists["writes"]}
		}
	case "launchers":
		r := parseRecord(line)
		for _, name := range r.names {
			t.launchers[name] = launcher{r.lists["short"], r.lists["launch"], r.lists["words"]}
		}
	case "git subcommands", "hands over", "variable names":
		r := parseRecord(line)
		for _, name := range r.names {
			t.records[section+" "+name] = r
		}
	case "subcommands":
		r := parseRecord(line)
		for other := range strings.FieldsSeq(r.lists["others"]) {
			t.usual[r.names[0]+" "+other] = r.lists["name"]
		}
	default:
		for word := range strings.FieldsSeq(line) {
			t.lists[section][word] = true
		}
	}
}

func parseRecord(line string) record {
	names, rest, _ := strings.Cut(line, " ")
	r := record{strings.Split(names, "|"), map[string]bool{}, map[string]string{}}
	for field := range strings.FieldsSeq(rest) {
		if key, value, ok := strings.Cut(field, "="); ok {
			r.lists[key] = strings.ReplaceAll(value, "|", " ")
		} else {
			r.flags[field] = true
		}
	}
	return r
}

// roleOf returns the first role that a record names.
func roleOf(r record) role {
	for i, name := range roleNames {
		if r.flags[name] {
			return role(i)
		}
	}
	return noFiles
}

// listed reports whether a list of tables.txt has a name.
func listed(list, name string) bool { return table().lists[list][name] }
