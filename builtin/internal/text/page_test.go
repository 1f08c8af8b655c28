package text

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/iotest"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

// pageOf is [ReadPage] of a file that is in memory.
func pageOf(content []byte, o PageOptions) *Page {
	p, _ := readPage(scannerOf(content, o.Charset), o) // what is in memory can be read
	return p
}

func TestReadPage(t *testing.T) {
	crlf := strings.ReplaceAll(numbered(3), "\n", "\r\n")
	tests := []struct {
		name string
		raw  string
		opts PageOptions
		want Page
	}{
		{"empty", "", PageOptions{}, Page{First: 1, Exact: true, Charset: "utf-8"}},
		{"only a newline", "\n", PageOptions{}, Page{Lines: []Line{{}}, First: 1, End: 1, Total: 1, Exact: true, Charset: "utf-8", EOL: LF}},
		{"no final newline", "a\nb", PageOptions{}, Page{Lines: []Line{{Text: "a"}, {Text: "b"}}, First: 1, End: 3, Total: 2, Exact: true, Charset: "utf-8", EOL: LF}},
		{"middle", numbered(10), PageOptions{Offset: 4, Limit: 2},
			Page{Lines: []Line{{Text: "line 4"}, {Text: "line 5"}}, First: 4, Start: 21, End: 35, More: true, Next: 6,
				Total: 10, Exact: true, Charset: "utf-8", EOL: LF}},
		{"behind the end", numbered(10), PageOptions{Offset: 11}, Page{First: 11, Start: 71, End: 71, Total: 10, Exact: true, Charset: "utf-8"}},
		{"far behind the end", "a\nb", PageOptions{Offset: 1000}, Page{First: 1000, Start: 3, End: 3, Total: 2, Exact: true, Charset: "utf-8"}},
		{"CRLF", crlf, PageOptions{Limit: 1}, Page{Lines: []Line{{Text: "line 1"}}, First: 1, End: 8, More: true, Next: 2, Total: 3, Exact: true, Charset: "utf-8", EOL: CRLF}},
		{"bounded by bytes", numbered(10), PageOptions{MaxBytes: 33}, Page{Lines: []Line{{Text: "line 1"}, {Text: "line 2"}}, First: 1, End: 14, More: true, Next: 3, Total: 10, Exact: true, Charset: "utf-8", EOL: LF}},
		{"the last line is too much", "aaaa\nbbbb", PageOptions{MaxBytes: 5}, Page{Lines: []Line{{Text: "aaaa"}}, First: 1, End: 5, More: true, Next: 2, Total: 2, Exact: true, Charset: "utf-8", EOL: LF}},
		{"one line over the bound", "aaaaaaaa\nb\n", PageOptions{MaxBytes: 5}, Page{Lines: []Line{{Text: "aaaaaaaa"}}, First: 1, End: 9, More: true, Next: 2, Total: 2, Exact: true, Charset: "utf-8", EOL: LF}},
		{"long line", "aé" + strings.Repeat("ü", 50) + "\nb\n", PageOptions{LineBytes: 4}, Page{Lines: []Line{{Text: "aé", Hidden: 50}, {Text: "b"}}, First: 1, End: 106, Total: 2, Exact: true, Charset: "utf-8", EOL: LF}},
		{"mark", "\xef\xbb\xbfa\n", PageOptions{}, Page{Lines: []Line{{Text: "a"}}, First: 1, Start: 3, End: 5, Total: 1, Exact: true, Charset: "utf-8", BOM: true, EOL: LF}},
		{"UTF-16", "\xff\xfe" + string(encoded(t, "utf-16le", "Ċa\r\nĊb\r\n")), PageOptions{Offset: 2}, // U+010A has a byte 0A
			Page{Lines: []Line{{Text: "Ċb"}}, First: 2, Start: 10, End: 18, Total: 2, Exact: true, Charset: "utf-16le",
				BOM: true, EOL: CRLF}},
		{"GBK", string(encoded(t, "gbk", chinese)), PageOptions{Limit: 1}, Page{Lines: lines(chinese)[:1], First: 1, End: 52, More: true, Next: 2, Total: 2, Exact: true, Charset: "gbk", EOL: LF}},
		{"damaged UTF-8", russian + "\xff\n", PageOptions{Offset: 3}, Page{Lines: []Line{{Text: "\xff"}}, First: 3, Start: int64(len(russian)), End: int64(len(russian)) + 2, Total: 3, Exact: true, Charset: "utf-8", EOL: LF, Invalid: 1}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			tt.want.Count = len(tt.want.Lines)
			got, err := ReadPage(strings.NewReader(tt.raw), tt.opts)
			if err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(&tt.want, got, cmpopts.EquateEmpty()); d != "" {
				t.Errorf("(-want +got)\n%s", d)
			}
			if d := cmp.Diff(&tt.want, pageOf([]byte(tt.raw), tt.opts), cmpopts.EquateEmpty()); d != "" {
				t.Errorf("in memory (-want +got)\n%s", d)
			}
		})
	}
}

func TestReadPageCountsSoFar(t *testing.T) {
	raw := strings.Repeat("x\n", 2*readLen)
	got, err := ReadPage(strings.NewReader(raw), PageOptions{Limit: 1, CountBytes: 1})
	if err != nil {
		t.Fatal(err)
	}
	if got.Exact || !got.More || got.Total < 2 || got.Total >= strings.Count(raw, "\n") {
		t.Errorf("total %d, exact %v, more %v", got.Total, got.Exact, got.More)
	}
}

func TestReadPageLegacyBehindTheHead(t *testing.T) {
	raw := strings.Repeat("ascii only\n", readLen/10) + "caf\xe9\n"
	got, err := ReadPage(strings.NewReader(raw), PageOptions{Offset: readLen/10 + 1})
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff([]Line{{Text: "café"}}, got.Lines); d != "" || got.Charset != "windows-1252" {
		t.Errorf("%s %s", got.Charset, d)
	}
	if d := cmp.Diff(got, pageOf([]byte(raw), PageOptions{Offset: readLen/10 + 1})); d != "" {
		t.Errorf("(-read +in memory)\n%s", d)
	}
}

// What is in memory is judged as a whole: a page may hold too little to tell.
func TestPageOfLegacyBehindTheHead(t *testing.T) {
	number := "no. " + string(encoded(t, "windows-1251", "№")) + "1\n"
	raw := strings.Repeat("plain\n", readLen/6) + number + strings.Repeat("plain\n",
		1000) + string(encoded(t, "windows-1251", russian))
	p := pageOf([]byte(raw), PageOptions{Offset: readLen/6 + 1, Limit: 1})
	if whole := Decode([]byte(raw)); p.Charset != "windows-1251" || whole.Charset() != p.Charset ||
		p.Lines[0].Text != "no. №1" {
		t.Errorf("shown in %s, edited in %s: %+v", p.Charset, whole.Charset(), p.Lines)
	}
}

func TestReadPageError(t *testing.T) {
	if _, err := ReadPage(io.MultiReader(strings.NewReader("a\n"), iotest.ErrReader(os.ErrPermission)),
		PageOptions{}); err == nil {
		t.Error("no error")
	}
}

func TestNumber(t *testing.T) {
	var b strings.Builder
	numbered := append(lines("a\r\n\tb\n日本語日本語"), Line{Text: "cut", Hidden: 7})
	Number(&b, numbered, 9, 4)
	want := "     9→a\n    10→\tb\n    11→日本語日… [2 more characters on this line]\n    12→cut… [7 more characters on this line]\n"
	if b.String() != want {
		t.Errorf("got\n%s\nwant\n%s", b.String(), want)
	}
}

// FuzzReadPage compares pages with a naive splitting of the whole text.
func FuzzReadPage(f *testing.F) {
	f.Add([]byte("a\nb\r\nc"), 2, 1, 10, 10)
	f.Add([]byte("\xff\xfea\x00\n\x00b\x00"), 1, 5, 10, 10)
	f.Add([]byte("a\nbb\nccccccccc\nd\n"), 2, 3, 100, 4)
	f.Add([]byte("a\nb\n\x00c"), 1, 3, 3, 4)
	f.Fuzz(func(t *testing.T, raw []byte, offset, limit, maxBytes, lineBytes int) {
		o := PageOptions{Offset: offset, Limit: limit, MaxBytes: maxBytes, LineBytes: lineBytes}
		got, err := ReadPage(bytes.NewReader(raw), o)
		if err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(got, pageOf(bytes.Clone(raw), o), cmpopts.EquateEmpty()); d != "" {
			t.Fatalf("(-read +in memory)\n%s", d)
		}
		text := Decode(bytes.Clone(raw))
		if text.charset.unit > 1 && len(raw)%text.charset.unit != 0 {
			return // half a unit at the end belongs to no line
		}
		want := lines(text.String())
		if got.Charset != text.charset.name || !got.Exact || got.Total != len(want) {
			t.Fatalf("%s, %d lines (exact: %v), want %s, %d", got.Charset, got.Total, got.Exact,
				text.charset.name, len(want))
		}
		if got.More != (len(got.Lines) > 0 && got.First+len(got.Lines)-1 < len(want)) {
			t.Fatalf("more: %v after %d of %d", got.More, got.First+len(got.Lines)-1, len(want))
		}
		for i, line := range got.Lines {
			full := want[got.First-1+i].Text
			switch {
			case line.Hidden == 0 && line.Text != full && !strings.Contains(full, "\r"):
				t.Fatalf("line %d is %q, want %q", i, line.Text, full)
			case line.Hidden > 0 && utf8.ValidString(full) && !strings.HasPrefix(full, withoutLast(line.Text, 3)):
				t.Fatalf("line %d is %q…, want %q", i, line.Text, full)
			}
		}
	})
}

// withoutLast drops n characters: those of a line that was cut may come from
// the pieces of one that needs more bytes.
func withoutLast(s string, n int) string {
	runes := []rune(s)
	return string(runes[:max(0, len(runes)-n)])
}

func BenchmarkPageMiddle(b *testing.B) {
	const size = 216 << 20
	path := filepath.Join(b.TempDir(), "big")
	line := "2026-01-01T00:00:00Z INFO request served in 12 ms by worker 7\n"
	if err := os.WriteFile(path, bytes.Repeat([]byte(line), size/len(line)), 0o600); err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		f, err := os.Open(path)
		if err != nil {
			b.Fatal(err)
		}
		p, err := ReadPage(f, PageOptions{Offset: size / len(line) / 2})
		if err != nil || len(p.Lines) == 0 {
			b.Fatal(err, p)
		}
		f.Close()
	}
}

func BenchmarkEdit1MB(b *testing.B) {
	lf := code(1 << 20)
	for _, bb := range []struct{ name, file, old string }{
		{"exact", lf, "\tneedle := 1\n"},
		{"CRLF", strings.ReplaceAll(lf, "\n", "\r\n"), "\tneedle := 1\n}\n"},
		{"quotes", strings.Replace(lf, "needle := 1", "needle := \u201c1\u201d", 1), "needle := \"1\""},
	} {
		b.Run(bb.name, func(b *testing.B) {
			raw := []byte(bb.file)
			b.SetBytes(int64(len(raw)))
			for b.Loop() {
				t := Decode(raw)
				m, err := Find(t, bb.old, strings.Replace(bb.old, "1", "2", 1), false)
				if err != nil {
					b.Fatal(err)
				}
				if _, err := Apply(t, m); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
	b.Run("diff", func(b *testing.B) {
		changed := strings.Replace(lf, "needle := 1", "needle := 2", 1)
		for b.Loop() {
			Diff("f", lf, changed, 3, 200)
		}
	})
}

// code returns about n bytes of Go with one needle in the middle.
func code(n int) string {
	var b strings.Builder
	for i := 0; b.Len() < n; i++ {
		fmt.Fprintf(&b, "func f%d(a, b int) (int, error) {\n\tif a > %d {\n\t\treturn b, nil\n\t}\n", i, i%97)
		if b.Len() > n/2 && b.Len() < n/2+85 {
			b.WriteString("\tneedle := 1\n")
		}
		b.WriteString("}\n\n")
	}
	s := b.String()
	if strings.Count(s, "needle := 1") != 1 {
		i := strings.Index(s, "needle")
		s = s[:i+10] + strings.ReplaceAll(s[i+10:], "\tneedle := 1\n", "")
	}
	return s
}

func BenchmarkNotFound20000Lines(b *testing.B) {
	file := strings.Join(strings.SplitAfterN(code(1<<20), "\n", 20_001)[:20_000], "")
	old := "func f1200(a, b int) (int, error) {\n    if a > 36 {\n        return b, nil\n    }\n    x := 1\n}\n"
	t := Decode([]byte(file))
	for b.Loop() {
		if _, err := Find(t, old, "x", false); err == nil {
			b.Fatal("found")
		}
	}
}

// lines splits s at its line endings ("\n" and "\r\n").
func lines(s string) []Line {
	var lines []Line
	for line := range strings.Lines(s) {
		lines = append(lines, Line{Text: trimEnding(line)})
	}
	return lines
}

func trimEnding(line string) string {
	line, ended := strings.CutSuffix(line, "\n")
	if ended {
		line = strings.TrimSuffix(line, "\r")
	}
	return line
}
