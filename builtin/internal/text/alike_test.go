package text

import (
	"errors"
	"strings"
	"testing"

	"golang.org/x/text/unicode/norm"
	"pgregory.net/rapid"
)

// TestNotSeen: a difference that cannot be seen is shown, and never "no place is like it".
func TestNotSeen(t *testing.T) {
	long := strings.Repeat("word ", 200)
	for _, tt := range []struct{ name, file, old, want string }{
		{"korean", norm.NFD.String("안녕 세계") + "\nzwei\n", "안녕 세계", "<U+C548><U+B155> <U+C138><U+ACC4>\n+     1→<U+110B><U+1161><U+11AB>"},
		{"zero width and mark", "a\u200b\ufeffb = 1\n", "ab = 1", "+     1→a<U+200B><U+FEFF>b = 1"},
		{"zero width in old", "ab = 1\n", "a\u200bb = 1", "-      →a<U+200B>b = 1"},
		{"soft hyphen", "soft\u00adware\n", "software", "soft<U+00AD>ware"},
		{"emoji style", "❤\ufe0f ok\n", "❤ ok", "❤<U+FE0F> ok"},
		{"control", "a\bb\n", "ab", "a<U+0008>b"},
		{"direction", "if (a\u202e) {\n", "if (a) {", "a<U+202E>)"},
		{"cyrillic", "\u0441 = 1\n", "c = 1", "<U+0441> = 1"},
		{"full width", "\uff41\uff42 = 1\n", "ab = 1", "<U+FF41><U+FF42> = 1"},
		{"ellipsis", "wait\u2026 now\n", "wait... now", "wait<U+2026> now"},
		{"dash", "a \u2013 b\n", "a - b", "a <U+2013> b"},
		{"line separator", "a\u2028b\n", "a\nb", "a<U+2028>b"},
		{"part of a long line", long + "x\u00a0= y; " + long + "\n", "x = y;", "+     1→x<U+00A0>= y;\n"},
		{"parts of two lines", long + "a\u00a0b\nc d " + long, "a b\nc d", "+     1→a<U+00A0>b\n        "},
		{"spaces and look-alikes", "if  (a\u200b)\n", "if (A)", "whitespace, upper and lower case, and invisible"},
		{"no newline at the end", "eins\nzwei", "zwei\n", "the file has no newline at its end"},
		{"no newline at the end, part of a line", "eins\nzwei drei", "drei\n", "the file has no newline at its end"},
		{"no newline at the end, CRLF", "eins\r\nzwei", "eins\nzwei\n", "the file has no newline at its end"},
		{"number for the character", "x = \"a\u00a0b\"\n", `x = "a\u00a0b"`, `old_string has \u00a0 and the like`},
		{"short number for the character", "x = \"caf\u00e9\"\n", `x = "caf\xe9"`, `old_string has \u00a0 and the like`},
		{"braces for the character", "x = \"\u00e9\"\n", `x = "\u{e9}"`, `old_string has \u00a0 and the like`},
		{"character for the number", `x = "a\u00a0b"`, "x = \"a\u00a0b\"", `the file has \u00a0 and the like`},
		{"character for the number, capitals", `x = "a\u00A0b"`, "x = \"a\u00a0b\"", `the file has \u00A0 and the like`},
		{"character for two numbers", `x = "\ud83d\ude00"`, `x = "😀"`, `the file has \u00a0 and the like`},
	} {
		_, _, err := edit(tt.file, tt.old, "zzz", false)
		var e *NotFoundError
		if !errors.As(err, &e) {
			t.Errorf("%s: error %v", tt.name, err)
			continue
		}
		if text := err.Error(); !strings.Contains(text, tt.want) || strings.Contains(text, "no place") {
			t.Errorf("%s: %s\nwant %q in it", tt.name, text, tt.want)
		}
	}
}

// TestNotSeenAnywhere does the same for one character that does not show, anywhere in a text.
func TestNotSeenAnywhere(t *testing.T) {
	odd := []rune("\u200b\u200d\ufeff\u00ad\u2060\u202e\ufe0f\u180e\U000e0041\x02")
	rapid.Check(t, func(t *rapid.T) {
		lines := rapid.SliceOfN(rapid.StringMatching(`[ \t]{0,4}[a-c(){}=é한]{1,12}( [a-c]{1,5}){0,3}`), 1,
			5).Draw(t, "lines")
		file := strings.Join(lines, "\n") + "\n"
		runes := []rune(file)
		at := rapid.IntRange(0, len(runes)-1).Draw(t, "at")
		old := string(runes[:at]) + string(rapid.SampledFrom(odd).Draw(t, "odd")) + string(runes[at:])
		if rapid.Bool().Draw(t, "in the file") {
			file, old = old, file
		}
		if _, _, err := edit(file, old, "zzz", false); err != nil {
			if text := err.Error(); strings.Contains(text, "no place") || !strings.Contains(text, "\n-") {
				t.Fatalf("%q in %q: %s", old, file, text)
			}
		}
	})
}
