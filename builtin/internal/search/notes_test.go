package search

import (
	"strings"
	"testing"
)

// TestUnchosen: a search of no file at all says so, and what chose none.
func TestUnchosen(t *testing.T) {
	root := writeTree(t, map[string]string{"src/a.go": "needle\n", "src/[id]/b.go": "needle\n", "c.md": "needle\n",
		"d.log": "needle\n", ".ignore": "*.log\n"})
	const note = "No file was searched: none is chosen by "
	for _, tt := range []struct {
		q    GrepQuery
		want string // the notes, or their beginning; "" is none
	}{
		{GrepQuery{Pattern: "needle", Globs: []string{"src"}}, note + "src. What lies in a directory is chosen by src/**, or by path."},
		{GrepQuery{Pattern: "needle", Globs: []string{"*.rs", "*.toml"}}, note + "*.rs, *.toml."},
		{GrepQuery{Pattern: "needle", Globs: []string{"src/[id]/*"}}, note + `src/[id]/*. [ ] is a choice of characters: write \[ for the bracket itself.`},
		{GrepQuery{Pattern: "needle", Globs: []string{"missing.txt"}}, note + "missing.txt."},
		{GrepQuery{Pattern: "needle", Types: []string{"rust"}}, note + "type rust."},
		{GrepQuery{Pattern: "needle", Globs: []string{"*.log", "!d*"}}, note},
		{GrepQuery{Pattern: "needle", Types: []string{"log"}}, "0 matches; 1 ignored file was not searched: pass no_ignore."},
		{GrepQuery{Pattern: "nothing", Globs: []string{"*.go"}}, ""},
		{GrepQuery{Pattern: "needle", Globs: []string{"*.go"}}, ""},
	} {
		for _, mode := range []Mode{Content, Count, FilesWithMatches} {
			q := tt.q
			q.Mode, q.Limit = mode, 10
			got := strings.Join(mustGrep(t, quiet(Config{}), root, q).Notes, " ")
			if !strings.HasPrefix(got, tt.want) || (tt.want == "") != (got == "") {
				t.Errorf("%v, globs %q, types %q: got %q, want %q", mode, q.Globs, q.Types, got, tt.want)
			}
		}
	}
}
