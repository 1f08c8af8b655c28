package mcpserver

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Sanitize makes text from other programs safe to show on terminals, in dialogs and on pages. It replaces what a reader
// cannot see, and what moves other text around: control characters, terminal escapes, marks of direction, invisible characters and
// unusual blanks. Newlines and tabs stay.
func Sanitize(s string) string {
	s = strings.ToValidUTF8(s, string(utf8.RuneError))
	if strings.IndexFunc(s, unseen) < 0 {
		return s
	}
	var b strings.Builder
	for _, r := range s {
		switch {
		case !unseen(r):
			b.WriteRune(r)
		case r < ' ':
			b.WriteRune('\u2400' + r) // the picture of the control character
		default:
			fmt.Fprintf(&b, "⟨U+%04X⟩", r)
		}
	}
	return b.String()
}

func unseen(r rune) bool { return r != '\n' && r != '\t' && !unicode.IsPrint(r) }
