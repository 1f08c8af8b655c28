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
	var rows []byte
	for _, f := range folders {
		text(f.rel)
		rows = binary.AppendUvarint(rows[:0], uint64(len(f.rows)))
		for _, r := range f.rows {
			rows = appendRow(rows, r)
		}
		number(uint64(len(rows)))
		b = append(b, rows...)
	}
	return b
}

func appendRow(b []byte, r row) []byte {
	b = binary.AppendUvarint(b, uint64(len(r.name)))
	b = append(b, r.name...)
	flags := uint64(0)
	for i, on := range []bool{r.nul, r.letters, r.indexed} {
		if on {
			flags |= 1 << i
		}
	}
	s := r.stamp
	for _, n := range []uint64{uint64(r.content), flags, uint64(r.id), uint64(s.Size), s.Inode, s.Links} {
		b = binary.AppendUvarint(b, n)
	}
	for _, at := range []int64{s.Change, s.Status, r.at} { // the lower bits of times are as good as random
		b = binary.LittleEndian.AppendUint64(b, uint64(at))
	}
	return b
}

var errTable = errors.New("not a table of files")

// decodeTable reads what encodeTable has written, but for the rows: those of each
// directory, by its path, are for decodeRows, so that several workers can read them.
func decodeTable(b []byte) (o outline, folders map[string][]byte, err error) {
	d := &decoder{b: b}
	o = outline{int64(d.below(math.MaxInt64)), d.number(), int(d.below(math.MaxInt32)), int64(d.below(math.MaxInt64)), uint32(d.below(maxIDs))}
	folders = map[string][]byte{}
	for n := d.number(); n > 0 && !d.bad; n-- {
		rel := d.text()
		folders[rel] = d.bytes()
	}
	if d.bad || len(d.b) > 0 {
		return outline{}, nil, errTable
	}
	return o, folders, nil
}

// decodeRows reads the rows of one directory, which are in the order of their names;
// nil if they are not rows. No id is greater than the one given.
func decodeRows(b []byte, ids uint32) []row {
	d := &decoder{b: b}
	rows := make([]row, d.below(uint64(len(b)/minRow)))
	for i := range rows {
		rows[i] = d.row(ids)
	}
	if d.bad || len(d.b) > 0 {
		return nil
	}
	return rows
}

// minRow is how many bytes a row has at least: a number each for the length of the
// name, the name, and six more, and three times.
const minRow = 1 + 1 + 6 + 3*8

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

func (d *decoder) text() string { return string(d.bytes()) }

// bytes reads a length and so many bytes.
func (d *decoder) bytes() []byte {
	n := d.below(uint64(len(d.b)))
	if n > uint64(len(d.b)) {
		d.b, d.bad = nil, true
		return nil
	}
	b := d.b[:n]
	d.b = d.b[n:]
	return b
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
