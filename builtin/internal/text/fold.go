package text

import (
	"strings"
	"unicode/utf8"
)

// A folder finds the places where a text differs from its folded form. In that form every line ending is "\n" and, if
// quotes is set, curly quotes are straight. Both folding a text and mapping offsets back use a folder, so that no
// table of positions is needed.
type folder struct {
	s      string
	quotes bool
	cr     int // the next "\r", len(s) if none
	quote  int // the next curly quote, len(s) if none
}

func newFolder(s string, quotes bool) *folder {
	f := &folder{s: s, quotes: quotes}
	f.cr = f.seekCR(0)
	f.quote = f.seekQuote(0)
	return f
}

// next returns the next place that folds: width bytes at offset at become the
// single byte repl. ok is false at the end.
func (f *folder) next() (at, width int, repl byte, ok bool) {
	at = min(f.cr, f.quote)
	switch {
	case at == len(f.s):
		return at, 0, 0, false
	case at == f.cr:
		width, repl = 1, '\n'
		if at+1 < len(f.s) && f.s[at+1] == '\n' {
			width = 2
		}
		f.cr = f.seekCR(at + width)
	default:
		width, repl = curlyLen, straight(f.s[at:])
		f.quote = f.seekQuote(at + width)
	}
	return at, width, repl, true
}

func (f *folder) seekCR(from int) int {
	if i := strings.IndexByte(f.s[from:], '\r'); i >= 0 {
		return from + i
	}
	return len(f.s)
}

func (f *folder) seekQuote(from int) int {
	if !f.quotes {
		return len(f.s)
	}
	for {
		i := strings.Index(f.s[from:], "\u2018"[:2]) // all four begin with E2 80
		if i < 0 {
			return len(f.s)
		}
		from += i
		if straight(f.s[from:]) != 0 {
			return from
		}
		from += 2
	}
}

// curlyLen is the length of each curly quote in UTF-8.
const curlyLen = len("\u2018")

// straight returns the straight form of the curly quote that s begins with, or 0 if it begins with another character.
func straight(s string) byte {
	r, _ := utf8.DecodeRuneInString(s)
	switch r {
	case '\u2018', '\u2019':
		return '\''
	case '\u201c', '\u201d':
		return '"'
	}
	return 0
}

// fold returns the folded form of s, or s itself if there is nothing to fold.
func fold(s string, quotes bool) string {
	f := newFolder(s, quotes)
	at, width, repl, ok := f.next()
	if !ok {
		return s
	}
	var b strings.Builder
	b.Grow(len(s))
	done := 0
	for ; ok; at, width, repl, ok = f.next() {
		b.WriteString(s[done:at])
		b.WriteByte(repl)
		done = at + width
	}
	b.WriteString(s[done:])
	return b.String()
}

// unfold maps offsets of fold(s, quotes), which must ascend, to offsets of s.
func unfold(s string, quotes bool, offsets []int) []int {
	out := make([]int, len(offsets))
	f := newFolder(s, quotes)
	shrunk := 0 // how much shorter the folded text is so far
	i := 0
	for i < len(offsets) {
		at, width, _, ok := f.next()
		for i < len(offsets) && (!ok || offsets[i]+shrunk <= at) {
			out[i] = offsets[i] + shrunk
			i++
		}
		shrunk += width - 1
	}
	return out
}
