package text

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// Indistinct returns the same form for all lines that cannot be told apart by looking at them: accents combined with
// their letters, plain spaces, no spaces at the end, and no invisible characters.
func Indistinct(s string) string {
	if isPlain(s) && !strings.Contains(s, "\t") {
		return strings.TrimRight(s, " ")
	}
	return strings.TrimRight(strings.Map(func(r rune) rune {
		switch {
		case r == '\t' || unicode.Is(unicode.Zs, r):
			return ' '
		case r != '\n' && r != utf8.RuneError && isInvisible(r):
			return -1
		}
		return r
	}, norm.NFC.String(s)), " ")
}

// LookAlike is [Indistinct] for characters that are easily confused too: it makes equal all dashes, all quotes of a
// kind, letters of other scripts with the shape of a Latin one, and characters of different width.
func LookAlike(s string) string {
	if isPlain(s) {
		return Indistinct(s)
	}
	return homoglyphs.Replace(strings.Map(func(r rune) rune {
		if unicode.Is(unicode.Pd, r) || r == '\u2212' {
			return '-'
		}
		return r
	}, fold(norm.NFKC.String(Indistinct(s)), true)))
}

// homoglyphs replaces Cyrillic and Greek letters by the Latin letters of the same shape.
var homoglyphs = func() *strings.Replacer {
	var pairs []string
	for _, alphabet := range [][2]string{
		{"\u0430\u0441\u0435\u043e\u0440\u0445\u0443\u0456\u0458\u0455\u04bb\u0501", "aceopxyijshd"},
		{"\u0410\u0412\u0415\u041a\u041c\u041d\u041e\u0420\u0421\u0422\u0425\u0406\u0408\u0405", "ABEKMHOPCTXIJS"},
		{"\u0391\u0392\u0395\u0396\u0397\u0399\u039a\u039c\u039d\u039f\u03a1\u03a4\u03a5\u03a7\u03bf", "ABEZHIKMNOPTYXo"},
	} {
		for i, r := range []rune(alphabet[0]) {
			pairs = append(pairs, string(r), alphabet[1][i:i+1])
		}
	}
	return strings.NewReplacer(pairs...)
}()

// Escaped returns s with non-ASCII characters and spaces at its end in the escapes of JSON, so that invisible
// characters can be seen, and pasted into an argument.
func Escaped(s string) string {
	var b strings.Builder
	last := len(strings.TrimRight(s, " "))
	for i, r := range s {
		switch {
		case r >= 0x7f || r < ' ' || r == ' ' && (i == 0 || i >= last):
			for _, unit := range utf16.AppendRune(nil, r) {
				fmt.Fprintf(&b, `\u%04x`, unit)
			}
		default:
			b.WriteRune(r)
		}
	}
	return b.String()
}
