package checkpoint

import (
	"bytes"
	"compress/zlib"
	"crypto/sha1"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sort"
	"strings"

	"github.com/toolhost/toolhost/guard/privatefile"
)

// The pack files of a repository, as described in gitformat-pack(5). They are opened when the base is read: git may
// replace them afterwards, and they can still be read. Only repositories with SHA-1 names are used; after any error a
// content is treated as not found, and copied.

// packs are the pack files of one repository.
type packs struct{ all []*pack }

// pack is one file of objects.
type pack struct {
	name  string // of the index
	data  *os.File
	index []byte // version 2
	count int    // of objects
}

// maxIndexes bounds the indexes of a repository in memory, in bytes: some 6 million objects.
const maxIndexes = 256 << 20

// openPacks opens the packs of the repository that a directory belongs to.
func openPacks(dir string) *packs {
	ps := &packs{}
	repo := repoOf(dir)
	if repo == "" {
		return ps
	}
	git := gitDir(repo)
	if config := readSmall(filepath.Join(git, "config")); strings.Contains(strings.ToLower(string(config)),
		"objectformat") {
		return ps
	}
	room := int64(maxIndexes)
	for _, objects := range objectDirs(filepath.Join(git, "objects")) {
		indexes, _ := filepath.Glob(filepath.Join(objects, "pack", "pack-*.idx"))
		for _, name := range indexes {
			if p, err := openPack(name, &room); err == nil {
				ps.all = append(ps.all, p)
			}
		}
	}
	return ps
}

// objectDirs are a directory of objects and those that it borrows from.
func objectDirs(objects string) []string {
	dirs := []string{objects}
	alternates := readSmall(filepath.Join(objects, "info", "alternates"))
	for line := range strings.Lines(string(alternates)) {
		if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "#") {
			dirs = append(dirs, pathIn(objects, line))
		}
	}
	return dirs
}

const (
	indexMagic   = "\xfftOc\x00\x00\x00\x02"
	fanoutAt     = 8
	namesAt      = fanoutAt + 256*4
	nameSize     = sha1.Size
	perObject    = nameSize + 4 + 4 // name, CRC, offset
	trailer      = 2 * nameSize
	largeOffset  = 1 << 31
	maxDeltas    = 4095 // git makes chains of 50, and reads no longer ones
	maxInflated  = DefaultMaxFile
	typeBlob     = 3
	typeOffDelta = 6
	typeRefDelta = 7
)

// openPack opens a pack by the name of its index.
func openPack(name string, room *int64) (*pack, error) {
	index, err := privatefile.Read(name, *room)
	if err != nil || !bytes.HasPrefix(index, []byte(indexMagic)) || len(index) < namesAt+trailer {
		return nil, errors.Join(err, errors.New("no index that is known"))
	}
	count := int(binary.BigEndian.Uint32(index[namesAt-4:]))
	if len(index) < namesAt+count*perObject+trailer {
		return nil, errors.New("the index is cut off")
	}
	data, err := os.OpenFile(strings.TrimSuffix(name, ".idx")+".pack", os.O_RDONLY|privatefile.NoWait, 0)
	if err != nil {
		return nil, err
	}
	if info, err := data.Stat(); err != nil || !info.Mode().IsRegular() {
		return nil, errors.Join(err, errors.New("the pack is not a regular file"), data.Close())
	}
	*room -= int64(len(index))
	return &pack{name: name, data: data, index: index, count: count}, nil
}

func (ps *packs) close() {
	for _, p := range ps.all {
		if p.data != nil {
			p.data.Close()
		}
	}
	ps.all = nil
}

// reopen opens packs by the names of their indexes. Those that git has replaced since keep their number, and have no
// content.
func (ps *packs) reopen(names []string) {
	ps.close()
	room := int64(maxIndexes)
	for _, name := range names {
		p, err := openPack(name, &room)
		if err != nil {
			p = &pack{name: name}
		}
		ps.all = append(ps.all, p)
	}
}

// find looks a content up by the name that git gives it.
func (ps *packs) find(content []byte) (*pack, int64, bool) {
	if len(ps.all) == 0 {
		return nil, 0, false
	}
	h := sha1.New()
	fmt.Fprintf(h, "blob %d\x00", len(content))
	h.Write(content)
	name := h.Sum(nil)
	for _, p := range ps.all {
		if off, ok := p.offset(name); ok {
			return p, off, true
		}
	}
	return nil, 0, false
}

// offset is the offset of an object in a pack.
func (p *pack) offset(name []byte) (int64, bool) {
	at := func(i int) []byte { return p.index[namesAt+i*nameSize:][:nameSize] }
	i := sort.Search(p.count, func(i int) bool { return bytes.Compare(at(i), name) >= 0 })
	if i == p.count || !bytes.Equal(at(i), name) {
		return 0, false
	}
	offsets := p.index[namesAt+p.count*(nameSize+4):]
	off := int64(binary.BigEndian.Uint32(offsets[i*4:]))
	if off < largeOffset {
		return off, true
	}
	large := offsets[p.count*4:]
	if i = int(off - largeOffset); len(large) < (i+1)*8+trailer {
		return 0, false
	}
	off = int64(binary.BigEndian.Uint64(large[i*8:]))
	return off, off > 0
}

var errPack = errors.New("the pack file is damaged")

// blob reads the content of an object. The caller compares it with what it expects.
func (p *pack) blob(off int64) ([]byte, error) {
	if p.data == nil {
		return nil, errors.New("git has removed the pack file that held it")
	}
	var deltas [][]byte
	room := 2 * maxInflated
	for range maxDeltas {
		kind, base, content, err := p.object(off)
		if room -= len(content); err != nil || room < 0 {
			return nil, errors.Join(err, errPack)
		}
		switch kind {
		case typeOffDelta, typeRefDelta:
			deltas = append(deltas, content)
			off = base
		case typeBlob:
			for i := range deltas {
				if content, err = applyDelta(content, deltas[len(deltas)-1-i]); err != nil {
					return nil, err
				}
			}
			return content, nil
		default:
			return nil, errPack
		}
	}
	return nil, errPack
}

// object reads one object as stored in the pack: base is the offset of the base of a delta.
func (p *pack) object(off int64) (kind int, base int64, content []byte, err error) {
	r := &packReader{r: io.NewSectionReader(p.data, off, 1<<62-off)}
	first := r.byte()
	kind = int(first>>4) & 7
	size := int64(first & 15)
	for shift := 4; first&0x80 != 0 && shift < 60; shift += 7 {
		first = r.byte()
		size |= int64(first&0x7f) << shift
	}
	switch kind {
	case typeOffDelta:
		b := r.byte()
		back := int64(b & 0x7f)
		for b&0x80 != 0 && back < 1<<55 {
			b = r.byte()
			back = (back+1)<<7 | int64(b&0x7f)
		}
		if base = off - back; base >= off {
			return 0, 0, nil, errPack
		}
	case typeRefDelta:
		var name [nameSize]byte
		for i := range name {
			name[i] = r.byte()
		}
		found := false
		if base, found = p.offset(name[:]); !found {
			return 0, 0, nil, errPack
		}
	}
	if r.err != nil || size > maxInflated || base < 0 {
		return 0, 0, nil, errors.Join(errPack, r.err)
	}
	z, err := zlib.NewReader(r)
	if err != nil {
		return 0, 0, nil, errors.Join(errPack, err)
	}
	defer z.Close()
	content = make([]byte, size)
	_, err = io.ReadFull(z, content)
	return kind, base, content, err
}

// packReader reads single bytes from a file in larger pieces. After an error it yields zeros.
type packReader struct {
	r   io.Reader
	buf [4 << 10]byte
	got []byte
	err error
}

func (r *packReader) byte() byte {
	b, err := r.ReadByte()
	if err != nil && r.err == nil {
		r.err = err
	}
	return b
}

// ReadByte implements io.ByteReader, which keeps zlib from reading ahead.
func (r *packReader) ReadByte() (byte, error) {
	if len(r.got) == 0 {
		n, err := r.r.Read(r.buf[:])
		if n == 0 {
			return 0, errors.Join(err, io.ErrUnexpectedEOF)
		}
		r.got = r.buf[:n]
	}
	b := r.got[0]
	r.got = r.got[1:]
	return b, nil
}

// Read implements io.Reader.
func (r *packReader) Read(p []byte) (int, error) {
	if len(r.got) == 0 {
		return r.r.Read(p)
	}
	n := copy(p, r.got)
	r.got = r.got[n:]
	return n, nil
}

// applyDelta makes a content from that of the base.
func applyDelta(base, delta []byte) ([]byte, error) {
	from, n := binary.Uvarint(delta)
	if n <= 0 || from != uint64(len(base)) {
		return nil, errPack
	}
	delta = delta[n:]
	size, n := binary.Uvarint(delta)
	if n <= 0 || size > maxInflated {
		return nil, errPack
	}
	delta = delta[n:]
	out := make([]byte, 0, size)
	for len(delta) > 0 {
		op := delta[0]
		delta = delta[1:]
		piece := delta
		if op&0x80 != 0 {
			var off, length int
			if off, length, delta = copyOf(op, delta); off < 0 || off+length > len(base) {
				return nil, errPack
			}
			piece = base[off : off+length]
		} else if op == 0 || int(op) > len(delta) {
			return nil, errPack
		} else {
			piece, delta = delta[:op], delta[op:]
		}
		if out = append(out, piece...); uint64(len(out)) > size {
			return nil, errPack
		}
	}
	if uint64(len(out)) != size {
		return nil, errPack
	}
	return out, nil
}

// copyOf reads the operands of an instruction that copies from the base: the bits of op say which of seven bytes
// follow. A negative offset means an error.
func copyOf(op byte, delta []byte) (off, length int, rest []byte) {
	for i := range 7 {
		if op&(1<<i) == 0 {
			continue
		}
		if len(delta) == 0 {
			return -1, 0, nil
		}
		if i < 4 {
			off |= int(delta[0]) << (8 * i)
		} else {
			length |= int(delta[0]) << (8 * (i - 4))
		}
		delta = delta[1:]
	}
	if length == 0 {
		length = 0x10000
	}
	return off, length, delta
}
