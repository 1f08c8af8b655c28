package pattern

import (
	"strings"
	"sync/atomic"
	"testing"
)

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
