package match

import (
	"bytes"
	"math/rand/v2"
	"testing"
)

func TestLineStart(t *testing.T) {
	draw := rand.New(rand.NewPCG(1, 2))
	for range 2000 {
		b := make([]byte, draw.IntN(40))
		for i := range b {
			b[i] = "\n\n\x0b\x0a\x8a\x00\x09a"[draw.IntN(8)]
			if draw.IntN(3) > 0 {
				b[i] = 'x'
			}
		}
		for i := range len(b) + 1 {
			if got, want := lineStart(b, i), bytes.LastIndexByte(b[:i], '\n')+1; got != want {
				t.Fatalf("lineStart(%q, %d) = %d, want %d", b, i, got, want)
			}
		}
	}
}
