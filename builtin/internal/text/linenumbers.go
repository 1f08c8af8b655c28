package text

import (
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"
)

// Line is one line of a page.
type Line struct {
	Text   string // without its ending
	Hidden int    // characters after Text that were too many to hold
}

// blanks is the padding of a line number to six columns.
const blanks = "      "

// Number writes lines as Read shows them: the line number right-aligned to
// six columns, an arrow, the text. A line longer than clip characters is cut
// there, with a note of how many are hidden; clip 0 cuts nothing.
func Number(out *strings.Builder, lines []Line, first, clip int) {
	var room [len(blanks) + len("-9223372036854775808") + len("→")]byte
	for i, line := range lines {
		shown, hidden := clipped(line, clip)
		number := strconv.AppendInt(append(room[:0], blanks...), int64(first+i), 10)
		number = append(number, "→"...)
		out.Write(number[min(len(number)-len(blanks)-len("→"), len(blanks)):])
		out.WriteString(shown)
		if hidden > 0 {
			fmt.Fprintf(out, "… [%d more characters on this line]", hidden)
		}
		out.WriteByte('\n')
	}
}

// clipped returns the first clip characters of a line, and how many characters follow.
func clipped(line Line, clip int) (shown string, hidden int) {
	if clip <= 0 || len(line.Text) <= clip {
		return line.Text, line.Hidden
	}
	at := 0
	for range clip {
		if at >= len(line.Text) {
			return line.Text, line.Hidden
		}
		_, n := utf8.DecodeRuneInString(line.Text[at:])
		at += n
	}
	return line.Text[:at], line.Hidden + utf8.RuneCountInString(line.Text[at:])
}
