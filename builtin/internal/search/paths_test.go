package search

import (
	"math/rand/v2"
	"strings"
	"testing"

	"toolhost/builtin/internal/search/glob"
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
		named := newWanted(&fileName{p, text}, func(rel string) string { return rel }).named
		for _, name := range []string{"a" + first, first + last, first + "a" + last, first + "bb", "b" + last, random(20) + "b"} {
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
