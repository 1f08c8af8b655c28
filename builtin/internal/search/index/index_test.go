package index

import (
	"fmt"
	"math/bits"
	"math/rand/v2"
	"strings"
	"testing"
	"unicode/utf8"
)

// TestSelect compares what is selected with what holds the strings: nothing
// that does may be missing.
func TestSelect(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 1))
	words := strings.Fields("foo bar Func main ERR err nil return x y zz \xff\xfe Straße TODO (*T) a.b.c")
	var texts []string
	var segments []*Segment
	var b Builder
	for i := range 400 {
		var text strings.Builder
		for range r.IntN(12) {
			text.WriteString(words[r.IntN(len(words))] + []string{" ", "", "\n"}[r.IntN(3)])
		}
		texts = append(texts, text.String())
		b.Add(uint32(i), []byte(text.String()))
		if r.IntN(100) == 0 {
			segments = append(segments, b.Flush())
		}
	}
	segments = append(segments, b.Flush())
	b.Add(7, []byte(texts[7])) // again, as after a change
	segments = append(segments, b.Flush())
	for len(segments) > 2 {
		segments = append(segments[2:], Merge(segments[0], segments[1]))
	}
	for range 500 {
		var q Query
		var sets [][]string
		for range 1 + r.IntN(3) {
			var set []string
			for range 1 + r.IntN(3) {
				set = append(set, words[r.IntN(len(words))]+[]string{"", " "}[r.IntN(2)]+words[r.IntN(len(words))])
			}
			sets = append(sets, set)
			q.Require(set)
		}
		var got Set
		for _, s := range segments {
			q.Select(s, &got)
		}
		wanted := 0
		for i, text := range texts {
			if holds(text, sets) {
				wanted++
				if q.Selects() && !got.Has(uint32(i)) {
					t.Fatalf("%q: not selected: %q", sets, text)
				}
			}
		}
		if len(sets) == 1 && len(sets[0]) == 1 && utf8.ValidString(sets[0][0]) && len(sets[0][0]) > 3 &&
			got.Len() > 3*wanted+40 {
			t.Errorf("%q: selected %d, %d hold it", sets, got.Len(), wanted)
		}
	}
}

func holds(text string, sets [][]string) bool {
	text = strings.ToLower(text)
	for _, set := range sets {
		one := false
		for _, s := range set {
			one = one || strings.Contains(text, strings.ToLower(s))
		}
		if !one {
			return false
		}
	}
	return true
}

func TestShort(t *testing.T) {
	var q Query
	q.Require([]string{"long enough", "ab"})
	if q.Selects() {
		t.Error("a set with a short text selects")
	}
	var b Builder
	b.Add(1, []byte("ab"))
	q.Require([]string{"abc"})
	var got Set
	q.Select(b.Flush(), &got)
	if got.Len() != 0 || got.Has(1) || got.Has(1<<20) {
		t.Error("selected a text without trigrams")
	}
}

func BenchmarkAdd(b *testing.B) {
	text := []byte(strings.Repeat("func (s *Set) Has(id uint32) bool { return s.words[id/64]>>(id%64)&1 != 0 }\n",
		200) + fmt.Sprint(rand.Uint64()))
	var builder Builder
	b.SetBytes(int64(len(text)))
	for id := uint32(1); b.Loop(); id++ {
		if builder.Full() {
			builder.Flush()
		}
		builder.Add(id, text)
	}
}

// Len is the number of texts in the set.
func (s *Set) Len() int {
	n := 0
	for _, w := range s.words {
		n += bits.OnesCount64(w)
	}
	return n
}
