package search

import (
	"context"
	"strings"
	"testing"

	"golang.org/x/text/encoding"
	"golang.org/x/text/encoding/charmap"
	"golang.org/x/text/encoding/japanese"
	"golang.org/x/text/encoding/korean"
	"golang.org/x/text/encoding/simplifiedchinese"
	"golang.org/x/text/encoding/unicode"
)

// TestForeign: what Read shows of a file in another encoding is found, where ripgrep would find nothing.
func TestForeign(t *testing.T) {
	encoded := func(e encoding.Encoding, s string) string {
		out, err := e.NewEncoder().String(s)
		if err != nil {
			t.Fatal(err)
		}
		return out
	}
	wide := func(e unicode.Endianness) encoding.Encoding { return unicode.UTF16(e, unicode.IgnoreBOM) }
	root := writeTree(t, map[string]string{
		"latin.txt":  encoded(charmap.Windows1252, "Die Straße führt über die Brücke nach München.\nzweite Zeile\n"),
		"sjis.txt":   encoded(japanese.ShiftJIS, "// 二つの数値の合計を計算して、結果を返します。引数が空の場合はゼロです。\n"),
		"gbk.txt":    encoded(simplifiedchinese.GBK, "// 返回两个数字之和，如果参数为空则返回零。\n"),
		"kr.txt":     encoded(korean.EUCKR, "// 두 숫자의 합을 계산하여 결과를 반환합니다. 인수가 비어 있으면 영을 반환합니다.\n"),
		"le.txt":     encoded(wide(unicode.LittleEndian), "first\nneedle in sixteen bits\n"),
		"be.txt":     encoded(wide(unicode.BigEndian), "needle too\n"),
		"large.txt":  encoded(wide(unicode.LittleEndian), strings.Repeat("a line of text\n", 5000)+"haystack\n"),
		"utf8.txt":   "Brücke\nplain\n",
		"binary.bin": "\x00\x01\x02needle\xff" + strings.Repeat("\x00\x03", 40000),
		"small.bin":  "\x00\x01\x02",
		"large.bin":  strings.Repeat("\x00\x03\xfe", 40000) + "haystack",
	})
	for _, tt := range []struct{ pattern, path, want, note string }{
		{"Straße", "", "latin.txt:1:Die Straße führt über die Brücke nach München.", "found in windows-1252"},
		{`Stra\u{df}e`, "", "latin.txt:1:Die Straße führt über die Brücke nach München.", "found in windows-1252"},
		{"合計", "", "sjis.txt:1:// 二つの", "found in shift_jis"},
		{"参数", "", "gbk.txt:1:// 返回", "found in gbk"},
		{"결과를", "", "kr.txt:1:// 두 숫자의", "found in euc-kr"},
		{"sixteen", "", "le.txt:2:needle in sixteen bits", "found in utf-16le"},
		{"haystack", "", "large.txt:5001:haystack", "found in utf-16le"},
		{"Brücke", "", "utf8.txt:1:Brücke", "such as gbk.txt, whose encoding is not UTF-8"},
		{"Brücke", "latin.txt", "latin.txt\n1:Die Straße", "found in windows-1252"},
		{"Stra.e f", "latin.txt", "latin.txt\n1:Die Straße", "found in windows-1252"},
		{"plain", "", "utf8.txt:2:plain", "3 files were not searched to the end: binary"},
		{"Nirgendwo", "", "", ""},
		{"nirgendwö", "", "", ""},
	} {
		for name, e := range newEngines(t, Config{}) {
			if name != walking {
				settle(t, e, root)
			}
			q := GrepQuery{Scope: Scope{Base: root, Path: root}, Pattern: tt.pattern, Mode: Content, LineNumbers: true}
			if tt.path != "" {
				q.Path += "/" + tt.path
			}
			r, err := e.Grep(context.Background(), q)
			if err != nil {
				t.Errorf("%s: %s: %v", name, tt.pattern, err)
				continue
			}
			notes := strings.Join(r.Notes, " ")
			if !strings.HasPrefix(r.Text, tt.want) || (tt.want == "") != (r.Text == "") ||
				!strings.Contains(notes, tt.note) || r.Unreadable > 0 {
				t.Errorf("%s: %s: got %q %q, want %q %q", name, tt.pattern, r.Text, notes, tt.want, tt.note)
			}
			q.Mode = FilesWithMatches
			if r, err := e.Grep(context.Background(), q); err != nil || (r.Files > 0) != (tt.want != "") {
				t.Errorf("%s: %s: files %+v, %v", name, tt.pattern, r, err)
			}
		}
	}
}
