package pattern

import "strings"

// AcceptReturns returns a pattern whose line breaks match with a carriage return before them too, for texts with CRLF.
// It reports false if the pattern names no line break, or names carriage returns already. Character classes stay as
// they are.
func AcceptReturns(text string) (string, bool) {
	if mentionsReturn(text) {
		return text, false
	}
	var b strings.Builder
	breaks, class := false, false
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case c == '\\' && i+1 < len(text):
			i++
			if text[i] == 'n' && !class {
				b.WriteString(`(?:\r?\n)`)
				breaks = true
				continue
			}
			b.WriteByte(c)
			b.WriteByte(text[i])
		case class:
			class = c != ']'
			b.WriteByte(c)
		case c == '[':
			class = true
			b.WriteByte(c)
			if strings.HasPrefix(text[i+1:], "^") {
				i++
				b.WriteByte('^')
			}
			if strings.HasPrefix(text[i+1:], "]") { // the character
				i++
				b.WriteByte(']')
			}
		case c == '\n':
			b.WriteString(`(?:\r?\n)`)
			breaks = true
		case c == '$':
			b.WriteString(`(?:\r?$)`)
		default:
			b.WriteByte(c)
		}
	}
	return b.String(), breaks
}
