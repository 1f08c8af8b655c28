package text

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// Indistinct returns the form that a line shares with all lines from which it cannot be told by looking: with one character for a letter
// and its accents, plain spaces, none at the end, and without the characters that do not show.
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

// LookAlike is [Indistinct], and takes all dashes and all quotes of a kind as equal, which are easily confused.
func LookAlike(s string) string {
	return strings.Map(func(r rune) rune {
		if unicode.Is(unicode.Pd, r) || r == '\u2212' {
			return '-'
		}
		return r
	}, fold(Indistinct(s), true))
}

// Escaped returns s with each character outside of ASCII, and a space at an end, as JSON escapes it, so that what does not show is seen
// and can be pasted into an argument.
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
