package shell

import (
	"bytes"
	"unicode/utf8"

	"github.com/charmbracelet/x/ansi/parser"
)

// lineMax is how many bytes of one line are held, so that a carriage return can redraw it. A longer line is emitted
// in pieces of this size: a flood of output without newlines needs no more memory.
const lineMax = 64 << 10

// sequenceMax is how far back the end of a piece is moved so as not to cut
// an escape sequence; common ones are a few bytes long.
const sequenceMax = 64

// CleanText returns what a terminal would show of text in the end, without colours. Escape sequences are removed; if
// carriage returns overwrite a line repeatedly, only its last state is kept; backspaces remove the character before
// them; other control characters are removed; invalid UTF-8 becomes U+FFFD; CR LF becomes LF. Cleaning twice is the
// same as cleaning once.
func CleanText(text string) string {
	var out bytes.Buffer
	c := newCleaner(func(p []byte) { out.Write(p) })
	c.Write([]byte(text))
	c.Flush()
	return out.String()
}

// A cleaner cleans a stream. What it emits depends on the bytes alone, and not on how they are split into calls of
// Write.
type cleaner struct {
	emit    func([]byte) // must not keep its argument
	line    []byte       // the current state of the current line, as it came
	shown   []byte       // an earlier state of it, cleaned
	cr      bool         // a carriage return came last
	max     int          // lineMax
	scratch []byte
}

func newCleaner(emit func([]byte)) cleaner { return cleaner{emit: emit, max: lineMax} }

// Write cleans more of the stream.
func (c *cleaner) Write(p []byte) {
	for len(p) > 0 {
		if !c.cr && len(c.line) == 0 && len(c.shown) == 0 {
			if n := plainLines(p); n > 0 {
				c.emit(p[:n])
				p = p[n:]
				continue
			}
		}
		if c.cr && p[0] != '\n' && p[0] != '\r' {
			c.redraw()
		}
		n := lineEnd(p)
		c.add(p[:n])
		if n == len(p) {
			return
		}
		if p[n] == '\n' {
			c.endLine()
		} else {
			c.cr = true
		}
		p = p[n+1:]
	}
}

// Flush emits the last line, which has no newline.
func (c *cleaner) Flush() {
	if rest := c.state(); len(rest) > 0 {
		c.emit(rest)
	}
	c.line, c.shown, c.cr = c.line[:0], nil, false
}

// state returns what the current line shows, until the next call.
func (c *cleaner) state() []byte {
	c.scratch = appendClean(c.scratch[:0], c.line)
	if len(c.scratch) == 0 && !erases(c.line) {
		c.scratch = append(c.scratch, c.shown...)
	}
	return c.scratch
}

// erases reports whether a line without visible characters holds the sequence
// that erases a line. Others (colours) leave what was shown before.
func erases(line []byte) bool {
	for _, seq := range []string{"\x1b[K", "\x1b[0K", "\x1b[2K"} {
		if bytes.Contains(line, []byte(seq)) {
			return true
		}
	}
	return false
}

// redraw begins the current line again, after a carriage return.
func (c *cleaner) redraw() {
	c.shown = bytes.Clone(c.state())
	c.line, c.cr = c.line[:0], false
}

// endLine emits the last state of the line and its newline.
func (c *cleaner) endLine() {
	c.scratch = append(c.state(), '\n')
	c.emit(c.scratch)
	c.line, c.shown, c.cr = c.line[:0], nil, false
}

// add appends to the line and emits pieces of it when it becomes too long.
func (c *cleaner) add(p []byte) {
	for len(c.line)+len(p) > c.max {
		n := c.max - len(c.line)
		c.line = append(c.line, p[:n]...)
		p = p[n:]
		cut := pieceEnd(c.line)
		c.scratch = appendClean(c.scratch[:0], c.line[:cut])
		c.emit(c.scratch)
		c.line = append(c.line[:0], c.line[cut:]...)
		c.shown = nil
	}
	c.line = append(c.line, p...)
}

// pieceEnd returns where to cut a line that is too long: not inside a character
// or an escape sequence.
func pieceEnd(line []byte) int {
	from := len(line) - sequenceMax
	if i := bytes.LastIndexByte(line[from:], 0x1b); i >= 0 {
		return from + i
	}
	for i := len(line) - 1; i >= len(line)-utf8.UTFMax; i-- {
		if utf8.RuneStart(line[i]) {
			if !utf8.FullRune(line[i:]) {
				return i
			}
			break
		}
	}
	return len(line)
}

// lineEnd returns the index of the first newline or carriage return, or len(p).
func lineEnd(p []byte) int {
	n := len(p)
	if i := bytes.IndexByte(p, '\n'); i >= 0 {
		n = i
	}
	if i := bytes.IndexByte(p[:n], '\r'); i >= 0 {
		n = i
	}
	return n
}

// isPlain says for each byte whether it needs no cleaning.
var isPlain = func() (t [256]bool) {
	for b := 0x20; b < 0x7f; b++ {
		t[b] = true
	}
	t['\t'], t['\n'] = true, true
	return t
}()

// plainLen returns how many bytes at the start of p need no cleaning.
func plainLen(p []byte) int {
	for i, b := range p {
		if !isPlain[b] {
			return i
		}
	}
	return len(p)
}

// plainLines returns the length of the whole lines at the start of p that need no
// cleaning.
func plainLines(p []byte) int {
	return bytes.LastIndexByte(p[:plainLen(p)], '\n') + 1
}

// appendClean appends a cleaned line or piece of one to dst, which is empty.
func appendClean(dst, line []byte) []byte {
	if plainLen(line) == len(line) {
		return append(dst, line...)
	}
	if !utf8.Valid(line) {
		line = bytes.ToValidUTF8(line, []byte("\uFFFD"))
	}
	// The table is that of ansi.Strip. The package ansi itself is not used: it
	// builds tables when the program starts, which takes 20 ms in the server and
	// in every supervisor, and it takes bytes of UTF-8 for C1 controls.
	state := parser.GroundState
	for i := 0; i < len(line); {
		if line[i] >= utf8.RuneSelf {
			r, size := utf8.DecodeRune(line[i:])
			if !inString(state) {
				state = parser.GroundState
				if r >= 0xa0 { // below are the C1 controls
					dst = append(dst, line[i:i+size]...)
				}
			}
			i += size
			continue
		}
		next, action := parser.Table.Transition(state, line[i])
		switch {
		case action == parser.PrintAction && line[i] != 0x7f, action == parser.ExecuteAction && line[i] == '\t':
			dst = append(dst, line[i])
		case action == parser.ExecuteAction && line[i] == '\b':
			_, size := utf8.DecodeLastRune(dst)
			dst = dst[:len(dst)-size]
		}
		state = next
		i++
	}
	return dst
}

// inString reports whether a state is inside a sequence that holds text, such as a
// window title.
func inString(s parser.State) bool {
	switch s {
	case parser.OscStringState, parser.DcsStringState, parser.SosStringState, parser.PmStringState, parser.ApcStringState:
		return true
	}
	return false
}
