package text

import "strings"

// EOL is the line ending a text uses.
type EOL uint8

// The kinds of line ending. Mixed means that more than one of them occurs.
const (
	None EOL = iota // no line ending at all
	LF
	CRLF
	CR
	Mixed
)

// String returns the usual name of the line ending, "none" if there is none.
func (e EOL) String() string {
	switch e {
	case LF:
		return "LF"
	case CRLF:
		return "CRLF"
	case CR:
		return "CR"
	case Mixed:
		return "mixed"
	}
	return "none"
}

// sequence returns the characters that end a line. It is "\n" for None and
// Mixed: a text without an ending of its own gets the common one.
func (e EOL) sequence() string {
	switch e {
	case CRLF:
		return "\r\n"
	case CR:
		return "\r"
	}
	return "\n"
}

// eolOf finds the line ending of s by counting.
func eolOf(s string) EOL {
	c := eolCount{lf: strings.Count(s, "\n"), cr: strings.Count(s, "\r")}
	if c.cr > 0 { // most files have none, and a pass over a large one is not free
		c.crlf = strings.Count(s, "\r\n")
	}
	return c.kind()
}

// eolCount counts line feeds, carriage returns, and the pairs of both.
type eolCount struct{ lf, cr, crlf int }

// add counts the line endings of a line given without its line feed.
func (c *eolCount) add(line string, ended bool) {
	c.cr += strings.Count(line, "\r")
	if ended {
		c.lf++
		if strings.HasSuffix(line, "\r") {
			c.crlf++
		}
	}
}

func (c eolCount) kind() EOL {
	switch {
	case c.lf == 0 && c.cr == 0:
		return None
	case c.cr == 0:
		return LF
	case c.lf == 0:
		return CR
	case c.crlf == c.lf && c.crlf == c.cr:
		return CRLF
	}
	return Mixed
}

// eolNear returns the line ending for text that is put into s at start. That is uniform, unless it is Mixed; then it
// is the first ending after start, or the last one before it. In a mixed text a lone CR is not imitated: it is more
// often left by a progress display.
func eolNear(s string, start int, uniform EOL) string {
	if uniform != Mixed {
		return uniform.sequence()
	}
	i := strings.IndexByte(s[start:], '\n')
	if i >= 0 {
		i += start
	} else {
		i = strings.LastIndexByte(s[:start], '\n')
	}
	if i > 0 && s[i-1] == '\r' {
		return "\r\n"
	}
	return "\n"
}
