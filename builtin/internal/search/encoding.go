package search

import (
	"encoding/binary"
	"errors"
	"math"
	"slices"
	"unsafe"

	"github.com/toolhost/toolhost/builtin/internal/search/walk"
)

// header is what is written of an index before its files and segments.
type header struct {
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

func encodeRecords(o header, dirs []dirRec) []byte {
	var b []byte
	number := func(n uint64) { b = binary.AppendUvarint(b, n) }
	text := func(s string) { number(uint64(len(s))); b = append(b, s...) }
	for _, n := range []uint64{uint64(o.maxFile), o.inode, uint64(o.adds), uint64(o.corpus), uint64(o.ids), uint64(len(dirs))} {
		number(n)
	}
	var blob []byte
	for _, f := range dirs {
		blob = appendDirRec(blob[:0], f)
		text(f.rel)
		number(uint64(len(blob)))
		b = append(b, blob...)
	}
	return b
}

func appendDirRec(b []byte, f dirRec) []byte {
	b = appendStamp(b, f.look.Stamp, f.look.At)
	b = binary.AppendUvarint(b, uint64(len(f.rows)))
	for _, r := range f.rows {
		b = appendFileRec(b, r)
	}
	return b
}

func appendStamp(b []byte, s walk.Stamp, at int64) []byte {
	for _, n := range []uint64{uint64(s.Size), s.Inode, s.Links} {
		b = binary.AppendUvarint(b, n)
	}
	for _, n := range []int64{s.Change, s.Status, at} { // the lower bits of times are as good as random
		b = binary.LittleEndian.AppendUint64(b, uint64(n))
	}
	return b
}

func appendFileRec(b []byte, r fileRec) []byte {
	b = binary.AppendUvarint(b, uint64(len(r.name)))
	b = append(b, r.name...)
	flags := uint64(0)
	for i, on := range []bool{r.nul, r.letters, r.indexed} {
		if on {
			flags |= 1 << i
		}
	}
	for _, n := range []uint64{uint64(r.kind), uint64(r.content)} {
		b = binary.AppendUvarint(b, n)
	}
	if !r.some() {
		return b
	}
	b = binary.AppendUvarint(b, flags)
	b = binary.AppendUvarint(b, uint64(r.id))
	return appendStamp(b, r.stamp, r.at)
}

var errRecords = errors.New("not a table of files")

// decodeRecords reads what encodeRecords has written, but for the dirs: each, by its path,
// is for [dirRec.decode], so that several workers can read them.
func decodeRecords(b []byte) (o header, dirs map[string][]byte, err error) {
	d := &decoder{b: b}
	o = header{int64(d.atMost(math.MaxInt64)), d.number(), int(d.atMost(math.MaxInt32)), int64(d.atMost(math.MaxInt64)), uint32(d.atMost(maxIDs))}
	dirs = map[string][]byte{}
	for n := d.number(); n > 0 && !d.bad; n-- {
		rel := string(d.bytes())
		dirs[rel] = d.bytes()
	}
	if d.bad || len(d.b) > 0 {
		return header{}, nil, errRecords
	}
	return o, dirs, nil
}

// decode reads one directory, except its path, into a dirRec that may be reused. It reports false if b is invalid. No id
// is greater than the one given. Names are parts of b.
func (f *dirRec) decode(b []byte, ids uint32) bool {
	d := decoder{b: b, text: unsafe.String(unsafe.SliceData(b), len(b))} // b is never modified
	f.look.Stamp, f.look.At = d.stamp()
	n := int(d.atMost(uint64(len(b) / minRow)))
	f.rows = slices.Grow(f.rows[:0], n)[:n]
	for i := range f.rows {
		d.fileRec(&f.rows[i], ids)
	}
	return !d.bad && len(d.b) == 0
}

// minRow is how many bytes a fileRec has at least: a number each for the length of the
// name, the kind and the content, and the name.
const minRow = 4

// decoder reads a table. After something bad it reads zeros.
type decoder struct {
	b    []byte
	text string // ends in b; "": there is none
	bad  bool
}

func (d *decoder) fileRec(r *fileRec, ids uint32) {
	*r = fileRec{}
	r.name = d.name()
	r.kind = walk.Kind(d.atMost(uint64(walk.Dir)))
	r.content = content(d.atMost(uint64(contentTooLarge)))
	d.bad = d.bad || r.name == "" || r.some() && r.kind != walk.File
	if !r.some() {
		return
	}
	flags := d.atMost(rowNul | rowLetters | rowIndexed)
	r.nul, r.letters, r.indexed = flags&rowNul != 0, flags&rowLetters != 0, flags&rowIndexed != 0
	r.id = uint32(d.atMost(uint64(ids)))
	r.stamp, r.at = d.stamp()
	d.bad = d.bad || r.indexed && (r.id == 0 || r.content != contentText)
}

func (d *decoder) stamp() (s walk.Stamp, at int64) {
	s = walk.Stamp{Size: int64(d.atMost(math.MaxInt64)), Inode: d.number(), Links: d.number()}
	s.Change, s.Status, at = d.time(), d.time(), d.time()
	return s, at
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

// atMost reads a number that is at most most.
func (d *decoder) atMost(most uint64) uint64 {
	n := d.number()
	if n > most {
		d.b, d.bad = nil, true
		return 0
	}
	return n
}

// name is bytes as a part of the text.
func (d *decoder) name() string {
	n := len(d.bytes())
	end := len(d.text) - len(d.b)
	return d.text[end-n : end]
}

// bytes reads a length and that many bytes.
func (d *decoder) bytes() []byte {
	n := d.atMost(uint64(len(d.b)))
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
