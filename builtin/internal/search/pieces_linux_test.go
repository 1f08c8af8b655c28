package search

import (
	"context"
	"strings"
	"testing"
)

// TestPieces: files of which no text is kept are found by a part of them, as they are by
// all of it.
func TestPieces(t *testing.T) {
	const size = firstPiece
	line := strings.Repeat("y", 99) + "\n"
	many := strings.Repeat(line, 3*size/len(line))
	files := map[string]string{
		"first.txt":    "needle\n" + many,
		"last.txt":     many + "needle",
		"ended.txt":    many + "needle\r\n",
		"across.txt":   line[1:] + strings.Repeat(line, size/len(line)-1) + strings.Repeat("z", size%len(line)-2) + "needle\n" + many,
		"edge.txt":     strings.Repeat("z", size-1) + "\nneedle\n",
		"full.txt":     strings.Repeat("z", size-7) + "\nneedle",
		"long.txt":     strings.Repeat("z", 3*firstRead) + "needle\n" + many,
		"longlast.txt": many + strings.Repeat("z", 2*firstRead) + "\nneedle",
		"mark.txt":     "\xef\xbb\xbfneedle\n" + many,
		"marks.txt":    many + "\xef\xbb\xbfneedle\n" + many,
		"wide.txt":     wide(many + "needle\n" + many),
		"none.txt":     many,
		"kelvin.txt":   many + "K1\n",
		"empty.txt":    many + "\n" + many,
		"end.txt":      many + "\n",
		"small.txt":    "needle",
	}
	root := tree(t, files)
	scope := Scope{Base: root, Path: root}
	e := keeping(t, Config{}, scope)
	e.kept.budget = 1 // from here on no text is kept
	for range maxUses + 1 {
		e.kept.evict(0)
	}
	plain := New(Config{MaxKept: -1})
	defer plain.Close()
	for _, pattern := range []string{"needle", "^needle$", "needle$", `^\w+needle`, "k1", "(?i)k1", "(?i)NEEDLE", "^$", "y{99}$", "nosuch", `^needle\b|zzy`} {
		q := GrepQuery{Scope: scope, Pattern: pattern}
		want, err := plain.Grep(context.Background(), q)
		if err != nil {
			t.Fatal(err)
		}
		for range 2 {
			got, err := e.Grep(context.Background(), q)
			if err != nil || got.Text != want.Text {
				t.Errorf("%s: %q, %v, want %q", pattern, got.Text, err, want.Text)
			}
		}
	}
}
