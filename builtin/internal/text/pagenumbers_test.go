package text

import (
	"bytes"
	"strings"
	"testing"

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

// TestPageOfShortLines: whoever asks for a million lines gets no more of numbers than of text.
func TestPageOfShortLines(t *testing.T) {
	for _, line := range []string{"\n", "x\n", "\r\n", "}\t\n", "ä\n"} {
		raw := strings.Repeat(line, 150_000)
		o := PageOptions{Limit: 1_000_000, MaxBytes: 20_000}
		samePage(t, raw, o, 2000)
		if shown, page := NumberPage([]byte(raw), o, 2000); len(shown) > o.MaxBytes || len(shown) < o.MaxBytes*9/10 ||
			!page.More {
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
