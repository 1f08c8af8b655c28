package search

import (
	"fmt"
	"strings"
	"testing"
	"unicode/utf16"

	"github.com/toolhost/toolhost/integration/testenv"
)

// TestParts finds texts at any place in large files, and nothing in files that only seem to
// hold them.
func TestParts(t *testing.T) {
	testenv.NotShort(t, "searches 100 large files")
	const partSize = 4 * firstRead
	const size = firstRead + 2*partSize + 100
	filler := strings.Repeat("...............\n", size/16+1)[:size]
	put := func(at int, text string) string { return filler[:at] + text + filler[at:] }
	files := map[string]string{
		"none":   filler,
		"nul":    put(partSize, "\x00"),
		"both":   put(firstRead+10, "\x00 needle stock\n"),
		"bom":    "\xef\xbb\xbfneedle stock\n" + filler,
		"wide":   wide(put(firstRead/2, "needle stock\n")),
		"joined": put(firstRead+50, "xneedlex stockx"),
		"long s": put(partSize, "needle \u017ftoc\u212a"),
	}
	want := map[string]int{"both": 0, "bom": 1, "wide": 1}
	for _, edge := range []int{firstRead, firstRead + partSize - 16, firstRead + partSize, 2 * partSize,
		len(filler) - 20} {
		for off := -16; off <= 4; off++ {
			name := fmt.Sprintf("at %d", edge+off)
			files[name], want[name] = put(edge+off, "\nneedle stock\n"), 1
		}
	}
	root := writeTree(t, files)
	e := quiet(Config{})
	defer e.Close()
	for _, c := range []struct {
		pattern   string
		fold      bool
		multiline bool
		more      int // files with a match besides
	}{
		{pattern: `needle stock`}, {pattern: `^needle stock$`}, {pattern: `\bneedle\b`, more: 1}, {pattern: `needle`, more: 2},
		{pattern: `NEEDLE STOCK`, fold: true, more: 1}, {pattern: `(?i)needle\s+Stock`, more: 1}, {pattern: `needle [a-z]+$|nosuch`},
		{pattern: `needle stock\n`, multiline: true},
	} {
		r := mustGrep(t, e, root, GrepQuery{Pattern: c.pattern, Mode: Content, IgnoreCase: c.fold, Multiline: c.multiline})
		if got := len(want) - 1 + c.more; r.Files != got {
			t.Errorf("%s: %d files with a match, want %d", c.pattern, r.Files, got)
		}
	}
	r := mustGrep(t, e, root, GrepQuery{Pattern: "nosuchtext", Mode: Count})
	if r.Files != 0 || r.Binary != 0 {
		t.Errorf("%+v", r)
	}
}

// wide is a text in UTF-16.
func wide(text string) string {
	var b strings.Builder
	b.WriteString("\xff\xfe")
	for _, u := range utf16.Encode([]rune(text)) {
		b.WriteByte(byte(u))
		b.WriteByte(byte(u >> 8))
	}
	return b.String()
}
