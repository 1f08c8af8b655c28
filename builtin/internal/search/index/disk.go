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
	s, err := Open(arrays, int64(len(postings)), most, nil)
	if err != nil {
		return nil, err
	}
	s.postings = postings
	return s, nil
}

// Open is Load for postings that lie elsewhere, so many bytes of them: a query reads those
// that it asks for, by a function that takes their bounds.
func Open(arrays []byte, size int64, most uint32, read func(from, to int64) ([]byte, error)) (*Segment, error) {
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
	s := &Segment{trigrams: words[:n:n], starts: words[n:], most: most, read: read}
	for i, t := range s.trigrams {
		if t >= trigrams || i > 0 && t <= s.trigrams[i-1] || s.starts[i] > s.starts[i+1] {
			return nil, errSegment
		}
	}
	if s.starts[0] != 0 || int64(s.starts[n]) != size {
		return nil, errSegment
	}
	return s, nil
}

// With returns the segment with its postings, where Open left them elsewhere.
func (s *Segment) With(postings []byte) *Segment {
	return &Segment{trigrams: s.trigrams, starts: s.starts, postings: postings, most: s.most}
}

// Broken reports whether postings that a query asked for could not be read: what it
// selected says nothing then.
func (s *Segment) Broken() bool { return s.broken.Load() }

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
