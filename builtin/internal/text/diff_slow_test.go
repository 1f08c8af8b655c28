//go:build slow

package text

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"znkr.io/diff"
	"znkr.io/diff/textdiff"
)

// TestReplacedIsTheSearchsHunk: a hunk that is made without a search is the one that a search finds.
func TestReplacedIsTheSearchsHunk(t *testing.T) {
	if testing.Short() {
		t.Skip("slow")
	}
	r := rand.New(rand.NewPCG(1, 2))
	text := func(lines, kinds int) (out []string) {
		for range lines {
			out = append(out, strings.Repeat(" ", r.IntN(3))+string(rune('a'+r.IntN(kinds)))+"\n")
		}
		return out
	}
	told := 0
	for range 100_000 {
		kinds := 1 + r.IntN(26)
		around := text(r.IntN(12), kinds)
		at := r.IntN(len(around) + 1)
		put := func(lines []string) string {
			return strings.TrimSuffix(strings.Join(slices.Concat(around[:at], lines, around[at:]), ""),
				strings.Repeat("\n", r.IntN(2)))
		}
		old, new, context := put(text(r.IntN(4), kinds)), put(text(r.IntN(4), kinds)), r.IntN(4)
		h, ok := replaced(old, new, context)
		if !ok {
			continue
		}
		told++
		want := textdiff.Hunks(old, new, diff.Context(context), textdiff.IndentHeuristic())
		for i := range want {
			for k := range want[i].Edits {
				want[i].Edits[k].LineNoX, want[i].Edits[k].LineNoY = 0, 0 // which no one asks for
			}
		}
		if d := cmp.Diff(want, []textdiff.Hunk[string]{h}); d != "" {
			t.Fatalf("of %q and %q, %d around (-want +got)\n%s", old, new, context, d)
		}
	}
	if told < 10_000 {
		t.Errorf("only %d hunks were told without a search", told)
	}
}
