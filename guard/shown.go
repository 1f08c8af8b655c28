package guard

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
	kept := func(r rune) bool { return r == '\n' || r == '\t' || !unseen(r) }
	if strings.IndexFunc(s, func(r rune) bool { return !kept(r) }) < 0 {
		return s
	}
	var b strings.Builder
	for _, r := range s {
		switch {
		case kept(r):
			b.WriteRune(r)
		case r < ' ':
			b.WriteRune('\u2400' + r) // the control picture of the character
		default:
			fmt.Fprintf(&b, "⟨U+%04X⟩", r)
		}
	}
	return b.String()
}

// unseen reports whether a character is invisible, or moves other text.
func unseen(r rune) bool {
	const emptyBraille, firstSelector, lastSelector = '\u2800', '\uFE00', '\uFE0F' // the selectors are in many emoji
	return !unicode.IsPrint(r) || r == emptyBraille ||
		unicode.In(r, unicode.Other_Default_Ignorable_Code_Point, unicode.Variation_Selector) &&
			(r < firstSelector || r > lastSelector)
}

// OneLine returns a text as one line in which every character is visible.
func OneLine(s string) string {
	return strings.NewReplacer("\n", "⏎", "\t", " ").Replace(Sanitize(strings.TrimSpace(s)))
}

// Shorten cuts the middle out of a text of more than most characters, and says how much where there is room: the end
// may be as important as the beginning.
func Shorten(s string, most int) string {
	const room = 80
	r := []rune(s)
	if len(r) <= most {
		return s
	}
	mark := func(left int) string { return "…" }
	if most >= room {
		mark = func(left int) string { return fmt.Sprintf("…(%d characters left out)…", left) }
	}
	keep := max(0, most-utf8.RuneCountInString(mark(len(r))))
	end := keep / 2
	return string(r[:keep-end]) + mark(len(r)-keep) + string(r[len(r)-end:])
}

// plainWord are the characters of words that need no quotes.
const plainWord = "abcdefghijklmnopqrstuvwxyz0123456789/._-:@%+=,"

// Quote returns words as a line of a shell in which every character is visible and each word has an end. It can be
// pasted.
func Quote(words ...string) string {
	quoted := make([]string, len(words))
	for i, w := range words {
		switch {
		case w != "" && strings.Trim(strings.ToLower(w), plainWord) == "":
			quoted[i] = w
		case strings.IndexFunc(w, unseen) < 0 && utf8.ValidString(w):
			quoted[i] = "'" + strings.ReplaceAll(w, "'", `'\''`) + "'"
		default:
			quoted[i] = escaped(w)
		}
	}
	return strings.Join(quoted, " ")
}

// escaped returns a word in the form $'…' of a shell.
func escaped(w string) string {
	var b strings.Builder
	b.WriteString("$'")
	for len(w) > 0 {
		r, size := utf8.DecodeRuneInString(w)
		switch {
		case r == utf8.RuneError && size == 1:
			fmt.Fprintf(&b, `\x%02x`, w[0])
		case r == '\'' || r == '\\':
			b.WriteString(`\` + string(r))
		case r == '\n':
			b.WriteString(`\n`)
		case r == '\t':
			b.WriteString(`\t`)
		case !unseen(r):
			b.WriteRune(r)
		case r < utf8.RuneSelf:
			fmt.Fprintf(&b, `\x%02x`, r)
		default:
			fmt.Fprintf(&b, `\U%08x`, r)
		}
		w = w[size:]
	}
	return b.String() + "'"
}
