//go:build slow

package search

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/toolhost/toolhost/integration/samples"
)

// TestPagesOfEdited changes files so that little of it shows, while an engine keeps the tree,
// and demands the answers of one that keeps nothing.
func TestPagesOfEdited(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 8))
	words := []string{"alpha", "bravo", "delta", "gamma"}
	text := func() string {
		var b strings.Builder
		for range 10 { // all of one length
			b.WriteString(words[r.IntN(len(words))] + fmt.Sprint(r.IntN(10)) + "\n")
		}
		return b.String()
	}
	files := map[string]string{}
	for i := range 300 {
		files[fmt.Sprintf("d%d/e%d/f%d.txt", i%10, i%7, i)] = text()
	}
	root := writeTree(t, files)
	rounds := samples.Rounds(8)
	for range rounds {
		t.Run("", func(t *testing.T) {
			for range r.IntN(3) {
				editUnseen(t, root, text(), r)
			}
			e := keeping(t, Config{}, Scope{Base: root, Path: root})
			for range 12 {
				q := GrepQuery{Scope: Scope{Base: root, Path: root},
					Pattern: words[r.IntN(len(words))] + fmt.Sprint(r.IntN(10))}
				q.Mode, q.Limit, q.Offset = Mode(r.IntN(3)), []int{0, 1, 10, 60, 200}[r.IntN(5)], r.IntN(2)*r.IntN(50)
				if got, want := mustAnswer(t, e, q), anew(t, q); cmp.Diff(want, got) != "" {
					t.Fatalf("%+v:\n%s", q, cmp.Diff(want, got))
				}
				if r.IntN(3) == 0 {
					editUnseen(t, root, text(), r)
				}
			}
		})
	}
}
