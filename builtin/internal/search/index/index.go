// Package index selects those of many texts that may contain given strings, by their
// trigrams, three bytes in a row, and joints, the five bytes around a space, with ASCII
// letters in lower case. A text that is not selected does not contain the strings.
package index

import (
	"iter"
	"math/bits"
	"slices"
)

// The keys of an index are numbers: trigrams, of three bytes each, and after them
// joints, which share numbers.
const trigrams = 1 << 24

// MaxPairs is about how many pairs of text and key a segment holds: more
// pack better, and need more memory while they are gathered, 16 bytes each.
const MaxPairs = 1 << 19

// Segment is the index of some texts. Its content is immutable.
type Segment struct {
	keys     []uint32 // ascending
	starts   []uint32 // of each key's postings, and the end of the last
	postings []byte   // see appendList
	least    uint32   // no text has a smaller number
	most     uint32   // no text has a greater one
}

// span is where the postings of a key lie.
type span struct{ from, to uint32 }

func (s span) size() int { return int(s.to - s.from) }

// Size is the memory that the segment takes with its postings, in bytes.
func (s *Segment) Size() int {
	return 4*len(s.keys) + 4*len(s.starts) + int(s.starts[len(s.starts)-1])
}

// Builder gathers texts for a segment. The zero value is ready.
type Builder struct {
	seen  []uint64 // bit set of keys in the current text
	list  []uint32 // the same as a list
	pairs []uint64 // key in the upper half, text in the lower
	spare []uint64
}

// Full reports that it is time for Flush.
func (b *Builder) Full() bool { return len(b.pairs) >= MaxPairs }

// Add adds a text. Its number must be greater than the numbers of all texts added since the last Flush.
func (b *Builder) Add(id uint32, text []byte) {
	if len(text) < 3 {
		return
	}
	if b.seen == nil {
		b.seen = make([]uint64, keys/64)
	}
	b.list = b.list[:0]
	for key := range keysOf(text) {
		if bit := uint64(1) << (key & 63); b.seen[key>>6]&bit == 0 {
			b.seen[key>>6] |= bit
			b.list = append(b.list, key)
		}
	}
	for _, t := range b.list {
		b.seen[t>>6] = 0
		b.pairs = append(b.pairs, uint64(t)<<32|uint64(id))
	}
}

// Flush returns the index of what was added, and empties the builder.
func (b *Builder) Flush() *Segment {
	b.sort()
	s := &Segment{postings: make([]byte, 0, len(b.pairs)), least: maxID}
	for from, to := 0, 0; from < len(b.pairs); from = to {
		key := uint32(b.pairs[from] >> 32)
		b.list = b.list[:0]
		for to = from; to < len(b.pairs) && uint32(b.pairs[to]>>32) == key; to++ {
			b.list = append(b.list, uint32(b.pairs[to]))
		}
		s.append(key)
		s.postings = appendList(s.postings, b.list)
		s.least = min(s.least, b.list[0])
		s.most = max(s.most, b.list[len(b.list)-1])
	}
	s.starts = append(s.starts, uint32(len(s.postings)))
	s.keys, s.starts, s.postings = slices.Clip(s.keys), slices.Clip(s.starts), slices.Clip(s.postings)
	b.pairs = b.pairs[:0]
	return s
}

// append adds a key after all others. Its postings are appended next.
func (s *Segment) append(key uint32) {
	s.keys = append(s.keys, key)
	s.starts = append(s.starts, uint32(len(s.postings)))
}

// Merge returns the index of the texts of two segments. A text that is in both counts as having the keys of both.
func Merge(a, b *Segment) *Segment {
	m := &merging{Segment: Segment{
		keys:     make([]uint32, 0, max(len(a.keys), len(b.keys))),
		postings: make([]byte, 0, len(a.postings)+len(b.postings)),
		least:    min(a.least, b.least),
		most:     max(a.most, b.most),
	}, ordered: a.most < b.least}
	for i, j := 0, 0; i < len(a.keys) || j < len(b.keys); {
		key := uint32(keys)
		if i < len(a.keys) {
			key = a.keys[i]
		}
		if j < len(b.keys) {
			key = min(key, b.keys[j])
		}
		var first, second []byte
		if i < len(a.keys) && a.keys[i] == key {
			first = a.list(a.at(i))
			i++
		}
		if j < len(b.keys) && b.keys[j] == key {
			second = b.list(b.at(j))
			j++
		}
		m.append(key)
		m.merge(first, second)
	}
	m.starts = append(m.starts, uint32(len(m.postings)))
	m.keys, m.starts, m.postings = slices.Clip(m.keys), slices.Clip(m.starts), slices.Clip(m.postings)
	return &m.Segment
}

// merging is a segment that is made of two.
type merging struct {
	Segment
	ordered           bool     // the numbers of the second one are after those of the first
	left, right, both []uint32 // reused memory
}

// enough is how many bytes of postings are worth a block of their own: the head of a block is small in comparison.
const enough = 64

// merge appends the postings of one key, which are a in the first segment and b in the second.
func (m *merging) merge(a, b []byte) {
	if len(a) == 0 || len(b) == 0 || m.ordered && len(a) >= enough && len(b) >= enough {
		m.postings = append(append(m.postings, a...), b...)
		return
	}
	if m.ordered {
		m.both = appendAll(appendAll(m.both[:0], a), b)
	} else {
		m.left, m.right = appendAll(m.left[:0], a), appendAll(m.right[:0], b)
		m.both = appendUnion(m.both[:0], m.left, m.right)
	}
	m.postings = appendList(m.postings, m.both)
}

// appendUnion appends the union of two lists, in order.
func appendUnion(out, a, b []uint32) []uint32 {
	for len(a) > 0 && len(b) > 0 {
		id := min(a[0], b[0])
		if a[0] == id {
			a = a[1:]
		}
		if b[0] == id {
			b = b[1:]
		}
		out = append(out, id)
	}
	return append(append(out, a...), b...)
}

// sort orders the pairs by key, in two passes of 12 and of 13 bits; texts are in order
// already and stay so.
func (b *Builder) sort() {
	const low, high, mask = 32, 32 + 12, 1<<13 - 1
	b.spare = slices.Grow(b.spare[:0], len(b.pairs))[:len(b.pairs)]
	for _, of := range [2]struct{ shift, mask uint64 }{{low, mask >> 1}, {high, mask}} {
		var next [mask + 1]int
		for _, p := range b.pairs {
			next[p>>of.shift&of.mask]++
		}
		sum := 0
		for i, n := range next {
			next[i] = sum
			sum += n
		}
		for _, p := range b.pairs {
			k := p >> of.shift & of.mask
			b.spare[next[k]] = p
			next[k]++
		}
		b.pairs, b.spare = b.spare, b.pairs
	}
}

// kind is the kind of a byte. Only trigrams of three bytes of the same kind are indexed, and none of kind none:
// others are not searched for, and those of binary data would fill the index.
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

// containing appends the texts that have all the keys, and perhaps a few more.
func (s *Segment) containing(all []uint32, out []uint32) []uint32 {
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
		out = intersectList(out, s.list(p), &other)
	}
	return out
}

// notWorth is how many bytes of postings are read to avoid searching one text: searching one takes 10 µs or more,
// reading a byte up to 10 ns.
const notWorth = 1024

// decode appends the numbers of a key's texts.
func (s *Segment) decode(p span, out []uint32) []uint32 {
	return appendAll(out, s.list(p))
}

// find returns the position of the postings of a key. It reports false if no text has it.
func (s *Segment) find(t uint32) (p span, ok bool) {
	i, ok := slices.BinarySearch(s.keys, t)
	if !ok {
		return span{}, false
	}
	return s.at(i), true
}

func (s *Segment) at(i int) span { return span{s.starts[i], s.starts[i+1]} }

// list returns the postings at a position.
func (s *Segment) list(p span) []byte {
	return s.postings[p.from:p.to]
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
