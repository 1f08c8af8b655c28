package index

import (
	"encoding/binary"
	"math/bits"
	"slices"
)

// The postings of a key are the numbers of its texts, in order, in blocks:
//
//	one byte    how the block is written
//	a varint    its first number
//	            unless that is its only one:
//	a varint    how many bytes follow
//	bits        the other numbers in Rice's code: of each, its difference from the one before
//	            less one is written as a one for each 1<<k that it contains, a zero, and the
//	            rest in k bits; the last byte is filled up with ones
//	or a bitmap the other numbers, as bits after the first one
//
// The shorter of the two is used, or the bitmap if it is only a little longer. Whole bytes would
// not do: half of all postings are of keys that every third text has. Bits are counted from the
// lowest of each byte. A block is self-contained, so that lists are joined by copying them.

// Ways in which a block is written. A smaller number is the k of Rice's code.
const (
	asBitmap = 0xff
	alone    = 0xfe
	maxRest  = 24 // the greatest k
)

// maxID bounds the numbers of texts, so that the sum of two of them does not overflow.
const maxID = 1 << 30

// appendList appends the postings of at least one text as one block.
func appendList(out []byte, ids []uint32) []byte {
	first, last, gaps := ids[0], ids[len(ids)-1], ids[1:]
	if len(gaps) == 0 {
		return binary.AppendUvarint(append(out, alone), uint64(first))
	}
	// For randomly distributed gaps the best k is the binary logarithm of 0.69 times their mean.
	mean := uint64(last-first-uint32(len(gaps))) / uint64(len(gaps))
	k := uint(min(max(bits.Len64(mean*11/16), 1)-1, maxRest))
	size := riceBits(first, gaps, k)
	if n := int(last - first); n <= size+size/4 { // a bitmap is faster to read
		out = appendHead(out, asBitmap, first, n)
		at := len(out)
		out = append(out, make([]byte, (n+7)/8)...)
		for _, id := range gaps {
			bit := id - first - 1
			out[at+int(bit/8)] |= 1 << (bit % 8)
		}
		return out
	}
	return appendRice(appendHead(out, byte(k), first, size), first, gaps, k)
}

// appendHead appends the head of a block whose other numbers take that many bits.
func appendHead(out []byte, way byte, first uint32, bits int) []byte {
	return binary.AppendUvarint(binary.AppendUvarint(append(out, way), uint64(first)), uint64(bits+7)/8)
}

// riceBits is how many bits appendRice needs.
func riceBits(first uint32, gaps []uint32, k uint) int {
	n := uint32(0)
	for _, id := range gaps {
		n += (id - first - 1) >> k
		first = id
	}
	return int(n) + len(gaps)*int(k+1)
}

func appendRice(out []byte, first uint32, gaps []uint32, k uint) []byte {
	const most = 32
	var held uint64 // bits that do not fill a word yet
	var n uint      // how many bits held has
	for _, id := range gaps {
		gap := uint64(id - first - 1)
		first = id
		q := gap >> k
		for ; q+1+uint64(k) > most; q-- { // rare: the number does not fit into one word
			held |= 1 << n
			if n++; n == most {
				out, held, n = binary.LittleEndian.AppendUint32(out, uint32(held)), 0, 0
			}
		}
		held |= (1<<q - 1 | gap&(1<<k-1)<<(q+1)) << n
		if n += uint(q) + 1 + k; n >= most {
			out = binary.LittleEndian.AppendUint32(out, uint32(held))
			held >>= most
			n -= most
		}
	}
	for held |= ^uint64(0) << n; n > 0; n -= min(n, 8) {
		out = append(out, byte(held))
		held >>= 8
	}
	return out
}

// A block holds some of the postings of a key.
type block struct {
	first  uint32
	k      uint
	bitmap bool
	others []byte
}

// nextBlock returns the first block of postings, and those after it.
func nextBlock(b []byte) (l block, rest []byte) {
	way := b[0]
	first, n := binary.Uvarint(b[1:])
	b = b[1+n:]
	l = block{first: uint32(first), k: uint(way), bitmap: way == asBitmap}
	if way == alone {
		return l, b
	}
	size, n := binary.Uvarint(b)
	l.others = b[n : n+int(size)]
	return l, b[n+int(size):]
}

// appendAll appends the numbers in the postings b.
func appendAll(out []uint32, b []byte) []uint32 {
	var l block
	for len(b) > 0 {
		l, b = nextBlock(b)
		out = l.appendTo(out)
	}
	return out
}

// appendTo appends the numbers of a block.
func (l block) appendTo(out []uint32) []uint32 {
	out = append(out, l.first)
	if !l.bitmap {
		return l.appendRice(out)
	}
	for i, b := range l.others {
		for ; b != 0; b &= b - 1 {
			out = append(out, l.first+1+uint32(i*8+bits.TrailingZeros8(b)))
		}
	}
	return out
}

// appendRice appends the numbers after the first of a block in Rice's code, as appendTo does.
func (l block) appendRice(out []uint32) []uint32 {
	id, k := uint64(l.first), l.k
	end := uint(len(l.others)) * 8
	var w uint64  // the bits at a position
	var have uint // how many of them are known
	for at := uint(0); at < end; {
		ones := uint(bits.TrailingZeros64(^w))
		if size := ones + 1 + k; size <= have {
			w >>= ones + 1
			id += uint64(ones)<<k + w&(1<<k-1) + 1
			w >>= k
			have -= size
			at += size
		} else if w, have = bitsAt(l.others, at), sureBits; uint(bits.TrailingZeros64(^w))+1+k <= have {
			continue
		} else {
			id, at = l.long(id, at)
			have = 0
		}
		if at > end { // the ones that fill the last byte
			return out
		}
		out = append(out, uint32(id))
	}
	return out
}

// long reads a number that may take more bits than are examined at once.
func (l block) long(id uint64, at uint) (uint64, uint) {
	q := uint64(0)
	for ; at < uint(len(l.others))*8 && bitsAt(l.others, at)&1 != 0; at++ {
		q++
	}
	at++
	return id + q<<l.k + bitsAt(l.others, at)&(1<<l.k-1) + 1, at + l.k
}

// sureBits is how many bits bitsAt returns wherever it begins.
const sureBits = 64 - 7

// bitsAt returns the bits from a position on. Bits that are not read, or lie after the end, are ones.
func bitsAt(b []byte, at uint) uint64 {
	i, shift := at/8, at%8
	w := ^uint64(0)
	switch {
	case i+8 <= uint(len(b)):
		w = binary.LittleEndian.Uint64(b[i:])
	case i < uint(len(b)):
		for _, c := range slices.Backward(b[i:]) {
			w = w<<8 | uint64(c)
		}
	}
	return w>>shift | ^(^uint64(0) >> shift)
}

// intersectList removes from ids the numbers that are not in the postings b. spare is reused memory.
func intersectList(ids []uint32, b []byte, spare *[]uint32) []uint32 {
	out := ids[:0]
	var l block
	for len(ids) > 0 && len(b) > 0 {
		l, b = nextBlock(b)
		i, _ := slices.BinarySearch(ids, l.first)
		if ids = ids[i:]; !l.bitmap {
			*spare = l.appendTo((*spare)[:0])
			out, ids = intersect(out, ids, *spare)
			continue
		}
		for last := l.last(); len(ids) > 0 && uint64(ids[0]) <= last; ids = ids[1:] {
			if l.has(ids[0]) {
				out = append(out, ids[0])
			}
		}
	}
	return out
}

// last returns the last number of a block that is a bitmap.
func (l block) last() uint64 {
	whole := len(l.others) - 1
	return uint64(l.first) + uint64(8*whole+bits.Len8(l.others[whole]))
}

// has reports whether a block that is a bitmap contains a number. The number must be between the first and the last
// of the block.
func (l block) has(id uint32) bool {
	bit := id - l.first - 1
	return id == l.first || l.others[bit/8]>>(bit%8)&1 != 0
}

// intersect appends the common numbers of a and b to out, which may share memory with a before its start. It returns
// the part of a that comes after the last number of b.
func intersect(out, a, b []uint32) (both, rest []uint32) {
	for len(a) > 0 && len(b) > 0 {
		x, y := a[0], b[0]
		if x == y {
			out = append(out, x)
		}
		if x <= y {
			a = a[1:]
		}
		if y <= x {
			b = b[1:]
		}
	}
	return out, a
}
