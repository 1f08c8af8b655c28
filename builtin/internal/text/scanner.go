package text

import (
	"bytes"
	"errors"
	"io"
	"strings"
	"sync"
	"unicode/utf8"
)

// A lineScanner finds lines in a stream of bytes.
type lineScanner struct {
	r       io.Reader
	block   []byte // storage; always filled whole, so that code units stay aligned
	buf     []byte // the part of block not yet consumed
	at      int64  // offset of buf in the file
	charset *charset
	ascii   bool   // only ASCII so far: the charset is not known yet
	judged  int64  // up to which offset the charset was examined
	newline []byte // one code unit
	held    []byte // the beginnings of the lines read, with "\n" after each
	inPlace bool   // held is a part of the file in memory: every line so far was held whole
	open    bool   // the last line consumed has no ending
	err     error
}

// rawLines holds the storage of decoded lines for reuse.
var rawLines sync.Pool // of *[]rawLine

// rawLine is a line that is not decoded: held[from:to], without "\n".
type rawLine struct {
	from   int // where its beginning is in held
	to     int
	hidden int // how many characters follow in the file
	ended  bool
}

// blocks holds the storage of scanners for reuse: it would be most of what a Read allocates.
var blocks = sync.Pool{New: func() any { return new([readLen]byte) }}

func newLineScanner(r io.Reader, block []byte, charset string) *lineScanner {
	s := &lineScanner{r: r, block: block}
	s.fill()
	s.begin(charset)
	return s
}

// scannerOf returns a scanner of content in memory.
func scannerOf(content []byte, charset string) *lineScanner {
	s := &lineScanner{buf: content, err: io.EOF, inPlace: true}
	s.begin(charset)
	return s
}

// begin finds the charset, unless the given one fits, and skips the byte order mark.
func (s *lineScanner) begin(charset string) {
	head := s.buf[:min(len(s.buf), judgedLen)]
	if s.charset = fromBOM(head); s.charset != nil {
		s.advance(len(s.charset.bom))
	} else if head = s.wholeLines(head); s.known(head, charset) {
		s.judged = int64(len(head))
	} else {
		s.ascii, s.judged = IsASCII(head), int64(len(head))
		if s.ascii && bytes.IndexByte(head, 0) < 0 {
			s.charset = utf8Charset() // most files are UTF-8, so no closer look is needed
		} else {
			s.charset = detect(head)
			s.ascii = s.ascii && s.charset.enc == nil
		}
	}
	s.newline = make([]byte, s.charset.unit)
	if strings.HasSuffix(s.charset.name, "be") {
		s.newline[s.charset.unit-1] = '\n'
	} else {
		s.newline[0] = '\n'
	}
	s.inPlace = s.inPlace && s.charset.unit == 1
}

// judgedLen bounds the start of a file from which the charset is found. For a file in memory it is larger than one
// read: an Edit looks at the whole file, and a Read should rarely show it in another charset.
const judgedLen = 1 << 20

// wholeLines returns the part of head from which the charset can be found. If more of the file follows, that part
// ends at the last newline, because head may end within a character.
func (s *lineScanner) wholeLines(head []byte) []byte {
	if s.err == nil || len(head) < len(s.buf) {
		return head[:bytes.LastIndexByte(head, '\n')+1]
	}
	return head
}

// known sets the named charset and reports true, unless head does not fit it.
func (s *lineScanner) known(head []byte, charset string) bool {
	s.charset = charsetIfFits(head, charset)
	return s.charset != nil
}

// fill reads into buf if it is empty. It returns false at the end of the file.
func (s *lineScanner) fill() bool {
	if len(s.buf) > 0 {
		return true
	}
	if s.err != nil {
		return false
	}
	n, err := io.ReadFull(s.r, s.block)
	if errors.Is(err, io.ErrUnexpectedEOF) {
		err = io.EOF
	}
	s.buf, s.err = s.block[:n], err
	return n > 0
}

func (s *lineScanner) advance(n int) {
	s.buf = s.buf[n:]
	s.at += int64(n)
}

// index returns the offset of the first line ending in b, or -1.
func (s *lineScanner) index(b []byte) int {
	if len(s.newline) == 1 {
		return bytes.IndexByte(b, '\n')
	}
	for from := 0; ; {
		i := bytes.Index(b[from:], s.newline)
		if i < 0 {
			return -1
		}
		if from += i; from%len(s.newline) == 0 {
			return from
		}
		from++
	}
}

// count returns how many line endings b has.
func (s *lineScanner) count(b []byte) int {
	if len(s.newline) == 1 {
		return bytes.Count(b, s.newline)
	}
	n := 0
	for i := s.index(b); i >= 0; i = s.index(b) {
		n++
		b = b[i+len(s.newline):]
	}
	return n
}

// skip skips n lines, or all that are left, and returns how many had an ending. It stops early once it has read limit
// bytes.
func (s *lineScanner) skip(n int, limit int64) (skipped int) {
	for skipped < n && limit > 0 && s.fill() {
		limit -= int64(len(s.buf))
		c := s.count(s.buf)
		if c < n-skipped {
			skipped += c
			s.open = !bytes.HasSuffix(s.buf, s.newline)
			s.advance(len(s.buf))
			continue
		}
		for ; skipped < n; skipped++ {
			s.advance(s.index(s.buf) + len(s.newline))
		}
		s.open = false
	}
	if limit <= 0 {
		s.fill() // finds out whether the file ends here
	}
	return skipped
}

// hold makes room for the lines of a page.
func (s *lineScanner) hold(o PageOptions) {
	if s.inPlace {
		s.held = s.buf[:0:len(s.buf)]
		return
	}
	s.held = make([]byte, 0, min(len(s.buf), o.MaxBytes)+1)
}

// line reads one line and keeps its first limit bytes.
func (s *lineScanner) line(limit int) rawLine {
	l := rawLine{from: len(s.held)}
	if s.inPlace {
		if i := bytes.IndexByte(s.buf, '\n'); i >= 0 && i <= limit {
			s.advance(i + 1)
			s.open = false
			s.held = s.held[:l.from+i+1]
			l.to, l.ended = l.from+i, true
			return l
		}
		s.inPlace, s.held = false, bytes.Clone(s.held)
	}
	for !l.ended && s.fill() {
		part := s.buf
		if i := s.index(part); i >= 0 {
			part, l.ended = part[:i], true
		}
		keep := min(limit-(len(s.held)-l.from), len(part))
		s.held = append(s.held, part[:keep]...)
		l.hidden += s.characters(part[keep:])
		s.advance(len(part))
	}
	if l.ended {
		s.advance(len(s.newline))
	}
	s.open = false
	l.to = len(s.held)
	s.held = append(s.held, '\n') // detection of the charset expects it
	return l
}

// characters counts the characters of b: exactly in UTF-8, by code units in
// other charsets.
func (s *lineScanner) characters(b []byte) int {
	if s.charset.enc != nil {
		return len(b) / s.charset.unit
	}
	n := 0
	for _, c := range b {
		if utf8.RuneStart(c) {
			n++
		}
	}
	return n
}
