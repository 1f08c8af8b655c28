package pattern

import (
	"bytes"
	"encoding/binary"
	"math/bits"
	"unicode/utf8"
)

// literal is one text to search for. It is searched for by its rarest byte, which in source text is far rarer than
// the first; if that byte is common in the text, by its two rarest bytes. Without the latter
// BenchmarkEngine/grep/index takes 1.7 times as long for "return nil", 7 times for (?i).
type literal struct {
	text   []byte // lower case when fold
	fold   bool
	rare   int  // index of the rarest byte
	second int  // index of the second rarest byte, or len(text) to look for the end of the line after the text
	pairs  bool // never search by one byte: the rarest is a letter in either case
	common int  // for how many more texts the rarest byte counts as common
	streak int  // what common was set to last
	looks  int  // how often the rarest byte was found in this text
	passed int  // how many bytes were skipped before the results of those searches

	// head is the start of the text, and mask has the bits of it that are compared.
	head, mask uint64

	before, after Boundary
	crlf          bool // a carriage return ends a line too

	next  int
	found bool
}

func newLiteral(text string, fold bool) literal {
	n := literal{text: []byte(text), fold: fold}
	rarity := func(i int) int {
		c := text[i]
		if fold && isLower(c) {
			return min(Rarity(c), Rarity(c-caseBit))
		}
		return Rarity(c)
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
	n.pairs = fold && isLower(text[n.rare])
	for i := range min(len(text), 8) {
		n.head |= uint64(text[i]) << (8 * i)
		n.mask |= (^n.foldBits(i) & 0xff) << (8 * i)
	}
	return n
}

func isLower(c byte) bool { return 'a' <= c && c <= 'z' }

// between sets the required boundaries. If the line must end after the text, the end of the line replaces the second
// rarest byte, because few occurrences are followed by it.
func (n *literal) between(before, after Boundary, crlf bool) {
	n.before, n.after, n.crlf = before, after, crlf
	if after == LineBoundary {
		n.second = len(n.text)
	}
}

// stands reports whether the boundaries of a text at a position may hold. If only the automaton can decide, it
// reports true.
func (n *literal) stands(b []byte, i int) bool {
	end := i + len(n.text)
	return (n.before == AnyBoundary || i == 0 || n.isBoundary(n.before, b[i-1])) &&
		(n.after == AnyBoundary || end == len(b) || n.isBoundary(n.after, b[end]))
}

func (n *literal) isBoundary(e Boundary, c byte) bool {
	if e == LineBoundary {
		return c == '\n' || c == '\r' && n.crlf
	}
	return c >= utf8.RuneSelf || !IsWord(rune(c))
}

// index returns the first position at or after from where the text is found with its boundaries, or -1.
func (n *literal) index(b []byte, from int) int {
	if n.pairs || n.common > 0 {
		return n.indexPair(b, from)
	}
	rare := n.text[n.rare]
	for i := from + n.rare; i < len(b); i++ {
		k := bytes.IndexByte(b[i:], rare)
		if k < 0 {
			return -1
		}
		i += k
		start := i - n.rare
		if start+len(n.text) > len(b) {
			return -1
		}
		n.looks++
		if n.at(b, start) && n.stands(b, start) {
			n.passed += i - from
			return start
		}
		if n.isCommon(n.passed + i - from) {
			return n.indexPair(b, start+1)
		}
	}
	return -1
}

const (
	// commonGap is up to which average distance, in bytes, of a byte it is faster to look for a pair of bytes than for
	// that byte: each look-up takes about 8 ns to start.
	commonGap   = 112
	judgeByteAt = 16
	// commonFor is for how many texts at most a byte counts as common. The number grows each time the byte is found to
	// be common: a single table of numbers is not typical of the rest of the tree.
	commonFor = 64
)

// isCommon decides whether the rarest byte is common, by how often it was found in size bytes.
func (n *literal) isCommon(size int) bool {
	if n.looks < judgeByteAt || size > n.looks*commonGap {
		return false
	}
	n.streak = min(2*n.streak+1, commonFor)
	n.common = n.streak
	return true
}

// at reports whether the text is at a position.
func (n *literal) at(b []byte, i int) bool {
	if i+len(n.text) > len(b) {
		return false
	}
	if i+8 <= len(b) {
		if (binary.LittleEndian.Uint64(b[i:])^n.head)&n.mask != 0 {
			return false
		}
		if len(n.text) <= 8 {
			return true
		}
	}
	if n.fold {
		return equalFold(b[i:i+len(n.text)], n.text)
	}
	return bytes.Equal(b[i:i+len(n.text)], n.text)
}

const (
	lowBits  = 0x0101010101010101
	highBits = 0x8080808080808080
	// window is how many positions indexPair compares at once.
	window = 32
)

// indexPair is index for a text whose rarest byte is common. It compares the two rarest bytes at a window of
// positions: a byte of the differences is zero where both are as in the text. In x-1 the high bit of each zero byte
// of x is set; it is also set for bytes outside of ASCII and for some bytes after a zero byte.
func (n *literal) indexPair(b []byte, from int) int {
	last := len(b) - max(n.rare, n.second) - window
	if last < from {
		return n.indexEach(b, from)
	}
	if i := n.indexWindows(b, from, last); i >= 0 || n.second < len(n.text) {
		return i
	}
	return n.indexEach(b, len(b)-len(n.text)) // at its end the text needs no end of a line
}

// indexWindows is indexPair for the windows that start at last or before. The masks leave out the bits that make no
// difference: the case of letters, and those in which a newline and a carriage return differ.
func (n *literal) indexWindows(b []byte, from, last int) int {
	c1, m1 := lowBits*uint64(n.text[n.rare]), ^n.foldBits(n.rare)
	c2, m2 := uint64(lowBits*'\n'), ^uint64(lowBits*('\n'^'\r'))
	if n.second < len(n.text) {
		c2, m2 = lowBits*uint64(n.text[n.second]), ^n.foldBits(n.second)
	}
	for i := from; i < last+window; i += window {
		i = min(i, last) // the last window overlaps with the one before
		s1, s2 := (*[window]byte)(b[i+n.rare:]), (*[window]byte)(b[i+n.second:])
		x0 := (part(s1, 0)^c1)&m1 | (part(s2, 0)^c2)&m2
		x1 := (part(s1, 1)^c1)&m1 | (part(s2, 1)^c2)&m2
		x2 := (part(s1, 2)^c1)&m1 | (part(s2, 2)^c2)&m2
		x3 := (part(s1, 3)^c1)&m1 | (part(s2, 3)^c2)&m2
		if ((x0-lowBits)|(x1-lowBits)|(x2-lowBits)|(x3-lowBits))&highBits == 0 {
			continue
		}
		if k := n.among(b, i, [4]uint64{x0, x1, x2, x3}); k >= 0 {
			return k
		}
	}
	return -1
}

// part returns eight bytes of a window as a number.
func part(s *[window]byte, k int) uint64 { return binary.LittleEndian.Uint64(s[8*k:]) }

// among returns the first position in a window where the text is, or -1, given the differences there.
func (n *literal) among(b []byte, i int, differences [window / 8]uint64) int {
	for k, x := range differences {
		for y := (x - lowBits) &^ x & highBits; y != 0; y &= y - 1 {
			if p := i + 8*k + bits.TrailingZeros64(y)/8; n.at(b, p) && n.stands(b, p) {
				return p
			}
		}
	}
	return -1
}

// indexEach is index for texts shorter than a window.
func (n *literal) indexEach(b []byte, from int) int {
	for i := from; i+len(n.text) <= len(b); i++ {
		if n.at(b, i) && n.stands(b, i) {
			return i
		}
	}
	return -1
}

// foldBits returns the bits that make a byte of the text lower case, repeated eight times, or 0.
func (n *literal) foldBits(i int) uint64 {
	if n.fold && isLower(n.text[i]) {
		return lowBits * caseBit
	}
	return 0
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
