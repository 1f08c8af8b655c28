package proxy

import (
	"bytes"
	"cmp"
	"math"
	"slices"
	"strings"
)

// A pair is a text of the outside, and the text that commands see instead.
type pair struct{ outside, inside string }

// A finder finds the outsides of pairs in one pass (Wu and Manber, 1994). A window has the length of the shortest
// outside. The last two bytes in the window say how far it can be moved without missing one. The zero value finds
// nothing.
type finder struct {
	pairs  []pair // the longest first
	window int
	shift  []uint8           // by two bytes
	ends   map[uint16][]pair // whose beginning ends with two bytes
}

// newFinder returns a finder for pairs, whose outsides have two bytes or more.
func newFinder(pairs []pair) *finder {
	slices.SortFunc(pairs, func(a, b pair) int {
		return cmp.Or(len(b.outside)-len(a.outside), strings.Compare(a.outside, b.outside))
	})
	f := &finder{pairs: slices.CompactFunc(pairs, func(a, b pair) bool { return a.outside == b.outside })}
	if len(pairs) == 0 {
		return f
	}
	f.window = min(len(f.pairs[len(f.pairs)-1].outside), math.MaxUint8)
	f.shift, f.ends = bytes.Repeat([]byte{uint8(f.window - 1)}, math.MaxUint16+1), map[uint16][]pair{}
	for _, p := range f.pairs {
		for i := 1; i < f.window; i++ {
			two := uint16(p.outside[i-1])<<8 | uint16(p.outside[i])
			f.shift[two] = min(f.shift[two], uint8(f.window-1-i))
			if i == f.window-1 {
				f.ends[two] = append(f.ends[two], p)
			}
		}
	}
	return f
}

// find returns the first pair whose outside begins before limit, the longest one of several, and where; -1 if there is
// none.
func (f *finder) find(text []byte, limit int) (at int, found pair) {
	if f.window == 0 {
		return -1, pair{}
	}
	for i := f.window - 1; i < len(text) && i < limit+f.window-1; {
		two := uint16(text[i-1])<<8 | uint16(text[i])
		skip := f.shift[two]
		if skip > 0 {
			i += int(skip)
			continue
		}
		at := i - f.window + 1
		for _, p := range f.ends[two] {
			if len(text)-at >= len(p.outside) && string(text[at:at+len(p.outside)]) == p.outside {
				return at, p
			}
		}
		i++
	}
	return -1, pair{}
}

// beginning returns the length of the longest end of a text that may be the beginning of an outside.
func (f *finder) beginning(text []byte) (n int) {
	for _, p := range f.pairs {
		for k := min(len(p.outside)-1, len(text)); k > n; k-- {
			if text[len(text)-1] == p.outside[k-1] && string(text[len(text)-k:]) == p.outside[:k] {
				n = k
			}
		}
	}
	return n
}

// hide returns a text without outsides.
func (f *finder) hide(text string) string {
	for _, p := range f.pairs {
		text = strings.ReplaceAll(text, p.outside, p.inside)
	}
	return text
}

// sameLengths reports whether each inside has the length of its outside.
func (f *finder) sameLengths() bool {
	return !slices.ContainsFunc(f.pairs, func(p pair) bool { return len(p.outside) != len(p.inside) })
}
