package match

import (
	"bytes"
	"encoding/binary"
	"math/bits"
	"strings"
	"unicode/utf8"

	"toolhost/builtin/internal/search/pattern"
)

// maxNeedles is up to how many texts it is faster to look for each of them
// than to run the automaton.
const maxNeedles = 4

// finder looks for the first of several texts. Each needle remembers where it
// was found, so that a text is scanned once for each and not once for each
// result.
type finder struct{ needles []needle }

// newFinder returns nil when there are no texts, or too many.
func newFinder(p *pattern.Pattern) *finder {
	if ScansAll(p) {
		return nil
	}
	f := &finder{}
	for _, t := range p.Literals.Texts {
		n := newNeedle(t, p.Literals.Fold)
		n.before, n.after, n.crlf = p.Literals.Before, p.Literals.After, p.CRLF
		f.needles = append(f.needles, n)
	}
	return f
}

// reset is called before a new text is searched.
func (f *finder) reset() {
	for i := range f.needles {
		n := &f.needles[i]
		n.common = max(0, n.common-1)
	}
	f.restart()
}

// restart is called before another part of a text is searched.
func (f *finder) restart() {
	for i := range f.needles {
		n := &f.needles[i]
		n.next, n.nextLow, n.nextUp = 0, 0, 0
		n.found = false
	}
}

// find returns the first position at or after from where one of the texts
// starts, or -1. from must not go back between calls.
func (f *finder) find(b []byte, from int) int {
	first := -1
	for i := range f.needles {
		n := &f.needles[i]
		if !n.found || n.next >= 0 && n.next < from {
			n.next = n.index(b, from)
			n.found = true
		}
		if n.next >= 0 && (first < 0 || n.next < first) {
			first = n.next
		}
	}
	return first
}

// needle is one text. It is looked for by its rarest byte, which in source
// text is far rarer than the first.
type needle struct {
	text   []byte // lower case when fold
	fold   bool
	rare   int // index of the rarest byte
	low    byte
	up     byte // the other case of low, or low
	second int  // index of the second rarest byte
	common int  // for so many texts more the rarest byte counts as common

	before, after pattern.Edge
	crlf          bool // a carriage return ends a line too

	next            int
	found           bool
	nextLow, nextUp int // where low and up were found, -1: nowhere
}

func newNeedle(text string, fold bool) needle {
	n := needle{text: []byte(text), fold: fold}
	rarity := func(i int) int {
		c := text[i]
		if fold && 'a' <= c && c <= 'z' {
			return min(pattern.Rarity(c), pattern.Rarity(c-'a'+'A'))
		}
		return pattern.Rarity(c)
	}
	for i := range n.text {
		if rarity(i) > rarity(n.rare) {
			n.rare = i
		}
	}
	if n.rare == 0 {
		n.second = len(text) - 1
	}
	for i := range n.text {
		if i != n.rare && rarity(i) > rarity(n.second) {
			n.second = i
		}
	}
	n.low, n.up = n.text[n.rare], n.text[n.rare]
	if fold && 'a' <= n.low && n.low <= 'z' {
		n.up = n.low - 'a' + 'A'
	}
	return n
}

// index returns the first position at or after from where the text stands between its
// edges, or -1.
func (n *needle) index(b []byte, from int) int {
	for {
		i := n.indexText(b, from)
		if i < 0 || n.stands(b, i) {
			return i
		}
		from = i + 1
	}
}

// stands reports whether the text at a position may be between its edges: where it is
// for the automaton to know, it may.
func (n *needle) stands(b []byte, i int) bool {
	end := i + len(n.text)
	return (n.before == pattern.AnyEdge || i == 0 || n.isEdge(n.before, b[i-1])) &&
		(n.after == pattern.AnyEdge || end == len(b) || n.isEdge(n.after, b[end]))
}

func (n *needle) isEdge(e pattern.Edge, c byte) bool {
	if e == pattern.LineEdge {
		return c == '\n' || c == '\r' && n.crlf
	}
	return c >= utf8.RuneSelf || !pattern.IsWord(rune(c))
}

// indexText returns the first position at or after from where the text starts, or -1.
func (n *needle) indexText(b []byte, from int) int {
	if n.common > 0 {
		return n.indexPair(b, from)
	}
	if n.fold {
		return n.indexFold(b, from)
	}
	misses := 0
	for i := from + n.rare; i < len(b); i++ {
		k := bytes.IndexByte(b[i:], n.low)
		if k < 0 {
			return -1
		}
		i += k
		start := i - n.rare
		if start+len(n.text) > len(b) {
			return -1
		}
		if b[start+n.second] == n.text[n.second] && bytes.Equal(b[start:start+len(n.text)], n.text) {
			return start
		}
		if misses++; n.isCommon(misses, i-from) {
			return n.indexPair(b, start+1)
		}
	}
	return -1
}

const (
	// commonGap is up to how many bytes from one to the next of a byte it is faster to
	// look at every eight bytes than to look for it: a look-up takes about 8 ns to begin.
	commonGap   = 24
	judgeByteAt = 16
	// commonFor is for how many texts that holds: they are alike, but not all.
	commonFor = 64
)

// isCommon judges by so many misses in so many bytes whether the rarest byte is rare.
func (n *needle) isCommon(misses, size int) bool {
	if misses < judgeByteAt || size > misses*commonGap {
		return false
	}
	n.common = commonFor
	return true
}

func (n *needle) indexFold(b []byte, from int) int {
	i := from + n.rare
	for misses := 1; ; misses++ {
		n.nextLow = nextByte(b, n.low, n.nextLow, i)
		if n.up != n.low {
			n.nextUp = nextByte(b, n.up, n.nextUp, i)
		} else {
			n.nextUp = -1
		}
		i = n.nextLow
		if i < 0 || n.nextUp >= 0 && n.nextUp < i {
			i = n.nextUp
		}
		if i < 0 || i-n.rare+len(n.text) > len(b) {
			return -1
		}
		start := i - n.rare
		if n.at(b, start) {
			return start
		}
		i++
		if n.isCommon(misses, i-from) {
			return n.indexPair(b, start+1)
		}
	}
}

// at reports whether the text is at a position.
func (n *needle) at(b []byte, i int) bool {
	if i+len(n.text) > len(b) {
		return false
	}
	if n.fold {
		return equalFold(b[i:i+len(n.text)], n.text)
	}
	return bytes.Equal(b[i:i+len(n.text)], n.text)
}

const (
	lowBits  = 0x0101010101010101
	highBits = 0x8080808080808080
	// caseBit is what a letter of ASCII has more in lower case.
	caseBit = 'a' - 'A'
)

// indexPair is index where the rarest byte is not rare. It compares the two rarest
// bytes at eight positions at once: in the result of both, a byte is zero where both
// are as in the text. (x-1)&^x has the high bit of the first zero byte set, and of none
// before it.
func (n *needle) indexPair(b []byte, from int) int {
	c1, c2 := lowBits*uint64(n.text[n.rare]), lowBits*uint64(n.text[n.second])
	fold1, fold2 := n.foldBits(n.rare), n.foldBits(n.second)
	const step = 16
	i, last := from, len(b)-max(n.rare, n.second)-step
	for i <= last {
		s1, s2 := b[i+n.rare:][:step], b[i+n.second:][:step]
		x := ((binary.LittleEndian.Uint64(s1) | fold1) ^ c1) | ((binary.LittleEndian.Uint64(s2) | fold2) ^ c2)
		y := ((binary.LittleEndian.Uint64(s1[8:]) | fold1) ^ c1) | ((binary.LittleEndian.Uint64(s2[8:]) | fold2) ^ c2)
		x, y = (x-lowBits)&^x&highBits, (y-lowBits)&^y&highBits
		switch {
		case x|y == 0:
			i += step
			continue
		case x != 0:
			i += bits.TrailingZeros64(x) / 8
		default:
			i += 8 + bits.TrailingZeros64(y)/8
		}
		if n.at(b, i) {
			return i
		}
		i++
	}
	for ; i+len(n.text) <= len(b); i++ {
		if n.at(b, i) {
			return i
		}
	}
	return -1
}

// foldBits are what makes lower case of a byte of the text.
func (n *needle) foldBits(i int) uint64 {
	if c := n.text[i]; n.fold && 'a' <= c && c <= 'z' {
		return lowBits * caseBit
	}
	return 0
}

// nextByte returns the first position of c at or after i, given the known one.
func nextByte(b []byte, c byte, known, i int) int {
	if known < 0 || known >= i && known < len(b) && b[known] == c {
		return known
	}
	if i >= len(b) {
		return -1
	}
	if k := bytes.IndexByte(b[i:], c); k >= 0 {
		return i + k
	}
	return -1
}

// equalFold compares with a lower-case text, folding ASCII.
func equalFold(b, text []byte) bool {
	for i, c := range b {
		if 'A' <= c && c <= 'Z' {
			c += 'a' - 'A'
		}
		if c != text[i] {
			return false
		}
	}
	return true
}

// foldsBeyond reports whether a text has a letter with a case partner outside
// of ASCII: k (the Kelvin sign) or s (the long s).
func foldsBeyond(l *pattern.Literals) bool {
	for _, t := range l.Texts {
		if l.Fold && strings.ContainsAny(t, "ks") {
			return true
		}
	}
	return false
}

var kelvin, longS = []byte("\u212a"), []byte("\u017f")

func hasPartners(b []byte) bool { return bytes.Contains(b, kelvin) || bytes.Contains(b, longS) }
