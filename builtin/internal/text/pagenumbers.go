package text

import (
	"bytes"
	"strconv"
	"strings"
	"unicode/utf8"
)

// NumberPage returns the page of a file that is in memory, as [ReadPage] does, and its lines as [Number] writes them.
// For most files it copies the lines directly from the file, and p.Lines is nil.
func NumberPage(content []byte, o PageOptions, clip int) (shown string, p *Page) {
	s := scannerOf(content, o.Charset)
	p = beginPage(s, &o)
	shown, copied := p.copyNumbered(s, o, clip)
	if !copied {
		p.read(s, o)
		shown = p.Numbered(clip)
	}
	_ = p.conclude(s, o) // reading from memory cannot fail
	return shown, p
}

// Numbered returns the lines of the page as [Number] writes them.
func (p *Page) Numbered(clip int) string {
	var out strings.Builder
	out.Grow(int(p.End-p.Start) + len(p.Lines)*(numberWidth+1))
	Number(&out, p.Lines, p.First, clip)
	return out.String()
}

const (
	// numberWidth is how many bytes precede a line, and lastPadded the last number with that width.
	numberWidth = len(blanks) + len("→")
	lastPadded  = 999_999
)

// copyNumbered consumes the lines of the page and returns them numbered. It returns false, and consumes nothing, if
// they cannot be copied unchanged.
func (p *Page) copyNumbered(s *lineScanner, o PageOptions, clip int) (string, bool) {
	near := s.buf[:min(len(s.buf), o.MaxBytes)]
	if len(near) == 0 || clip <= 0 || clip > o.LineBytes || p.First > lastPadded-len(near) || !s.shownAsIs(near) {
		return "", false
	}
	all := bytes.Count(near, s.newline) + 1
	lines := min(o.Limit, all)
	out := make([]byte, 0, len(near)/all*lines+len(near)/8+lines*numberWidth+1)
	number := paddedNumber(p.First)
	at, size, open := 0, 0, 0
	for p.Count < o.Limit && at < len(near) {
		length := bytes.IndexByte(near[at:], '\n')
		if length < 0 {
			length, open = len(near)-at, 1
		}
		if size += o.costOf(length); size > o.MaxBytes && p.Count > 0 {
			open = 0
			break
		}
		if length > clip || open > 0 && len(near) < len(s.buf) {
			p.Count = 0
			return "", false
		}
		out = append(append(out, number[:]...), near[at:at+length+1-open]...)
		at += length + 1 - open
		p.Count++
		next(&number)
	}
	switch {
	case at == len(near) && len(near) < len(s.buf) && p.Count < o.Limit: // the page extends beyond near
		p.Count = 0
		return "", false
	case open > 0:
		out = append(out, '\n')
	}
	p.Start, p.End = s.at, s.at+int64(at)
	p.Charset, p.EOL = s.charset.name, eolCount{lf: p.Count - open}.kind()
	s.advance(at)
	s.open = false
	return shared(out), true
}

// shownAsIs reports whether a part of a file is shown unchanged: the file is in memory, and the part is UTF-8 without
// carriage returns.
func (s *lineScanner) shownAsIs(part []byte) bool {
	if !s.inPlace || s.charset.enc != nil || bytes.IndexByte(part, '\r') >= 0 {
		return false
	}
	if s.ascii { // so far as the charset was examined
		return s.at+int64(len(part)) <= s.judged || IsASCII(part)
	}
	return utf8.Valid(part)
}

// paddedNumber returns what precedes the line with number n, which is at most [lastPadded].
func paddedNumber(n int) (number [numberWidth]byte) {
	digits := strconv.Itoa(n)
	copy(number[:], blanks)
	copy(number[len(blanks)-len(digits):], digits)
	copy(number[len(blanks):], "→")
	return number
}

// next increments the number of a line.
func next(number *[numberWidth]byte) {
	for i := len(blanks) - 1; i >= 0; i-- {
		switch number[i] {
		case '9':
			number[i] = '0'
			continue
		case ' ':
			number[i] = '1'
		default:
			number[i]++
		}
		return
	}
}
