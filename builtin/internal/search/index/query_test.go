package index

import (
	"math/rand/v2"
	"regexp"
	"slices"
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

// TestJoints: what stands on either side of a space is told together, but for where text is indented.
func TestJoints(t *testing.T) {
	texts := []string{
		"struct mutex lock", "struct foo; last mutex", "STRUCT MUTEX", "x\tstruct mutex", "struct\tmutex", "struct  mutex",
		"struct mutex", "destruct mutexes", "uct mu", "a struct m", "struct\nmutex\nct m t mu",
	}
	var b Builder
	for i, text := range texts {
		b.Add(uint32(i), []byte(text))
	}
	segment := b.Flush()
	for _, tt := range []struct {
		ask  string
		want []uint32
	}{
		{"struct mutex", []uint32{0, 2, 3, 6, 7}},
		{"ct m", []uint32{0, 1, 2, 3, 6, 7, 8, 9, 10}},
		{"t mu", []uint32{0, 1, 2, 3, 6, 7, 8, 10}},
		{"uct mu", []uint32{0, 2, 3, 6, 7, 8}},
		{"struct  mutex", []uint32{5}},
		{"\tstruct mutex", []uint32{3}},
	} {
		var q Query
		q.Require([]string{tt.ask})
		var got Set
		q.Select(segment, &got)
		if got := slices.Collect(got.All()); !slices.Equal(got, tt.want) {
			t.Errorf("%q: selected %v, want %v", tt.ask, got, tt.want)
		}
	}
}
