package builtin

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/toolhost/toolhost/guard"
)

func TestCatOperands(t *testing.T) {
	for command, want := range map[string][]string{
		"cat f":                  {"f"},
		" cat 'a b' d/e\\ f # x": {"a b", "d/e f"},
		`cat -- "f"`:             {"f"},
		"cat":                    nil,
		"cat ":                   nil,
		"cat --":                 nil,
		"cat -n f":               nil,
		"cat -":                  nil,
		"cat f > g":              nil,
		"cat < f":                nil,
		"cat f | head":           nil,
		"cat f; true":            nil,
		"cat f &":                nil,
		"! cat f":                nil,
		"A=1 cat f":              nil,
		"cat $f":                 nil,
		"cat *.go":               nil,
		"cat ~/f":                nil,
		"cat '*.go'":             {"*.go"},
		"cat <(echo f)":          nil,
		"cat 'f":                 nil,
		"head f":                 nil,
		"catalog f":              nil,
	} {
		if diff := cmp.Diff(want, catOperands(guard.NewExec(command, guard.Path{}))); diff != "" {
			t.Errorf("%q: %s", command, diff)
		}
	}
}
