package recipe

import (
	"maps"
	"regexp"
	"slices"
	"strings"
)

var (
	justHead  = regexp.MustCompile(`^@?([A-Za-z_][\w-]*)((?:\s+[^:]*)?):([^=]*)$`)
	justValue = regexp.MustCompile("^(?:export\\s+)?([A-Za-z_][\\w-]*)\\s*:=\\s*['\"`]?(.*?)['\"`]?\\s*$")
	justAlias = regexp.MustCompile(`^alias\s+([\w-]+)\s*:=\s*([\w-]+)`)
	justUse   = regexp.MustCompile(`\{\{\s*([\w-]+)\s*\}\}`)
)

type justRecipe struct {
	needs []string
	body  []string
}

// Just returns what just runs for recipes of a justfile, none for its first.
func Just(text string, names []string) (runs []Run) {
	recipes, first, vars, aliases := readJust(text)
	if len(names) == 0 {
		names = []string{first}
	}
	if slices.Contains(names, Any) {
		names = slices.Collect(maps.Keys(recipes))
	}
	reach(names, func(name string) (calls []string) {
		if other, ok := aliases[name]; ok {
			calls = append(calls, other)
		}
		for _, r := range recipes[name] {
			calls = append(calls, r.needs...)
			body := justUse.ReplaceAllStringFunc(strings.Join(r.body, "\n"), func(use string) string {
				if value, ok := vars[justUse.FindStringSubmatch(use)[1]]; ok {
					return value
				}
				return "x"
			})
			runs = append(runs, Run{name, body})
		}
		return calls
	})
	return runs
}

func readJust(text string) (recipes map[string][]*justRecipe, first string, vars, aliases map[string]string) {
	recipes, vars, aliases = map[string][]*justRecipe{}, map[string]string{}, map[string]string{}
	var r *justRecipe
	for line := range strings.Lines(strings.ReplaceAll(text, "\\\n", " ")) {
		line = strings.TrimRight(line, "\r\n")
		switch {
		case line == "" || line[0] == '#':
		case line[0] == ' ' || line[0] == '\t':
			if r != nil {
				r.body = append(r.body, strings.TrimLeft(line, " \t@-"))
			}
		case justAlias.MatchString(line):
			m := justAlias.FindStringSubmatch(line)
			aliases[m[1]] = m[2]
		case justValue.MatchString(line):
			m := justValue.FindStringSubmatch(line)
			vars[m[1]] = m[2]
		case justHead.MatchString(line):
			m := justHead.FindStringSubmatch(line)
			needs := strings.FieldsFunc(m[3], func(c rune) bool { return strings.ContainsRune(" \t()&", c) })
			r = &justRecipe{needs: needs}
			if recipes[m[1]] = append(recipes[m[1]], r); first == "" {
				first = m[1]
			}
		default:
			r = nil
		}
	}
	return recipes, first, vars, aliases
}
