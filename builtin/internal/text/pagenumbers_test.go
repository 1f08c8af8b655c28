package text

import (
	"bytes"
	"math/rand/v2"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

// samePage holds [NumberPage] against pageOf and [Number].
func samePage(t *testing.T, raw string, o PageOptions, clip int) {
	t.Helper()
	want := pageOf([]byte(raw), o)
	var lines strings.Builder
	Number(&lines, want.Lines, want.First, clip)
	content := []byte(raw)
	shown, got := NumberPage(content, o, clip)
	clear(content) // what is shown shares nothing of it
	if d := cmp.Diff(want, got, cmpopts.IgnoreFields(Page{}, "Lines")); d != "" {
		t.Errorf("%.80q, %+v, clip %d (-want +got)\n%s", raw, o, clip, d)
	}
	if shown != lines.String() {
		t.Errorf("%.80q, %+v, clip %d is shown as\n%.300q, want\n%.300q", raw, o, clip, shown, lines.String())
	}
}

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

// TestPageOfShortLines: whoever asks for a million lines gets no more of numbers than of text.
func TestPageOfShortLines(t *testing.T) {
	for _, line := range []string{"\n", "x\n", "\r\n", "}\t\n", "ä\n"} {
		raw := strings.Repeat(line, 150_000)
		o := PageOptions{Limit: 1_000_000, MaxBytes: 20_000}
		samePage(t, raw, o, 2000)
		if shown, page := NumberPage([]byte(raw), o, 2000); len(shown) > o.MaxBytes || len(shown) < o.MaxBytes*9/10 || !page.More {
			t.Errorf("%q: %d bytes are shown of a page of %d", line, len(shown), o.MaxBytes)
		}
		o = PageOptions{Limit: 1_000_000}
		samePage(t, raw, o, 2000)
		shown, page := NumberPage([]byte(raw), o, 2000)
		if len(shown) > DefaultPageBytes {
			t.Errorf("%q: %d bytes are shown, at most %d may be", line, len(shown), DefaultPageBytes)
		}
		if !page.More || page.Count < DefaultPageLines || page.Next != page.Count+1 {
			t.Errorf("%q: a page of %d lines, next %d, more: %v", line, page.Count, page.Next, page.More)
		}
	}
}

// TestPageBound: whatever its lines are, a page of more than one is no longer than its bound in characters, and in bytes if it is UTF-8.
func TestPageBound(t *testing.T) {
	if testing.Short() {
		t.Skip("slow")
	}
	const clip = 2000
	pieces := []string{"", "x", "}\t", "ä", "→", "😀", "\xff", strings.Repeat("x", clip+1), strings.Repeat("ä", clip+1), strings.Repeat("😀", clip), strings.Repeat("😀", clip+9), strings.Repeat("\xff", 9000)}
	r := rand.New(rand.NewPCG(1, 2))
	for round := range 300 {
		var raw strings.Builder
		few := pieces[:1+r.IntN(len(pieces))]
		for n := r.IntN(4000); n > 0 && raw.Len() < 1<<19; n-- {
			raw.WriteString(few[r.IntN(len(few))])
			raw.WriteString([]string{"\n", "\n", "\r\n", "\r"}[r.IntN(4)])
		}
		o := PageOptions{Offset: r.IntN(3), Limit: []int{0, 1, 5, 1 << 30}[r.IntN(4)], MaxBytes: []int{0, 100, 5000, 200_000}[r.IntN(4)]}
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

// TestNumberPageLines: numbers are as wide as ever, also where they are wider than their columns.
func TestNumberPageLines(t *testing.T) {
	raw := strings.Repeat("\n", lastPadded+20)
	for _, first := range []int{1, 9, 99, 999, 9_990, 99_990, 999_900, lastPadded - 5, lastPadded + 3} {
		samePage(t, raw, PageOptions{Offset: first, Limit: 30}, 2000)
		samePage(t, raw[:first+10], PageOptions{Offset: first}, 2000)
	}
}

func FuzzNumberPage(f *testing.F) {
	f.Add([]byte("a\nb\n"), 1, 2, 100, 20)
	f.Add([]byte("a\r\n\xff\n"), 2, 1, 5, 3)
	f.Fuzz(func(t *testing.T, raw []byte, offset, limit, most, clip int) {
		if clip < 0 || most > 1<<20 {
			t.Skip()
		}
		samePage(t, string(raw), PageOptions{Offset: offset, Limit: limit, MaxBytes: most}, clip)
	})
}

func BenchmarkNumberPage(b *testing.B) {
	content := bytes.Repeat([]byte("line 003 of file 02 is neither long nor short, as code is\n"), 200)
	b.ReportAllocs()
	for b.Loop() {
		NumberPage(content, PageOptions{}, 2000)
	}
}

func BenchmarkPageOf(b *testing.B) {
	content := bytes.Repeat([]byte("line 003 of file 02 is neither long nor short, as code is\n"), 200)
	b.ReportAllocs()
	for b.Loop() {
		pageOf(content, PageOptions{}).Numbered(2000)
	}
}
