package search

import (
	"context"
	"testing"
)

// TestOtherCases: what the index requires may be spelt with letters outside of ASCII, also
// where that is not what the text is searched for first.
func TestOtherCases(t *testing.T) {
	root := writeTree(t, map[string]string{"a": "ſtop the needle\n", "b": "stop the needle\n", "c": "the needle\n",
		"d": "\u212aelvin and elsewhere\n"})
	scope := Scope{Base: root, Path: root}
	e := keeping(t, Config{}, scope)
	for pattern, want := range map[string]string{"(?i)stop.*needle": "a:1\nb:1\n", "(?i:stop).*needle": "a:1\nb:1\n",
		"(?i:kelvin).*elsewhere": "d:1\n"} {
		if r, err := e.Grep(context.Background(), GrepQuery{Scope: scope, Pattern: pattern, Mode: Count}); err != nil ||
			r.Text != want {
			t.Errorf("%s: %+v, %v; want %q", pattern, r, err, want)
		}
	}
}
