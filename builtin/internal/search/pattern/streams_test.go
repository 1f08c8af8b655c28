package pattern

import (
	"bytes"
	"math/rand/v2"
	"strings"
	"sync/atomic"
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

// TestEmptyStream: a stream that gets no line, because a long one is another's, finds nothing.
func TestEmptyStream(t *testing.T) {
	long := strings.Repeat("z", 4*minStreams)
	for _, tt := range []struct {
		pattern, text string
		want          int
	}{
		{"^$", long + "\nend", 0}, {"^$", long + "\n\nend", 1}, {"x*", long + "\nend", 2}, {"x*", "a\n" + long, 2}, {"$", long, 1}, {"^$", long, 0},
	} {
		p, err := Compile(tt.pattern, Options{})
		if err != nil {
			t.Fatal(err)
		}
		if got := all(New(p, new(atomic.Bool)), tt.text); len(got) != tt.want {
			t.Errorf("%s in %d bytes: %v, want %d lines", tt.pattern, len(tt.text), got, tt.want)
		}
	}
}
