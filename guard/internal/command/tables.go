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
	flags map[string]bool
	lists map[string]string // elements are separated by spaces
}

// parse tells the options of a command from its operands. They may stand in any order.
func (r record) parse(args []Word) (p parsed) {
	if r.flags["assigns"] { // dd if=x
		for _, word := range args[1:] {
			name, value, has := strings.Cut(word.Text, "=")
			p.options = append(p.options, option{name: name, value: Word{Text: value, Static: word.Static, single: word.single},
				has: has})
		}
		return p
	}
	return spec{short: r.lists["short"], long: r.lists["long"], permute: true, open: true}.parse(args)
}

// is reports whether the record has one of some flags, which are separated by spaces.
func (r record) is(flags string) bool {
	for flag := range strings.FieldsSeq(flags) {
		if r.flags[flag] {
			return true
		}
	}
	return false
}

// table holds the contents of tables.txt by the names of the tables: the records of a [[table]], and an empty record for
// each word of a [list]. It is read when it is first asked for: many calls need none of it.
var table = sync.OnceValue(func() map[string]map[string]record {
	all := map[string]map[string]record{}
	var current map[string]record
	list := false
	for line := range strings.Lines(tablesText) {
		line = strings.TrimSpace(line)
		switch {
		case line == "" || line[0] == '#':
		case line[0] == '[' && line[len(line)-1] == ']':
			list, current = line[1] != '[', map[string]record{}
			all[strings.Trim(line, "[]")] = current
		case list:
			for word := range strings.FieldsSeq(line) {
				current[word] = record{}
			}
		default:
			names, r := parseRecord(line)
			for _, name := range names {
				current[name] = r
			}
		}
	}
	return all
})

func parseRecord(line string) (names []string, r record) {
	first, rest, _ := strings.Cut(line, " ")
	r = record{map[string]bool{}, map[string]string{}}
	for field := range strings.FieldsSeq(rest) {
		if key, value, ok := strings.Cut(field, "="); ok {
			r.lists[key] = strings.ReplaceAll(value, "|", " ")
		} else {
			r.flags[field] = true
		}
	}
	return strings.Split(first, "|"), r
}

// recordOf returns what a table says of a name.
func recordOf(of, name string) (record, bool) {
	r, ok := table()[of][name]
	return r, ok
}

// listed reports whether a list or a table of tables.txt has a name.
func listed(list, name string) bool {
	_, ok := table()[list][name]
	return ok
}
