package index

import (
	"encoding/binary"
	"errors"
	"slices"
)

// Format names what segments mean: which trigrams are in an index, and how a
// segment is written. It changes whenever either does.
const Format = 1

var errSegment = errors.New("not a segment")

// Append writes the segment for [Load]: the arrays are appended to b, and the
// postings returned as they are.
func (s *Segment) Append(b []byte) (arrays, postings []byte) {
	b = binary.LittleEndian.AppendUint32(b, uint32(len(s.trigrams)))
	for _, t := range s.trigrams {
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
	const width = 4
	if len(arrays) < width {
		return nil, errSegment
	}
	n := int(binary.LittleEndian.Uint32(arrays))
	if n > trigrams || len(arrays) != width*(2*n+2) {
		return nil, errSegment
	}
	words := make([]uint32, 2*n+1)
	for i := range words {
		words[i] = binary.LittleEndian.Uint32(arrays[width*(i+1):])
	}
	s := &Segment{trigrams: words[:n:n], starts: words[n:], postings: postings, most: most}
	for i, t := range s.trigrams {
		if t >= trigrams || i > 0 && t <= s.trigrams[i-1] || s.starts[i] > s.starts[i+1] {
			return nil, errSegment
		}
	}
	if s.starts[0] != 0 || int64(s.starts[n]) != int64(len(postings)) {
		return nil, errSegment
	}
	return s, nil
}

// Only returns the index of those texts of the segment that are in the set.
func (s *Segment) Only(keep *Set) *Segment {
	out := &Segment{most: s.most, postings: make([]byte, 0, len(s.postings))}
	var list []uint32
	for i, t := range s.trigrams {
		list = s.decode(i, list[:0])
		from, previous := len(out.postings), uint32(0)
		for _, id := range list {
			if keep.Has(id) {
				out.postings = binary.AppendUvarint(out.postings, uint64(id-previous))
				previous = id
			}
		}
		if len(out.postings) > from {
			out.trigrams = append(out.trigrams, t)
			out.starts = append(out.starts, uint32(from))
		}
	}
	out.starts = append(out.starts, uint32(len(out.postings)))
	out.postings = slices.Clip(out.postings)
	return out
}
