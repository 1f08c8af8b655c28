//go:build slow

package text

import (
	"math/rand/v2"
	"strings"
	"testing"
	"unicode/utf8"
)

func TestNumberPage(t *testing.T) {
	if testing.Short() {
		t.Skip("slow")
	}
	long := strings.Repeat("x", 30)
	raws := []string{
		"", "\n", "\n\n\n", "a", "a\n", "a\nb", "a\n\nb\n", numbered(10), numbered(1100), "ä\n→b\n", "\xef\xbb\xbfa\nb\n", "a\r\nb\n", "a\rb\n", "a\nb\r\n",
		"a\xffb\nc\n", russian, string(encoded(t, "gbk", chinese)), string(encoded(t, "utf-16le", "a\nb\n")), "a\x00b\nc\n",
		"a\n" + long + "\nb\n", long, strings.Repeat("ä", 30) + "\nb", strings.Repeat("\n", 60), strings.Repeat("ab\n", 20) + long + long,
		numbered(readLen/7) + "caf\xe9\n", numbered(readLen/7) + "café\n",
	}
	options := []PageOptions{
		{}, {Offset: 2}, {Limit: 1}, {Offset: 3, Limit: 2}, {Offset: 1000}, {MaxBytes: 5}, {MaxBytes: 15, Limit: 3}, {Offset: 2, MaxBytes: 1},
		{LineBytes: 8}, {Offset: readLen / 7, Limit: 5}, {Limit: 1 << 40}, {MaxBytes: 40}, {Offset: 2, MaxBytes: 3000},
	}
	for _, raw := range raws {
		for _, o := range options {
			for _, clip := range []int{0, 1, 20, 2000, 9000} {
				samePage(t, raw, o, clip)
			}
		}
	}
}

// TestPageBound: whatever its lines are, a page of more than one is no longer than its bound in characters, and in bytes if it is UTF-8.
func TestPageBound(t *testing.T) {
	if testing.Short() {
		t.Skip("slow")
	}
	const clip = 2000
	pieces := []string{"", "x", "}\t", "ä", "→", "😀", "\xff", strings.Repeat("x", clip+1), strings.Repeat("ä", clip+1),
		strings.Repeat("😀", clip), strings.Repeat("😀", clip+9), strings.Repeat("\xff", 9000)}
	r := rand.New(rand.NewPCG(1, 2))
	for round := range 300 {
		var raw strings.Builder
		few := pieces[:1+r.IntN(len(pieces))]
		for n := r.IntN(4000); n > 0 && raw.Len() < 1<<19; n-- {
			raw.WriteString(few[r.IntN(len(few))])
			raw.WriteString([]string{"\n", "\n", "\r\n", "\r"}[r.IntN(4)])
		}
		o := PageOptions{Offset: r.IntN(3), Limit: []int{0, 1, 5, 1 << 30}[r.IntN(4)],
			MaxBytes: []int{0, 100, 5000, 200_000}[r.IntN(4)]}
		contents := [][]byte{[]byte(raw.String()), encoded(t, "utf-16le", strings.ToValidUTF8(raw.String(), "?"))}
		if round%50 == 0 {
			contents, o.Offset = [][]byte{[]byte(strings.Repeat("\n", lastPadded-5) + raw.String())}, lastPadded-10
		}
		for _, content := range contents {
			shown, page := NumberPage(content, o, clip)
			most := o.MaxBytes
			if most == 0 {
				most = DefaultPageBytes
			}
			if page.Count <= 1 {
				most = clip + len(blanks) + len("→\n") + cutNote
			}
			if n := utf8.RuneCountInString(shown); n > most {
				t.Fatalf("%d characters of %d, %+v, %s, %d lines", n, most, o, page.Charset, page.Count)
			}
			if page.Charset == "utf-8" && page.Count > 1 && len(shown) > most {
				t.Fatalf("%d bytes of %d, %+v, %d lines", len(shown), most, o, page.Count)
			}
		}
	}
}
