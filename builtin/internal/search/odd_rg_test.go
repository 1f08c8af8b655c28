package search

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/toolhost/toolhost/integration/samples"
)

// oddTexts are files in encodings, with ends of lines and with characters that few
// files have.
func oddTexts() map[string]string {
	late := strings.Repeat("foo bar line\n", 8000)
	return map[string]string{
		"uni.txt": "ſtop Kelvin kelvin \u212a k s S STOP stop\nstraße STRASSE Straße\nİstanbul ıstanbul istanbul ISTANBUL\n" +
			"αβγ ΑΒΓ ς σ Σ\nna\u00efve nai\u0308ve\ne\u0301x éx ex\n\u00a0nbsp\u2028ls\u2029ps\u0085nel\nfoo\u200dbar foo\u00adbar\n" +
			"漢字 かな\n１２３ 123 ٣٤٥\n_a_ a_ _\nǆ ǅ Ǆ\n☃ 👍🏽 ✅ © ‖ #\n",
		"crlf.txt":       "foo\r\nbar\r\n\r\nfoo bar\r\nlast\r",
		"cr.txt":         "foo\rbar\rbaz",
		"crcrlf.txt":     "foo\r\r\nbar\r\r\n",
		"bom.txt":        "\xef\xbb\xbffoo\n\xef\xbb\xbfbar\n",
		"only-bom.txt":   "\xef\xbb\xbf",
		"u16le.txt":      string(utf16Text("foo\nbar ſ \u212a\nstop\n", false)),
		"u16be.txt":      string(utf16Text("foo\r\nbar\r\n", true)),
		"u16odd.txt":     string(utf16Text("foo\nbar", false)) + "x",
		"u16only.txt":    "\xff\xfe",
		"u16nul.txt":     string(utf16Text("foo\n\x00bar\nfoo\n", false)),
		"u16half.txt":    "\xff\xfe\x00\xd8f\x00o\x00o\x00\n\x00\x3d\xd8\x00\xde\n\x00\x00\xdc",
		"u16unknown.txt": "f\x00o\x00o\x00\n\x00",
		"u32.txt":        "\xff\xfe\x00\x00f\x00\x00\x00o\x00\x00\x00o\x00\x00\x00\n\x00\x00\x00",
		"nul1.txt":       "a\x00foo\nfoo\n",
		"nul2.txt":       "foo\nbar\x00\nfoo\n",
		"nul-end.txt":    "foo\nfoo\n\x00",
		"late.dat":       late + "\x00\n" + strings.Repeat("foo\n", 10),
		"late2.dat":      strings.ReplaceAll(late, "foo", "fog") + "\x00 foo\n" + strings.Repeat("foo\n", 10),
		"empty.txt":      "",
		"nl.txt":         "\n",
		"nlnl.txt":       "\n\n",
		"no-eol.txt":     "foo",
		"blank.txt":      "  foo  \n\tbar\n \n",
		"invalid.txt":    "\xff\nfoo\xff\n\xfffoo\n\xc3\x28\n\xed\xa0\x80\nk\xe2\x84\nfoo\xc5\n",
		"long.txt":       strings.Repeat("a", 100_000) + "foo\n" + strings.Repeat("ab ", 50_000) + "\n",
	}
}

var oddPatterns = []string{
	`\bs`, `\bſ`, `(?i)ſ`, `(?i)s`, `(?i)k`, "(?i)\u212a", `(?i)kelvin`, `(?i)STOP`, `(?i)straße`, `(?i)ß`, `(?i)ς`, `(?i)istanbul`,
	`(?i)İ`, `(?i)ı`, `(?i)ǆ`, `(?i)[ſ]top`, `(?i)ſtop|kelvin`, `(?i)[k]`, `(?i)[^k]$`, `(?i)\w$`, `foo(?i)BAR`, `(?i:F)oo`,
	`|`, `||`, `(|a)`, `(a|)`, `a||b`, `()|foo`, `(?:)`, `foo|`, `|foo`, `$`, `^`, `^$`, `$^`, `^^foo`, `foo$$`, `(?m)^foo$`, `(?m:^)foo`,
	`\r`, `\r$`, `foo\r`, `[\r]`, `\s$`, `\s+$`, `foo\s`, `foo.$`, `(?R)foo$`, `(?s).`, `.`, `.$`, `^.$`, `^.{3}$`, `[^a]$`,
	`\d+`, `\w+$`, `\W$`, `\B`, `\Bo`, `o\B`, `\b`, `^\b`, `\b$`, `\bé`, `é\b`, `\b漢`, `字\b`, `\b{start}foo`, `foo\b{end}`,
	`\b{start-half}foo`, `foo\b{end-half}`, `\<foo`, `foo\>`, `\p{L}+`, `\P{Greek}$`, `\p{sc=Greek}`, `\p{gc=Lu}`, `\p{ascii}`,
	`[[:^alpha:]]`, `[a-c&&b-d]`, `[a-c~~b-d]`, `[]a]`, `[[a]b]`, `a{0}`, `a{2,}`, `a**`, `a??`, `\x{e9}`, `\u00e9`, `\U000000e9`,
	`(?x)f o o`, `(?x)foo\ bar`, `(?U)fo+`, `((((((((((foo))))))))))`, `(foo|bar)+$`, `(foo)*$`, `[\S\s]`, `[^\S\s]`, `é{2}`,
	`[f\n]`, `o[,\n]`, `[\nr]$`, `[\s\n]o`,
	`\p{Emoji}`, `\p{Emoji_Presentation}`, `\P{ExtPict}$`, `\b\p{XID_Start}\p{XID_Continue}*\b`, `[\p{Math}--\p{Sm}]`, `\p{IDS}{3}`, `\p{EMod}`, `[\p{EBase}\p{EComp}]`,
}

// TestOddTextsAsRipgrep asks ripgrep about texts and patterns that few people think of.
//
// Known to be otherwise, and left so: without multiline, ripgrep takes \A, \z and (?-m)^ for
// the ends of what it holds of a file at that moment; here they are those of each line. With
// multiline, [^\S\n] matches a return before the newline there; here no more than within lines.
func TestOddTextsAsRipgrep(t *testing.T) {
	if testing.Short() {
		t.Skip("slow")
	}
	rg := ripgrep(t)
	es := newEngines(t, Config{MaxLine: -1, MaxText: 1 << 30})
	root := t.TempDir()
	for name, text := range oddTexts() {
		if err := os.WriteFile(filepath.Join(root, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for i, p := range samples.Of(oddPatterns, 1) {
		for m, q := range []GrepQuery{{Mode: Content, LineNumbers: true}, {Mode: Count},
			{Mode: Content, Multiline: true}} {
			if samples.Whole() || i%3 == m {
				q.Pattern = p
				compareGrep(t, es, rg, root, q)
			}
		}
	}
}
