package search

import (
	"bytes"
	"fmt"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/toolhost/toolhost/builtin/internal/search/pattern"
	"github.com/toolhost/toolhost/builtin/internal/search/walk"
)

// output renders what is found in one file.
type output struct {
	*worker
	file  file
	text  []byte // the decoded text, without what is not searched
	chunk *chunk
	// whole says that the text is known to hold no NUL byte. plain is the argument for Matcher.Reset.
	whole, plain bool
	// state is what is known of the file; if it is nil, handle is the open file.
	state  *fileState
	handle walk.Handle

	path string // see name

	matches int
	at      int // position up to which lines are counted, the start of a line
	line    int // its number, from 1
	after   int // lines of context still to print
	printed int // end of the last printed line, -1: none
	entries int
}

// modified is when the file was changed, in nanoseconds since 1970.
func (o *output) modified() (int64, error) {
	if o.state != nil {
		return o.state.stamp.Change, nil
	}
	info, err := o.handle.Stat()
	return info.Change, err
}

// lines searches line by line. It checks whether the file is binary only when needed: before all bytes are scanned,
// or after the first line with a literal has matched.
func (o *output) lines() {
	scans := o.matcher.Scans()
	if scans && o.limit() {
		o.matcher.Reset(o.text, false)
	}
	s, ok := o.matcher.Next()
	if !ok {
		return
	}
	if !scans {
		o.limit()
	}
	q := o.search.query
	for ; ok && s.Start < len(o.text) && s.End <= len(o.text); s, ok = o.matcher.Next() {
		o.matches++
		switch q.Mode {
		case FilesWithMatches:
			return
		case Content:
			o.group(s)
			if o.full() {
				return
			}
		}
	}
	o.trail(len(o.text))
}

// limit cuts the text where ripgrep would take it for binary, and reports whether ripgrep does.
func (o *output) limit() bool {
	if o.whole {
		return false
	}
	text, binary := pattern.Limit(o.text)
	if !binary {
		return false
	}
	o.search.addBinary(o.file)
	if o.search.query.Mode == Count {
		text = nil // ripgrep does not count a part
	}
	o.text = text
	return true
}

// full reports whether the page has no room for more of this file.
func (o *output) full() bool {
	q := o.search.query
	return q.Limit > 0 && o.entries > q.Limit+q.Offset || len(o.chunk.text) > o.search.config.MaxText
}

// group prints a matching line, or only its matches, with context.
func (o *output) group(s pattern.Span) {
	q := o.search.query
	o.trail(s.Start)
	o.lead(s.Start)
	if q.Only {
		o.parts(s)
	} else {
		o.emit(s, s, ':', 1)
	}
	o.after = q.After
}

// lead prints the context before a match, up to the position to.
func (o *output) lead(to int) {
	q, from := o.search.query, to
	for n := 0; n < q.Before && from > o.printed+1; n++ {
		from = bytes.LastIndexByte(o.text[:from-1], '\n') + 1
	}
	for from < to {
		line := pattern.Span{Start: from, End: from + bytes.IndexByte(o.text[from:], '\n')}
		o.emit(line, line, '-', 0)
		from = line.End + 1
	}
}

// parts prints only the matches in a line or in a block of lines. The part of a match in each line is an entry,
// unless it is empty.
func (o *output) parts(s pattern.Span) {
	for m := range o.matcher.Within(s) {
		count := 1
		for from := m.Start; from < m.End && !o.full(); {
			part := pattern.Span{Start: from, End: m.End}
			if k := bytes.IndexByte(o.text[from:m.End], '\n'); k >= 0 {
				part.End = from + k
			}
			if len(bytes.TrimSuffix(o.text[part.Start:part.End], carriageReturn)) > 0 {
				o.emit(s, part, ':', count)
				count = 0
			}
			from = part.End + 1
		}
		if o.full() {
			return
		}
	}
	o.printed = s.End
}

// trail prints the context after the last match, up to the position to.
func (o *output) trail(to int) {
	for ; o.after > 0 && o.printed >= 0 && o.printed+1 < to; o.after-- {
		from := o.printed + 1
		end := len(o.text)
		if k := bytes.IndexByte(o.text[from:], '\n'); k >= 0 {
			end = from + k
		}
		line := pattern.Span{Start: from, End: end}
		o.emit(line, line, '-', 0)
	}
}

// spans searches a text in which matches may span lines; each match prints all
// of its lines. Matches in touching lines make one block. A NUL byte in the
// first buffer or in a block ends the search, as in ripgrep.
func (o *output) spans() {
	if len(o.text) == 0 {
		return
	}
	if !o.whole && isBinary(o.text) {
		if _, ok := o.matcher.NextMatch(0); ok {
			o.search.addBinary(o.file)
		}
		return
	}
	block, open, found := pattern.Span{}, false, 0
	for from := 0; from <= len(o.text); {
		m, ok := o.matcher.NextMatch(from)
		if !ok || m.Start == len(o.text) && o.text[m.Start-1] == '\n' {
			break
		}
		if from = m.End; m.End == m.Start {
			from++
		}
		lines := block
		if !open || m.End > block.End { // a match within the block ends no later than the block does
			lines = o.linesOf(m)
		}
		if open && lines.Start <= block.End+1 {
			block.End = max(block.End, lines.End)
			found++
			continue
		}
		if open && !o.block(block, found) {
			return
		}
		block, open, found = lines, true, 1
	}
	if open && o.block(block, found) {
		o.trail(len(o.text))
	}
}

// linesOf returns the span of the lines that contain a match, without the last newline.
func (o *output) linesOf(m pattern.Span) pattern.Span {
	start := bytes.LastIndexByte(o.text[:m.Start], '\n') + 1
	if m.End > m.Start && o.text[m.End-1] == '\n' {
		return pattern.Span{Start: start, End: m.End - 1}
	}
	if k := bytes.IndexByte(o.text[m.End:], '\n'); k >= 0 {
		return pattern.Span{Start: start, End: m.End + k}
	}
	return pattern.Span{Start: start, End: len(o.text)}
}

// block processes a block of lines with found matches. It reports false when the search of this file has ended.
func (o *output) block(s pattern.Span, found int) bool {
	if bytes.IndexByte(o.text[s.Start:s.End], 0) >= 0 {
		o.search.addBinary(o.file)
		if o.search.query.Mode == Count {
			o.matches = 0
		}
		return false
	}
	o.matches += found
	if o.search.query.Mode != Content {
		return o.search.query.Mode == Count
	}
	if o.search.query.Only {
		o.group(s)
		return !o.full()
	}
	for from := s.Start; from <= s.End; {
		end := s.End
		if k := bytes.IndexByte(o.text[from:s.End], '\n'); k >= 0 {
			end = from + k
		}
		o.group(pattern.Span{Start: from, End: end})
		if o.full() {
			return false
		}
		from = end + 1
	}
	return true
}

// emit prints a part of a line, or of a block of lines, as one entry that counts as that many matches. The part may
// be the whole line. The separator is : for matches, - for context.
func (o *output) emit(line, part pattern.Span, sep byte, matches int) {
	q, c := o.search.query, o.chunk
	if !o.search.headed() {
		c.text = append(append(c.text, o.name()...), sep)
	}
	if q.LineNumbers {
		o.line += bytes.Count(o.text[o.at:part.Start], newline)
		o.at = part.Start
		c.text = append(strconv.AppendInt(c.text, int64(o.line), 10), sep)
	}
	text := bytes.TrimSuffix(o.text[part.Start:part.End], carriageReturn)
	if n := o.search.config.MaxLine; n > 0 && len(text) > n {
		at := 0
		if matches > 0 && !q.Only && o.search.pattern.Lines {
			at = o.matcher.Where(o.text[part.Start:part.End])
		}
		c.text = clip(c.text, text, n, at)
	} else {
		c.text = append(c.text, text...)
	}
	c.text = append(c.text, '\n')
	e := entry{first: o.entries == 0, apart: o.printed < 0 || line.Start > o.printed+1, count: matches,
		mtime: byMtime{number: o.file.number}}
	o.printed = line.End
	o.add(e)
}

var newline, carriageReturn = []byte{'\n'}, []byte{'\r'}

func (o *output) add(e entry) {
	o.entries++
	e.end = len(o.chunk.text)
	o.chunk.entries = append(o.chunk.entries, e)
}

func (o *output) name() string {
	if o.path == "" {
		o.path = printable(o.search.list.printed(o.file))
	}
	return o.path
}

// printable keeps a name from looking like more than one line.
func printable(path string) string {
	if isPlain(path) || strings.IndexFunc(path, unicode.IsControl) < 0 {
		return path
	}
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return utf8.RuneError
		}
		return r
	}, path)
}

// isPlain reports whether a path is of ASCII without control characters, as nearly all are.
func isPlain(path string) bool {
	for i := range len(path) {
		if c := path[i]; c < ' ' || c >= 0x7f {
			return false
		}
	}
	return true
}

// clip appends n bytes of a line around the position at, and says how many
// are left out on either side.
func clip(dst, line []byte, n, at int) []byte {
	from := max(0, min(at-n/2, len(line)-n))
	to := min(len(line), from+n)
	for from > 0 && from < len(line) && !utf8.RuneStart(line[from]) && at-from < n {
		from--
	}
	for to < len(line) && !utf8.RuneStart(line[to]) && to > from {
		to--
	}
	if from > 0 {
		dst = fmt.Appendf(dst, "[%d bytes …] ", from)
	}
	dst = append(dst, line[from:to]...)
	if to < len(line) {
		dst = fmt.Appendf(dst, " [… %d bytes]", len(line)-to)
	}
	return dst
}
