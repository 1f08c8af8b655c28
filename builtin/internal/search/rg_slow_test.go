//go:build slow

package search

import (
	"slices"
	"strings"
	"testing"

	"github.com/toolhost/toolhost/integration/samples"
)

func TestOnlyAsRipgrep(t *testing.T) {
	rg := ripgrep(t)
	es := newEngines(t, Config{MaxLine: -1, MaxText: 1 << 30})
	root := t.TempDir()
	makeTree(t, root, 12)
	for i, p := range slices.Concat(patterns, oddPatterns, multilinePatterns) {
		for m, q := range []GrepQuery{{}, {Multiline: true}, {Before: 1, After: 2, Globs: noLateBinary}} {
			if !samples.Whole() && (i+4*m)%12 != 0 || !q.Multiline && slices.Contains(multilinePatterns, p) {
				continue // ripgrep refuses \n then, and takes \z for the end of what it holds
			}
			q.Pattern, q.Mode, q.LineNumbers, q.Only = p, Content, true, true
			if strings.Contains(p, "$") { // of an empty match at the end of a file ripgrep prints the line
				q.Globs = append(q.Globs[:len(q.Globs):len(q.Globs)], "!{lone-cr,no-eol}.ts")
			}
			plain := q
			plain.Before, plain.After = 0, 0
			if out := normal(runRG(t, rg, root, grepArgs(plain)...)); q.After > 0 && out != withoutEmpty(out) {
				continue // ripgrep prints the context of the empty matches as well
			}
			compareGrep(t, es, rg, root, q)
		}
	}
}
