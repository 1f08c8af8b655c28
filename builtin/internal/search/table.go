package search

import (
	"encoding/binary"
	"errors"
	"math"

	"toolhost/builtin/internal/search/walk"
)

// outline is what is written of an index besides its files and segments.
type outline struct {
	maxFile int64  // Config.MaxFile: larger ones were not read
	inode   uint64 // of the root
	adds    int
	corpus  int64
	ids     uint32
}

// Flags of a row.
const (
	rowNul = 1 << iota
	rowLetters
	rowIndexed
)

func encodeTable(o outline, folders []folder) []byte {
	var b []byte
	number := func(n uint64) { b = binary.AppendUvarint(b, n) }
	text := func(s string) { number(uint64(len(s))); b = append(b, s...) }
	for _, n := range []uint64{uint64(o.maxFile), o.inode, uint64(o.adds), uint64(o.corpus), uint64(o.ids), uint64(len(folders))} {
		number(n)
	}
	for _, f := range folders {
		text(f.rel)
		number(uint64(len(f.rows)))
		for _, r := range f.rows {
			text(r.name)
			flags := uint64(0)
			for i, on := range []bool{r.nul, r.letters, r.indexed} {
				if on {
					flags |= 1 << i
				}
			}
			s := r.stamp
			for _, n := range []uint64{uint64(r.content), flags, uint64(r.id), uint64(s.Size), s.Inode, s.Links} {
				number(n)
			}
			for _, at := range []int64{s.Change, s.Status, r.at} { // the lower bits of times are as good as random
				b = binary.LittleEndian.AppendUint64(b, uint64(at))
			}
		}
	}
	return b
}

var errTable = errors.New("not a table of files")

// decodeTable reads what encodeTable has written.
func decodeTable(b []byte) (o outline, folders []folder, err error) {
	d := &decoder{b: b}
	o = outline{int64(d.below(math.MaxInt64)), d.number(), int(d.below(math.MaxInt32)), int64(d.below(math.MaxInt64)), uint32(d.below(maxIDs))}
	for n := d.number(); n > 0 && !d.bad; n-- {
		f := folder{rel: d.text()}
		for m := d.number(); m > 0 && !d.bad; m-- {
			f.rows = append(f.rows, d.row(o.ids))
		}
		folders = append(folders, f)
	}
	if d.bad || len(d.b) > 0 {
		return outline{}, nil, errTable
	}
	return o, folders, nil
}

// decoder reads a table. After something bad it reads zeros.
type decoder struct {
	b   []byte
	bad bool
}

func (d *decoder) row(ids uint32) (r row) {
	r.name = d.text()
	r.content = content(d.below(uint64(contentTooLarge)))
	flags := d.below(rowNul | rowLetters | rowIndexed)
	r.nul, r.letters, r.indexed = flags&rowNul != 0, flags&rowLetters != 0, flags&rowIndexed != 0
	r.id = uint32(d.below(uint64(ids)))
	r.stamp = walk.Stamp{Size: int64(d.below(math.MaxInt64)), Inode: d.number(), Links: d.number()}
	r.stamp.Change, r.stamp.Status, r.at = d.time(), d.time(), d.time()
	d.bad = d.bad || r.name == "" || r.indexed && (r.id == 0 || r.content != contentText)
	return r
}

func (d *decoder) number() uint64 {
	n, size := binary.Uvarint(d.b)
	if size <= 0 {
		d.b, d.bad = nil, true
		return 0
	}
	d.b = d.b[size:]
	return n
}

// below reads a number that is at most so great.
func (d *decoder) below(most uint64) uint64 {
	n := d.number()
	if n > most {
		d.b, d.bad = nil, true
		return 0
	}
	return n
}

func (d *decoder) text() string {
	n := d.below(uint64(len(d.b)))
	if n > uint64(len(d.b)) {
		d.b, d.bad = nil, true
		return ""
	}
	s := string(d.b[:n])
	d.b = d.b[n:]
	return s
}

func (d *decoder) time() int64 {
	const width = 8
	if len(d.b) < width {
		d.b, d.bad = nil, true
		return 0
	}
	n := int64(binary.LittleEndian.Uint64(d.b))
	d.b = d.b[width:]
	return n
}
