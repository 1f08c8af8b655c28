package match

import (
	"bytes"
	"strings"

	"toolhost/builtin/internal/search/pattern"
)

// maxNeedles is up to how many texts it is faster to look for each of them
// than to run the automaton.
const maxNeedles = 4

// finder looks for the first of several texts. Each needle remembers where it
// was found, so that a text is scanned once for each and not once for each
// result.
type finder struct{ needles []needle }

// newFinder returns nil when there are too many texts.
func newFinder(l *pattern.Literals) *finder {
	if l == nil || len(l.Texts) > maxNeedles {
		return nil
	}
	f := &finder{}
	for _, t := range l.Texts {
		f.needles = append(f.needles, newNeedle(t, l.Fold))
	}
	return f
}

// reset is called before a new text is searched.
func (f *finder) reset() {
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

func (n *needle) index(b []byte, from int) int {
	if n.fold {
		return n.indexFold(b, from)
	}
	i := from + n.rare
	misses := 0
	for i < len(b) {
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
		i++
		// The byte is not rare here: let bytes.Index, which compares in bulk, go on.
		if misses++; misses > 16 && misses > (i-from)/16 {
			if k = bytes.Index(b[start+1:], n.text); k < 0 {
				return -1
			}
			return start + 1 + k
		}
	}
	return -1
}

func (n *needle) indexFold(b []byte, from int) int {
	i := from + n.rare
	for {
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
		if start := i - n.rare; equalFold(b[start:start+len(n.text)], n.text) {
			return start
		}
		i++
	}
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
