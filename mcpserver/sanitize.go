package mcpserver

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Sanitize makes text from other programs safe to show on terminals, in dialogs and on pages. It replaces characters
// that are invisible or that move other text: control characters, terminal escapes, directional marks, invisible
// characters and unusual spaces. It keeps newlines and tabs.
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
			b.WriteRune('\u2400' + r) // the control picture of the character
		default:
			fmt.Fprintf(&b, "⟨U+%04X⟩", r)
		}
	}
	return b.String()
}

func unseen(r rune) bool { return r != '\n' && r != '\t' && !unicode.IsPrint(r) }
