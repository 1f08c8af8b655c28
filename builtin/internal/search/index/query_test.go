package index

import (
	"math/rand/v2"
	"regexp"
	"strings"
	"testing"
)

// TestRequireRun: no text that holds a run is left out, and few that do not are selected.
func TestRequireRun(t *testing.T) {
	draw := rand.New(rand.NewPCG(3, 3))
	const letters = "abcXY019_. \t\nxyz\x01é"
	var texts []string
	var b Builder
	for i := range 300 {
		var text strings.Builder
		for range draw.IntN(40) {
			text.WriteByte(letters[draw.IntN(len(letters))])
		}
		texts = append(texts, text.String())
		b.Add(uint32(i), []byte(text.String()))
	}
	segment := b.Flush()
	classes := []string{"[abcX]", "[0-9]", "[A-Z]", "[x_]", "[.]", "a", "[a-z0-9_]", "[ \t]", "[y\n]"}
	selects, wanted, got := 0, 0, 0
	for range 200 {
		var run [][]byte
		src := ""
		for range 3 + draw.IntN(3) {
			class := classes[draw.IntN(len(classes))]
			src += class
			run = append(run, members(class))
		}
		var q Query
		q.RequireRun(run)
		if draw.IntN(4) == 0 {
			src += "(?s:.*)(abc|xyz)"
			q.Require([]string{"abc", "xyz"})
		}
		if !q.Selects() {
			continue
		}
		selects++
		var set Set
		q.Select(segment, &set)
		re := regexp.MustCompile(src)
		for i, text := range texts {
			switch holds := re.MatchString(text); {
			case holds && !set.Has(uint32(i)):
				t.Fatalf("%s is in %q, which was left out", src, text)
			case holds:
				wanted++
			}
		}
		got += set.Len()
	}
	if selects < 120 || got > 10*wanted+50*selects {
		t.Errorf("%d queries select %d texts, %d are wanted", selects, got, wanted)
	}
}

// members are the characters of ASCII in a class.
func members(class string) (out []byte) {
	re := regexp.MustCompile(class)
	for c := range byte(0x80) {
		if re.Match([]byte{c}) {
			out = append(out, c)
		}
	}
	return out
}
