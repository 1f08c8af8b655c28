package proxy

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/toolhost/toolhost/integration/samples"
)

// TestFinder: what is found in one pass is what is found by looking for each text at each place, in texts of few letters.
func TestFinder(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	text := func(n int) string {
		b := make([]byte, n)
		for i := range b {
			b[i] = "ab"[random.IntN(2)]
		}
		return string(b)
	}
	for range samples.Rounds(20_000) {
		var pairs []pair
		for range random.IntN(4) {
			pairs = append(pairs, pair{text(2 + random.IntN(7)), "x"})
		}
		f, in := newFinder(slices.Clone(pairs)), text(random.IntN(20))
		limit := random.IntN(len(in) + 1)
		wantAt, want := -1, ""
		for at := 0; at < limit && wantAt < 0; at++ {
			for _, p := range pairs {
				if strings.HasPrefix(in[at:], p.outside) && len(p.outside) > len(want) {
					wantAt, want = at, p.outside
				}
			}
		}
		if at, found := f.find([]byte(in), limit); at != wantAt || found.outside != want {
			t.Fatalf("%v in %s before %d: got %q at %d, want %q at %d", pairs, in, limit, found.outside, at,
				want, wantAt)
		}
		kept := 0
		for n := 1; n <= len(in); n++ {
			if slices.ContainsFunc(pairs, func(p pair) bool { return len(p.outside) > n && strings.HasPrefix(p.outside, in[len(in)-n:]) }) {
				kept = n
			}
		}
		if got := f.beginning([]byte(in)); got != kept {
			t.Fatalf("%v at the end of %s: got %d, want %d", pairs, in, got, kept)
		}
	}
}

// BenchmarkFind looks for the spellings of a value in text of the letters of which it is made.
func BenchmarkFind(b *testing.B) {
	s := &secrets{known: map[string][]string{sentinel: {value}}}
	s.collect()
	text := make([]byte, 1<<20)
	for i := range text {
		text[i] = value[rand.IntN(len(value))]
	}
	b.SetBytes(int64(len(text)))
	for b.Loop() {
		s.found.find(text, len(text))
	}
}
