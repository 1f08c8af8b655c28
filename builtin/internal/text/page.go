package text

import (
	"encoding/binary"
	"errors"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// The limits of a page if its options do not set others.
const (
	// DefaultPageLines is how many lines a page has.
	DefaultPageLines = 2000

	// DefaultPageBytes is 25,000 tokens at 3.5 bytes each.
	DefaultPageBytes = 87_500

	// DefaultLineBytes is how many bytes of a line are held: 2,000 characters of four bytes each.
	DefaultLineBytes = 8000

	// DefaultCountBytes is up to how many bytes after the page lines are counted for the total. Counting runs at several
	// gigabytes a second.
	DefaultCountBytes = 32 << 20

	// readLen is the size of a read: large enough that bytes.Count sets the
	// pace, small enough for the second-level cache.
	readLen = 512 << 10
)

// PageOptions says which part of a file to show. Zero fields have defaults.
type PageOptions struct {
	Offset     int    // first line, from 1; default 1
	Limit      int    // lines at most; default DefaultPageLines
	MaxBytes   int    // end the page before its lines, as [Number] writes them, exceed this; default DefaultPageBytes
	LineBytes  int    // hold at most this much of a line; default DefaultLineBytes
	Charset    string // of the file, if it is known; see [DecodeAs]
	CountBytes int64  // count lines this far after the page; default DefaultCountBytes

	before int // bytes of the line number and arrow before a line
}

// Page is a run of lines of a file.
type Page struct {
	Lines []Line
	Count int // of the lines
	First int // number of the first line, from 1

	// Start and End are the range of bytes in the file that Lines came from.
	Start, End int64

	// More tells whether the file continues after the page. Next is then the
	// offset to continue with.
	More bool
	Next int

	// Total is the number of lines in the file; if not Exact there are more.
	Total int
	Exact bool

	Charset string
	BOM     bool
	EOL     EOL // of the lines of this page
	Invalid int // bytes of the page that belong to no UTF-8 character
}

// ReadPage reads a page from the start of r. What lies before the page is only
// searched for line endings, and memory is bounded by the options, whatever
// the size of the file. The charset is found from the first bytes of the
// file, or from the page itself if those are plain ASCII.
//
// If Offset is after the last line, the page has no lines and Total is exact.
func ReadPage(r io.Reader, o PageOptions) (*Page, error) {
	block := blocks.Get().(*[readLen]byte)
	defer blocks.Put(block)
	return readPage(newLineScanner(r, block[:], o.Charset), o)
}

func readPage(s *lineScanner, o PageOptions) (*Page, error) {
	p := beginPage(s, &o)
	p.read(s, o)
	if err := p.conclude(s, o); err != nil {
		return nil, err
	}
	return p, nil
}

// beginPage skips the lines before the page, and counts them.
func beginPage(s *lineScanner, o *PageOptions) *Page {
	o.setDefaults()
	p := &Page{First: o.Offset, BOM: s.at > 0}
	p.Total = s.skip(o.Offset-1, math.MaxInt64)
	return p
}

// read reads the lines of the page.
func (p *Page) read(s *lineScanner, o PageOptions) {
	raw := p.collect(s, o)
	p.decode(raw, s)
	rawLines.Put(&raw)
	p.Count = len(p.Lines)
}

// conclude counts the lines after the page.
func (p *Page) conclude(s *lineScanner, o PageOptions) error {
	p.Total += p.Count
	p.More = s.fill() || p.End < s.at
	if p.More {
		p.Next = p.First + p.Count
	}
	if p.End < s.at {
		p.Total++ // the line that did not fit
	}
	p.Total += s.skip(math.MaxInt, o.CountBytes)
	if s.open {
		p.Total++
	}
	if p.Exact = errors.Is(s.err, io.EOF); p.Exact {
		return nil
	}
	return s.err
}

func (o *PageOptions) setDefaults() {
	o.Offset = max(o.Offset, 1)
	if o.Limit <= 0 {
		o.Limit = DefaultPageLines
	}
	if o.MaxBytes <= 0 {
		o.MaxBytes = DefaultPageBytes
	}
	if o.LineBytes <= 0 {
		o.LineBytes = DefaultLineBytes
	}
	o.before = max(len(blanks), len(strconv.Itoa(o.Offset+o.MaxBytes))) + len("→")
	o.LineBytes = max(4, o.LineBytes&^3) // whole code units in any charset
	if o.CountBytes <= 0 {
		o.CountBytes = DefaultCountBytes
	}
}

// collect reads the lines of the page and sets its range.
func (p *Page) collect(s *lineScanner, o PageOptions) []rawLine {
	var lines []rawLine
	if spare, ok := rawLines.Get().(*[]rawLine); ok {
		lines = (*spare)[:0]
	}
	if s.fill() {
		lines = slices.Grow(lines, min(o.Limit, s.count(s.buf[:min(len(s.buf), o.MaxBytes)])+1))
	}
	size := 0
	p.Start, p.End = s.at, s.at
	s.hold(o)
	for len(lines) < o.Limit && s.fill() {
		l := s.line(o.LineBytes)
		size += o.costOf(l.to - l.from)
		if size > o.MaxBytes && len(lines) > 0 {
			break
		}
		lines = append(lines, l)
		p.End = s.at
	}
	return lines
}

// cutNote is how many bytes the note at the end of a cut line takes at most.
const cutNote = len("… [9223372036854775807 more characters on this line]")

// costOf returns how many bytes of MaxBytes a line takes: for its text, the number before it, its newline, and the
// note if it is cut.
func (o *PageOptions) costOf(length int) int {
	cost := o.before + length + len("\n")
	if length > o.LineBytes/utf8.UTFMax { // it may have more characters than are shown
		cost += cutNote
	}
	return cost
}

// decode turns the bytes of the page into its lines.
func (p *Page) decode(raw []rawLine, s *lineScanner) {
	cs := s.charset
	plain := s.ascii && IsASCII(s.held)
	if s.ascii && !plain {
		cs = detect(s.held)
	}
	p.Charset = cs.name
	var endings eolCount
	all := shared(s.held) // nothing writes to it any more
	valid := plain || utf8.ValidString(all)
	returns := strings.IndexByte(all, '\r') >= 0 // most files have none, and then no line is searched
	p.Lines = slices.Grow(p.Lines, len(raw))
	for _, l := range raw {
		text := all[l.from:l.to]
		if cs.enc != nil {
			text = cs.decode(s.held[l.from:l.to])
		}
		if l.hidden > 0 {
			if whole := strings.TrimRight(text, string(utf8.RuneError)); whole != text {
				text = whole // the last character was cut in the middle
				l.hidden++
			}
		}
		if cs.enc == nil && !valid && !utf8.ValidString(text) {
			_, n := countUTF8(s.held[l.from:l.to])
			p.Invalid += n
		}
		switch {
		case returns || cs.enc != nil:
			endings.add(text, l.ended)
			if l.ended {
				text = strings.TrimSuffix(text, "\r")
			}
		case l.ended:
			endings.lf++
		}
		p.Lines = append(p.Lines, Line{Text: text, Hidden: l.hidden})
	}
	p.EOL = endings.kind()
}

// IsASCII reports whether b is ASCII, which is the same in nearly every charset.
func IsASCII(b []byte) bool {
	const high = 0x8080808080808080
	for ; len(b) >= 8; b = b[8:] {
		if binary.NativeEndian.Uint64(b)&high != 0 {
			return false
		}
	}
	for _, c := range b {
		if c >= utf8.RuneSelf {
			return false
		}
	}
	return true
}

// decode returns b as a string.
func (cs *charset) decode(b []byte) string {
	if cs.enc == nil {
		return string(b)
	}
	out, err := cs.enc.NewDecoder().Bytes(b)
	if err != nil {
		return string(b) // cannot happen: decoders replace what is invalid
	}
	return string(out)
}
