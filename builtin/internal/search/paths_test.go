package search

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/toolhost/toolhost/builtin/internal/search/glob"
)

// TestNameSet: a set holds every name that the pattern matches, and of patterns whose ends
// say all, no other.
func TestNameSet(t *testing.T) {
	draw := rand.New(rand.NewPCG(8, 9))
	random := func(most int) string {
		var b strings.Builder
		for range draw.IntN(most) {
			b.WriteByte("aab.\xff"[draw.IntN(5)])
		}
		return b.String()
	}
	for range 5000 {
		first, last := random(11), random(11)
		text := "**/" + first + "*" + last
		switch draw.IntN(4) {
		case 0:
			text = "**/a" + first
		case 1:
			text = "b/{" + first + "?b,b*" + last + "}"
		}
		p, err := glob.Compile(text, glob.Options{})
		if err != nil {
			t.Fatal(err)
		}
		set := newNameSet(p.NameEnds())
		named := newPathSet(&fileName{Pattern: p, text: text}, func(rel string) string { return rel }).named
		for _, name := range []string{"a" + first, first + last, first + "a" + last, first + "bb", "b" + last,
			random(20) + "b"} {
			in := set.has(endsOf(name))
			if (p.Match(name) || p.Match("b/"+name)) && !in {
				t.Errorf("%q matches %q, whose ends are not in %+v", text, name, p.NameEnds())
			}
			if named && name != "" && in != p.Match("b/"+name) {
				t.Errorf("the ends of %q alone do not decide of %q", name, text)
			}
			if in && p.Simple() && len(first)+len(last) < 8 && len(name) > 8 && !p.Match("b/"+name) {
				t.Errorf("%q does not match %q, whose ends are in %+v", text, name, p.NameEnds())
			}
		}
	}
}

// TestAmong: what is looked at together is found like one by one.
func TestAmong(t *testing.T) {
	draw := rand.New(rand.NewPCG(10, 11))
	p := &paths{}
	var names []string
	for range 1000 {
		name := []string{"a", "b", "README", "readme.md", "x_test"}[draw.IntN(5)] + []string{".go", ".c", ".md",
			""}[draw.IntN(4)]
		e := endsOf(name)
		names, p.firsts, p.lasts = append(names, name), append(p.firsts, e.first), append(p.lasts, e.last)
	}
	for _, text := range []string{"**/*.go", "**/README*", "**/a*.c", "**/x?test.go", "**/*.{c,go}",
		"**/*.nosuch", "**/*"} {
		pattern, err := glob.Compile(text, glob.Options{})
		if err != nil {
			t.Fatal(err)
		}
		w := newPathSet(&fileName{Pattern: pattern, text: text}, func(rel string) string { return rel })
		for range 200 {
			from := draw.IntN(len(names))
			to := from + draw.IntN(len(names)-from+1)
			want := []int32{-1}
			for i := from; i < to; i++ {
				if w.names.has(endsOf(names[i])) {
					want = append(want, int32(i))
				}
			}
			if got := w.names.among(p, from, to, []int32{-1}); !slices.Equal(got, want) {
				t.Fatalf("%s from %d to %d: %v, want %v", text, from, to, got, want)
			}
		}
	}
}
