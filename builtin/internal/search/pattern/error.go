package pattern

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// Error says what is wrong with a pattern.
type Error struct {
	Pattern string
	Pos     int    // byte offset of the trouble in Pattern
	Msg     string // what is wrong
	Hint    string // what to write instead; may be empty
}

// Error renders the pattern with a mark under the trouble.
func (e *Error) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "invalid pattern: %s, at character %d", e.Msg, utf8.RuneCountInString(e.Pattern[:e.Pos])+1)
	if len(e.Pattern) <= maxQuoted && !strings.ContainsAny(e.Pattern, "\n\r\t") {
		fmt.Fprintf(&b, "\n    %s\n    %s^", e.Pattern, strings.Repeat(" ", utf8.RuneCountInString(e.Pattern[:e.Pos])))
	}
	if e.Hint != "" {
		b.WriteString("\n" + e.Hint)
	}
	return b.String()
}

// maxQuoted is the longest pattern, in bytes, that an error repeats.
const maxQuoted = 200
