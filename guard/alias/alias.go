// Package alias holds the names by which models call the tools of this host, and give arguments to them, because they
// were trained on others. A name whose meaning is exactly that of a tool or an argument stands for it; the others
// name what to call instead.
//
// The tables are in tables.go.
//
// Its Go API is not stable.
package alias

import (
	"slices"
	"strings"

	"github.com/agnivade/levenshtein"
)

// An Argument is the meaning of an argument that a tool does not have. The zero Argument has no meaning, and is left
// out of the call.
type Argument struct {
	// Field is the argument of the tool that the argument stands for. The value is passed on unchanged if For is
	// empty.
	Field string
	// For is the value of Field if the argument is true. An argument that is false is left out.
	For string
	// Instead says what to do where no argument means the same.
	Instead string
}

// A substitute is what to call in place of a tool that is not served.
type substitute struct {
	// Tool is the served tool that comes nearest.
	Tool string
	// How says how to call it, for the model.
	How string
}

// joined takes the marks out of a name that separate words.
var joined = strings.NewReplacer("_", "", "-", "")

// fold is the form in which names are compared: readFile and ReadFile are read_file.
func fold(name string) string { return strings.ToLower(joined.Replace(name)) }

var (
	byName      = map[string]string{} // folded name or alias → tool
	byFormer    = map[string]string{}
	substitutes = map[string]substitute{}
)

func init() {
	for tool, names := range tools {
		byName[fold(tool)] = tool
		for _, name := range names {
			byName[fold(name)] = tool
		}
		for _, name := range former[tool] {
			byFormer[fold(name)] = tool
		}
	}
	for _, s := range instead {
		for _, name := range s.names {
			substitutes[fold(name)] = s.substitute
		}
	}
}

// Tool returns the tool that a name stands for, "" if it stands for none. The name of a tool stands for itself.
func Tool(name string) string { return byName[fold(name)] }

// Instead returns what to call in place of a tool of that name.
func Instead(name string) (s substitute, ok bool) {
	s, ok = substitutes[fold(name)]
	return s, ok
}

// Misspelt reports whether a name differs from another one at most in case and in one letter, or in the order of its
// letters.
func Misspelt(name, other string) bool {
	name, other = strings.ToLower(name), strings.ToLower(other)
	letters := func(s string) []byte {
		b := []byte(s)
		slices.Sort(b)
		return b
	}
	return levenshtein.ComputeDistance(name, other) <= 1 || slices.Equal(letters(name), letters(other))
}

// Ruled returns the tool that a rule on a name holds for: the tool that the name stands for, or that once had the name; ""
// if there is none.
func Ruled(name string) string {
	if tool := byFormer[fold(name)]; tool != "" {
		return tool
	}
	return Tool(name)
}

// Names are the names that rules take for that of a tool, which comes first.
func Names(tool string) []string { return slices.Concat([]string{tool}, tools[tool], former[tool]) }

// Arguments are the aliases of a tool's arguments, by name. They must not be changed.
func Arguments(tool string) map[string]Argument { return arguments[tool] }

// Field returns the meaning of an argument that is none of the fields of a tool: an alias, or a field or an alias in
// another spelling. A tool that is not in the table has no aliases.
func Field(tool, name string, fields []string) (a Argument, ok bool) {
	if a, ok = arguments[tool][name]; ok {
		return a, true
	}
	folded := fold(name)
	if arguments[tool] == nil || len(folded) < 2 { // -A and -a of Grep
		return a, false
	}
	if i := slices.IndexFunc(fields, func(field string) bool { return fold(field) == folded }); i >= 0 {
		return Argument{Field: fields[i]}, true
	}
	for other, a := range arguments[tool] {
		if fold(other) == folded {
			return a, true
		}
	}
	return a, false
}
