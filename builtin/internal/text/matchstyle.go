package text

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"znkr.io/diff"
	"znkr.io/diff/textdiff"
)

// restyle returns the replacement for the range sp, which matched old: new in the style of the file. Lines that old
// and new share keep the characters of the file; other lines get its line endings and its kind of quotes.
//
// If literal is set, restyle returns new unchanged.
func restyle(t *Text, sp Span, old, new string, how MatchKind, literal bool) string {
	if literal {
		return new
	}
	eol := eolNear(t.str, sp.Start, t.eol)
	if how&^(LineNumbers|Mark) == Exact {
		if strings.Contains(new, "\r") || eol == "\n" {
			return new
		}
		return strings.ReplaceAll(new, "\n", eol)
	}
	return newAligner(t.str[sp.Start:sp.End], fold(old, false), eol, how).align(fold(new, false))
}

// An aligner transfers the style of a region of a file to the text that replaces it.
type aligner struct {
	region []string // the lines of the file
	old    []string // the same lines as the caller typed them, endings "\n"
	eol    string
	quotes bool
	single quoteStyle
	double quoteStyle
}

// quoteStyle is the kind of quotes a region uses.
type quoteStyle uint8

const (
	asTyped       quoteStyle = iota // none or both
	allStraight                     // straight in the file
	allCurly                        // curly in the file
	curlyDouble   = "\u201c\u201d"
	curlySingle   = "\u2018\u2019"
	openingBefore = "([{<-/=\u2013\u2014\u2018\u201c\"'"
)

func newAligner(region, old, eol string, how MatchKind) *aligner {
	a := &aligner{old: splitAfter(old), eol: eol, quotes: how&Quotes != 0}
	folded := splitAfter(fold(region, false))
	ends := make([]int, len(folded))
	sum := 0
	for i, line := range folded {
		sum += len(line)
		ends[i] = sum
	}
	start := 0
	for _, end := range unfold(region, false, ends) {
		a.region = append(a.region, region[start:end])
		start = end
	}
	if a.quotes {
		a.single = styleOf(region, '\'', curlySingle)
		a.double = styleOf(region, '"', curlyDouble)
	}
	return a
}

// splitAfter is strings.SplitAfter(s, "\n") without an empty last element.
func splitAfter(s string) []string {
	lines := strings.SplitAfter(s, "\n")
	if lines[len(lines)-1] == "" {
		lines = lines[:len(lines)-1]
	}
	return lines
}

func styleOf(region string, plain rune, curly string) quoteStyle {
	hasPlain, hasCurly := strings.ContainsRune(region, plain), strings.ContainsAny(region, curly)
	switch {
	case hasPlain && !hasCurly:
		return allStraight
	case hasCurly && !hasPlain:
		return allCurly
	}
	return asTyped
}

// align returns new, with the file's own characters in the lines that old and new share.
func (a *aligner) align(new string) string {
	var b strings.Builder
	var deleted []int // lines of old that the edits so far removed, not yet paired
	old := strings.Join(a.old, "")
	for _, e := range textdiff.Edits(old, new, diffOptions(old, new)...) {
		switch e.Op {
		case diff.Match:
			deleted = nil
			b.WriteString(a.region[e.LineNoX])
		case diff.Delete:
			deleted = append(deleted, e.LineNoX)
		case diff.Insert:
			if len(deleted) == 0 {
				b.WriteString(a.styled(e.Line, 0, len(e.Line)))
				continue
			}
			b.WriteString(a.carry(deleted[0], e.Line))
			deleted = deleted[1:]
		}
	}
	return b.String()
}

// carry returns the new form of one line. The start and the end that it has in common with the old line are taken
// from the file.
func (a *aligner) carry(i int, line string) string {
	old, region := a.old[i], a.region[i]
	p := commonPrefix(old, line)
	q := commonSuffix(old[p:], line[p:])
	// Offsets in old are mapped to offsets in region through the folded form, which both share.
	at := unfold(region, a.quotes, []int{len(fold(old[:p], a.quotes)), len(fold(old[:len(old)-q], a.quotes))})
	return region[:at[0]] + a.styled(line, p, len(line)-q) + region[at[1]:]
}

// styled returns line[start:end] with the line ending and quotes of the file.
func (a *aligner) styled(line string, start, end int) string {
	var b strings.Builder
	before, _ := utf8.DecodeLastRuneInString(line[:start])
	for _, r := range line[start:end] {
		switch r {
		case '\n':
			b.WriteString(a.eol)
		case '\'', '\u2018', '\u2019':
			b.WriteRune(quote(r, before, a.single, '\'', '\u2018', '\u2019'))
		case '"', '\u201c', '\u201d':
			b.WriteRune(quote(r, before, a.double, '"', '\u201c', '\u201d'))
		default:
			b.WriteRune(r)
		}
		before = r
	}
	return b.String()
}

// quote returns the quote r in the given style. If the style is curly, a straight quote becomes an opening one at the
// start of a line, after a space, and after an opening bracket, dash or quote; otherwise it becomes a closing one,
// which is also the apostrophe.
func quote(r, before rune, style quoteStyle, plain, opening, closing rune) rune {
	switch {
	case style == allStraight:
		return plain
	case style == asTyped || r != plain:
		return r
	case before == utf8.RuneError || unicode.IsSpace(before) || strings.ContainsRune(openingBefore, before):
		return opening
	}
	return closing
}

// commonPrefix returns the length of the longest common prefix that ends at a
// character of both.
func commonPrefix(a, b string) int {
	n := prefixLen(a, b)
	for n > 0 && (n < len(a) && !utf8.RuneStart(a[n]) || n < len(b) && !utf8.RuneStart(b[n])) {
		n--
	}
	return n
}

// commonSuffix returns the length of the longest common suffix that starts at a character of both.
func commonSuffix(a, b string) int {
	n := suffixLen(a, b)
	for n > 0 && !utf8.RuneStart(a[len(a)-n]) {
		n--
	}
	return n
}

// blockLen is how many bytes are compared at once: whole blocks are compared at the speed of memory.
const blockLen = 4 << 10

func prefixLen(a, b string) int {
	n, limit := 0, min(len(a), len(b))
	for n+blockLen <= limit && a[n:n+blockLen] == b[n:n+blockLen] {
		n += blockLen
	}
	for n < limit && a[n] == b[n] {
		n++
	}
	return n
}

func suffixLen(a, b string) int {
	n, limit := 0, min(len(a), len(b))
	for n+blockLen <= limit && a[len(a)-n-blockLen:len(a)-n] == b[len(b)-n-blockLen:len(b)-n] {
		n += blockLen
	}
	for n < limit && a[len(a)-n-1] == b[len(b)-n-1] {
		n++
	}
	return n
}
