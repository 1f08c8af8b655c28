//go:build slow && unix

package command

import (
	"math/rand/v2"
)

// randomQuoted returns a text of quotations, expansions and heredocs within each
// other, closed for the most part: what randomText hardly ever comes to.
func randomQuoted(r *rand.Rand) string {
	text := pick(r, "echo ", `echo "`, "cat ", "x=", "", ": ") + nested(r, 1+r.IntN(4))
	if r.IntN(2) == 0 {
		text += pick(r, `"`, "'", "}", `"}`, `'}"`, ")")
	}
	return text
}
