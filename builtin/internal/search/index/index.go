// Package index tells which of many texts may hold given strings, by the
// trigrams of both: three bytes in a row, with ASCII letters in lower case. It errs on one side only: a text that is not selected does not hold the
// strings.
package index

import (
	"encoding/binary"
	"iter"
	"math/bits"
	"slices"
	"sync/atomic"
)

// Trigrams of three bytes each are numbers below 1<<24.
const trigrams = 1 << 24

// MaxPairs is about how many pairs of text and trigram a segment holds: more
// pack better, and need more memory while they are gathered, 16 bytes each.
const MaxPairs = 2 << 20

// Segment is the index of some texts. What it says is immutable.
type Segment struct {
	trigrams []uint32 // ascending
	starts   []uint32 // of each trigram's postings, and the end of the last
	postings []byte   // numbers of texts as varints, each less the one before
	most     uint32   // the greatest number of a text

	away   *away       // where all of that is elsewhere; nil: it is here
	broken atomic.Bool // see Broken
}

// span is where the postings of a trigram lie.
type span struct{ from, to uint32 }

func (s span) size() int { return int(s.to - s.from) }

// Size is the memory that the segment takes with its postings, in bytes.
func (s *Segment) Size() int {
	if a := s.away; a != nil {
		return width*(2*a.count+1) + int(a.size)
	}
	return 4*len(s.trigrams) + 4*len(s.starts) + int(s.starts[len(s.starts)-1])
}

// Builder gathers texts for a segment. The zero value is ready.
type Builder struct {
	seen  []uint64 // bit set of trigrams in the current text
	list  []uint32 // the same as a list
	pairs []uint64 // trigram in the upper half, text in the lower
	spare []uint64
}

// Full reports that it is time for Flush.
func (b *Builder) Full() bool { return len(b.pairs) >= MaxPairs }

// Add adds a text. Its number must be greater than those before it since the
// last Flush.
func (b *Builder) Add(id uint32, text []byte) {
	if len(text) < 3 {
		return
	}
	if b.seen == nil {
		b.seen = make([]uint64, trigrams/64)
	}
	b.list = b.list[:0]
	seen := b.seen
	t, alike, last := uint32(0), 0, none
	for _, c := range text {
		t = (t<<8 | uint32(folded[c])) & (trigrams - 1)
		k := kinds[c]
		if k != last {
			alike, last = 0, k
		}
		if alike++; alike < 3 || k == none {
			continue
		}
		if bit := uint64(1) << (t & 63); seen[t>>6]&bit == 0 {
			seen[t>>6] |= bit
			b.list = append(b.list, t)
		}
	}
	for _, t := range b.list {
		seen[t>>6] = 0
		b.pairs = append(b.pairs, uint64(t)<<32|uint64(id))
	}
}

// Flush returns the index of what was added, and begins anew.
func (b *Builder) Flush() *Segment {
	b.sort()
	s := &Segment{postings: make([]byte, 0, len(b.pairs)+len(b.pairs)/8)}
	previous := uint32(0)
	for i, p := range b.pairs {
		t, id := uint32(p>>32), uint32(p)
		if i == 0 || t != uint32(b.pairs[i-1]>>32) {
			s.trigrams = append(s.trigrams, t)
			s.starts = append(s.starts, uint32(len(s.postings)))
			previous = 0
		}
		s.postings = binary.AppendUvarint(s.postings, uint64(id-previous))
		previous = id
		s.most = max(s.most, id)
	}
	s.starts = append(s.starts, uint32(len(s.postings)))
	s.trigrams, s.starts, s.postings = slices.Clip(s.trigrams), slices.Clip(s.starts), slices.Clip(s.postings)
	b.pairs = b.pairs[:0]
	return s
}

// Merge returns the index of the texts of two segments. A text that is in both
// counts as one that holds what either has.
func Merge(a, b *Segment) *Segment {
	m := &Segment{
		trigrams: make([]uint32, 0, max(len(a.trigrams), len(b.trigrams))),
		postings: make([]byte, 0, len(a.postings)+len(b.postings)),
		most:     max(a.most, b.most),
	}
	var left, right []uint32
	for i, j := 0, 0; i < len(a.trigrams) || j < len(b.trigrams); {
		t := uint32(trigrams)
		if i < len(a.trigrams) {
			t = a.trigrams[i]
		}
		if j < len(b.trigrams) {
			t = min(t, b.trigrams[j])
		}
		left, right = left[:0], right[:0]
		if i < len(a.trigrams) && a.trigrams[i] == t {
			left = a.decode(a.at(i), left)
			i++
		}
		if j < len(b.trigrams) && b.trigrams[j] == t {
			right = b.decode(b.at(j), right)
			j++
		}
		m.trigrams = append(m.trigrams, t)
		m.starts = append(m.starts, uint32(len(m.postings)))
		m.postings = appendUnion(m.postings, left, right)
	}
	m.starts = append(m.starts, uint32(len(m.postings)))
	m.trigrams, m.starts, m.postings = slices.Clip(m.trigrams), slices.Clip(m.starts), slices.Clip(m.postings)
	return m
}

// appendUnion appends two lists as one, each text once.
func appendUnion(out []byte, a, b []uint32) []byte {
	previous := uint32(0)
	for len(a) > 0 || len(b) > 0 {
		var id uint32
		switch {
		case len(b) == 0 || len(a) > 0 && a[0] <= b[0]:
			if len(b) > 0 && a[0] == b[0] {
				b = b[1:]
			}
			id, a = a[0], a[1:]
		default:
			id, b = b[0], b[1:]
		}
		out = binary.AppendUvarint(out, uint64(id-previous))
		previous = id
	}
	return out
}

// sort orders the pairs by trigram, in two passes of 12 bits; texts are in
// order already and stay so.
func (b *Builder) sort() {
	const width = 12
	b.spare = slices.Grow(b.spare[:0], len(b.pairs))[:len(b.pairs)]
	for shift := 32; shift < 32+2*width; shift += width {
		var next [1 << width]int
		for _, p := range b.pairs {
			next[p>>shift&(1<<width-1)]++
		}
		sum := 0
		for i, n := range next {
			next[i] = sum
			sum += n
		}
		for _, p := range b.pairs {
			k := p >> shift & (1<<width - 1)
			b.spare[next[k]] = p
			next[k]++
		}
		b.pairs, b.spare = b.spare, b.pairs
	}
}

// kind of a byte. Only trigrams of one kind are in an index, and not those of
// none: binary data would fill it with the others, which no one searches for.
type kind uint8

const (
	none  kind = iota
	ascii      // what lines of text in ASCII consist of
	other      // part of a character outside of ASCII
)

var kinds = func() (k [256]kind) {
	for i := range k {
		switch {
		case i >= 0x80:
			k[i] = other
		case i >= ' ' && i != 0x7f || i == '\t':
			k[i] = ascii
		}
	}
	return k
}()

// folded maps upper case to lower case.
var folded = func() (f [256]byte) {
	for i := range f {
		f[i] = byte(i)
		if 'A' <= i && i <= 'Z' {
			f[i] = byte(i) + 'a' - 'A'
		}
	}
	return f
}()

// holding appends the texts that have all the trigrams, or few more.
func (s *Segment) holding(all []uint32, out []uint32) []uint32 {
	at := make([]span, 0, len(all))
	for _, t := range all {
		p, ok := s.find(t)
		if !ok {
			return out
		}
		at = append(at, p)
	}
	slices.SortFunc(at, func(a, b span) int { return a.size() - b.size() })
	out = s.decode(at[0], out)
	var other []uint32
	for _, p := range at[1:] {
		if len(out) == 0 || p.size() > notWorth*len(out) {
			break
		}
		other = s.decode(p, other[:0])
		out = intersect(out, other)
	}
	return out
}

// notWorth is how many postings are decoded at most to save the look at one
// text, which takes 10 µs or more where one posting takes 1 ns.
const notWorth = 8192

// decode appends a trigram's texts. Postings that were read from a disk may say
// anything: what is no list of texts ends there.
func (s *Segment) decode(p span, out []uint32) []uint32 {
	id := uint32(0)
	for b := s.list(p); len(b) > 0; {
		if b[0] < 0x80 {
			id += uint32(b[0])
			b = b[1:]
		} else {
			d, n := binary.Uvarint(b)
			if n <= 0 {
				return out
			}
			id += uint32(d)
			b = b[n:]
		}
		if id > s.most {
			return out
		}
		out = append(out, id)
	}
	return out
}

// find returns where the postings of a trigram lie; false if no text has it.
func (s *Segment) find(t uint32) (p span, ok bool) {
	if s.away == nil {
		i, ok := slices.BinarySearch(s.trigrams, t)
		if !ok {
			return span{}, false
		}
		return s.at(i), true
	}
	p, ok, err := s.away.find(t)
	if err != nil {
		s.broken.Store(true)
	}
	return p, ok
}

func (s *Segment) at(i int) span { return span{s.starts[i], s.starts[i+1]} }

// list is a trigram's postings.
func (s *Segment) list(p span) []byte {
	if s.away == nil {
		return s.postings[p.from:p.to]
	}
	b, err := s.away.postings(int64(p.from), int64(p.to))
	if err != nil {
		s.broken.Store(true)
	}
	return b
}

// Set is a set of texts. The zero value is empty.
type Set struct{ words []uint64 }

// Add adds a text.
func (s *Set) Add(id uint32) {
	if n := int(id/64) + 1; n > len(s.words) {
		s.words = slices.Grow(s.words, n-len(s.words))[:n]
	}
	s.words[id/64] |= 1 << (id % 64)
}

// Has reports whether a text is in the set.
func (s *Set) Has(id uint32) bool {
	return int(id/64) < len(s.words) && s.words[id/64]>>(id%64)&1 != 0
}

// All yields the texts of the set, in order.
func (s *Set) All() iter.Seq[uint32] {
	return func(yield func(uint32) bool) {
		for i, w := range s.words {
			for ; w != 0; w &= w - 1 {
				if !yield(uint32(i*64 + bits.TrailingZeros64(w))) {
					return
				}
			}
		}
	}
}

// Len is the number of texts in the set.
func (s *Set) Len() int {
	n := 0
	for _, w := range s.words {
		n += bits.OnesCount64(w)
	}
	return n
}
