package match

import (
	"bytes"
	"math/rand/v2"
	"testing"
)

// TestNeedle compares each way of looking for a text with the plain one.
func TestNeedle(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	const letters = "aabkAKbs .\x00\x80\xc5\xbf"
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
		want := bytes.Index(in[from:], []byte(text))
		if want >= 0 {
			want += from
		}
		for _, common := range []int{0, 1} {
			n := newNeedle(text, fold)
			n.common = common
			if got := n.index(b, from); got != want {
				t.Fatalf("%q in %q from %d, fold %t, common %d: got %d, want %d", text, b, from, fold, common, got, want)
			}
			if got := n.indexPair(b, from); got != want {
				t.Fatalf("%q in %q from %d, fold %t: got %d, want %d", text, b, from, fold, got, want)
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
