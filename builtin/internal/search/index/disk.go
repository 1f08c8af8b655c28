package index

import (
	"encoding/binary"
	"errors"
	"slices"
	"sort"
)

// Format names what segments mean: which keys are in an index, and how a
// segment is written. It changes whenever either does.
const Format = 3

var errSegment = errors.New("not a segment")

// Append writes the segment for [Load]: the arrays are appended to b, and the
// postings returned as they are.
func (s *Segment) Append(b []byte) (arrays, postings []byte) {
	b = binary.LittleEndian.AppendUint32(b, uint32(len(s.keys)))
	for _, t := range s.keys {
		b = binary.LittleEndian.AppendUint32(b, t)
	}
	for _, at := range s.starts {
		b = binary.LittleEndian.AppendUint32(b, at)
	}
	return b, s.postings
}

// Load reads a segment of texts numbered up to most. It keeps postings. What it
// does not look at, the numbers in the postings, is bounded when they are read.
func Load(arrays, postings []byte, most uint32) (*Segment, error) {
	n, ok := countOf(int64(len(arrays)))
	if !ok || int(binary.LittleEndian.Uint32(arrays)) != n {
		return nil, errSegment
	}
	words := make([]uint32, 2*n+1)
	for i := range words {
		words[i] = binary.LittleEndian.Uint32(arrays[width*(i+1):])
	}
	s := &Segment{keys: words[:n:n], starts: words[n:], postings: postings, most: most}
	for i, t := range s.keys {
		if t >= keys || i > 0 && t <= s.keys[i-1] || s.starts[i] > s.starts[i+1] {
			return nil, errSegment
		}
	}
	if s.starts[0] != 0 || int(s.starts[n]) != len(postings) {
		return nil, errSegment
	}
	return s, nil
}

// width is that of a number in the arrays, in bytes.
const width = 4

// countOf returns the number of keys of arrays of size bytes.
func countOf(size int64) (n int, ok bool) {
	n = int(size/width-2) / 2
	return n, n >= 0 && n <= keys && size == width*(2*int64(n)+2)
}

// A Part reads what lies between two positions.
type Part func(from, to int64) ([]byte, error)

// onDisk is a segment that is not in memory.
type onDisk struct {
	count            int
	size             int64 // of the postings
	arrays, postings Part
	blocks           map[int64][]byte // of the arrays, that were read
}

// Open is Load for arrays and postings of those sizes that stay on disk: queries, one
// at a time, read the parts that they need.
func Open(arraysSize, size int64, most uint32, arrays, postings Part) (*Segment, error) {
	n, ok := countOf(arraysSize)
	if !ok {
		return nil, errSegment
	}
	return &Segment{most: most, onDisk: &onDisk{n, size, arrays, postings, map[int64][]byte{}}}, nil
}

// With is Load for a segment that Open has opened.
func (s *Segment) With(arrays, postings []byte) (*Segment, error) {
	return Load(arrays, postings, s.most)
}

// find looks for a key.
func (a *onDisk) find(t uint32) (p span, ok bool, err error) {
	at := func(i int) (w uint32) {
		if err == nil {
			w, err = a.word(i)
		}
		return w
	}
	i := sort.Search(a.count, func(i int) bool { return at(1+i) >= t })
	if i == a.count || at(1+i) != t {
		return span{}, false, err
	}
	p = span{at(1 + a.count + i), at(2 + a.count + i)}
	if err == nil && (p.from > p.to || int64(p.to) > a.size) {
		err = errSegment
	}
	return p, err == nil, err
}

// blockSize is how much of the arrays is read at once, in bytes: a part of a file that has
// a checksum.
const blockSize = 16 << 10

// word is a number in the arrays.
func (a *onDisk) word(i int) (uint32, error) {
	at := width * int64(i)
	from := at / blockSize * blockSize
	b, ok := a.blocks[from]
	if !ok {
		var err error
		if b, err = a.arrays(from, min(from+blockSize, width*(2*int64(a.count)+2))); err != nil {
			return 0, err
		}
		a.blocks[from] = b
	}
	return binary.LittleEndian.Uint32(b[at-from:]), nil
}

// Broken reports whether a part that a query needed could not be read. What it selected
// is invalid then.
func (s *Segment) Broken() bool { return s.broken.Load() }

// Only returns the index of those texts of the segment that are in the set.
func (s *Segment) Only(keep *Set) *Segment {
	out := &Segment{most: s.most, postings: make([]byte, 0, len(s.postings))}
	var list []uint32
	for i, t := range s.keys {
		list = s.decode(s.at(i), list[:0])
		list = slices.DeleteFunc(list, func(id uint32) bool { return !keep.Has(id) })
		if len(list) > 0 {
			out.append(t)
			out.postings = appendList(out.postings, list)
		}
	}
	out.starts = append(out.starts, uint32(len(out.postings)))
	out.postings = slices.Clip(out.postings)
	return out
}
