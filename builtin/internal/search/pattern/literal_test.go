package pattern

import (
	"bytes"
	"math/rand/v2"
	"testing"
)

// TestLiteral compares each way of searching for a text between boundaries with the plain one.
func TestLiteral(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	const letters = "aabkAKbs .\n\r\x00\x80\xc5\xbf"
	edges := []Boundary{AnyBoundary, AnyBoundary, LineBoundary, WordBoundary}
	random := func(n int) string {
		b := make([]byte, n)
		for i := range b {
			b[i] = letters[r.IntN(len(letters))]
		}
		return string(b)
	}
	for range 20_000 {
		text, b, fold := random(1+r.IntN(4)), []byte(random(r.IntN(200))), r.IntN(2) == 0
		in := b
		if fold {
			text, in = string(lowerASCII([]byte(text))), lowerASCII(b)
		}
		from := r.IntN(len(b) + 1)
		before, after, crlf := edges[r.IntN(len(edges))], edges[r.IntN(len(edges))], r.IntN(2) == 0
		for _, common := range []int{0, 1} {
			n := newLiteral(text, fold)
			n.between(before, after, crlf)
			n.common = common
			want := from
			for want <= len(in)-len(text) && !(bytes.HasPrefix(in[want:], []byte(text)) && n.stands(b, want)) {
				want++
			}
			if want > len(in)-len(text) {
				want = -1
			}
			if got := n.index(b, from); got != want {
				t.Fatalf("%q (%d, %d, %t) in %q from %d, fold %t, common %d: got %d, want %d", text, before, after,
					crlf, b, from, fold, common, got, want)
			}
			if got := n.indexPair(b, from); got != want {
				t.Fatalf("%q (%d, %d, %t) in %q from %d, fold %t: got %d, want %d", text, before, after, crlf, b, from,
					fold, got, want)
			}
		}
	}
}

func lowerASCII(b []byte) []byte {
	out := bytes.Clone(b)
	for i, c := range out {
		if 'A' <= c && c <= 'Z' {
			out[i] = c + caseBit
		}
	}
	return out
}
