package index

import (
	"bufio"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/gofrs/flock"

	"github.com/toolhost/toolhost/guard/statedir"
)

// A Dir keeps one file for each of many names in a directory that several processes use at once. A file is written
// whole and put in place by a rename, so that a reader sees one version or the other. Its header and each block have
// checksums, so that a part can be read alone. A torn or foreign file is ignored. The directory is bounded in size and
// number; files used least recently are removed.
type Dir struct {
	path  string
	bytes int64
	files int
}

// Errors of Load and Save. After any error of Load there is nothing to load.
var (
	// ErrBusy is returned by Save when another process writes.
	ErrBusy = errors.New("another process writes there")
	// ErrTooLarge is returned for a file that is larger than it may be.
	ErrTooLarge = errors.New("larger than is kept")
	// ErrBroken is returned by Load for what is not a whole file of this format.
	ErrBroken = errors.New("not a whole file")
)

// OpenDir uses a directory, which is made when something is first saved. It holds at
// most bytes bytes, in files files.
func OpenDir(path string, bytes int64, files int) *Dir { return &Dir{path, bytes, files} }

const (
	// magic begins a file.
	magic = "toolhost"
	// head is the length of the first part: magic, checksum of what precedes
	// the sections, format, length of the name, number of sections (4 bytes each),
	// length of the file (8). Then come the length of each section (8), the name, the
	// checksum of each block of each section (4), and the sections. All numbers have
	// the low byte first, on any machine.
	head = len(magic) + 4*4 + 8
	// perSection and perBlock are the sizes of the entry of a section and of a block, in bytes.
	perSection, perBlock = 8, 4
	// diskBlock is how many bytes have one checksum: a part of a section is read in whole
	// blocks. The last one of a section is shorter.
	diskBlock = 16 << 10
	// maxSections bounds what a file may say of itself.
	maxSections = 1 << 16

	suffix = ".idx"
	// unfinished is the suffix of a file that is being written, or was when its
	// writer died: the next one writes over it.
	unfinished = ".new"
	lockName   = "lock"
)

func (d *Dir) file(name string) string {
	sum := sha256.Sum256([]byte(name))
	return filepath.Join(d.path, hex.EncodeToString(sum[:16])+suffix)
}

// Size is the size of a name's file in bytes, 0 if there is none.
func (d *Dir) Size(name string) int64 {
	info, err := os.Lstat(d.file(name))
	if err != nil {
		return 0
	}
	return info.Size()
}

// Save writes a name's file.
func (d *Dir) Save(ctx context.Context, name string, format uint32, sections [][]byte) (err error) {
	size := int64(head + len(name) + perSection*len(sections))
	for _, s := range sections {
		size += perBlock*diskBlocks(int64(len(s))) + int64(len(s))
	}
	if size > d.bytes || len(sections) > maxSections {
		return ErrTooLarge
	}
	if err := os.MkdirAll(d.path, 0o700); err != nil {
		return err
	}
	if err := statedir.Check(d.path); err != nil {
		return err
	}
	lock := flock.New(filepath.Join(d.path, lockName), flock.SetFlag(os.O_CREATE|os.O_RDONLY|syscall.O_NONBLOCK)) // a pipe there is not waited for
	defer func() { err = errors.Join(err, lock.Close()) }()
	if held, err := lock.TryLock(); err != nil {
		return err
	} else if !held {
		return ErrBusy
	}
	to := d.file(name)
	from := strings.TrimSuffix(to, suffix) + unfinished
	if err := write(ctx, from, name, format, size, sections); err != nil {
		return errors.Join(err, os.Remove(from))
	}
	if err := os.Rename(from, to); err != nil {
		return err
	}
	return d.trim(filepath.Base(to))
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// write writes a file. It is not made durable: after a loss of power it is torn at
// worst, which its checksums show.
func write(ctx context.Context, path, name string, format uint32, size int64, sections [][]byte) error {
	_ = os.Remove(path) // so that no link that is there is followed
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	defer f.Close()
	rest := binary.LittleEndian.AppendUint32(nil, format)
	rest = binary.LittleEndian.AppendUint32(rest, uint32(len(name)))
	rest = binary.LittleEndian.AppendUint32(rest, uint32(len(sections)))
	rest = binary.LittleEndian.AppendUint64(rest, uint64(size))
	for _, s := range sections {
		rest = binary.LittleEndian.AppendUint64(rest, uint64(len(s)))
	}
	rest = append(rest, name...)
	for _, s := range sections {
		for b := range slices.Chunk(s, diskBlock) {
			rest = binary.LittleEndian.AppendUint32(rest, crc32.Checksum(b, castagnoli))
		}
	}
	w := bufio.NewWriterSize(f, 1<<20)
	begin := binary.LittleEndian.AppendUint32([]byte(magic), crc32.Checksum(rest, castagnoli))
	for _, s := range append([][]byte{begin, rest}, sections...) {
		for len(s) > 0 && ctx.Err() == nil {
			n := min(len(s), 1<<20)
			if _, err := w.Write(s[:n]); err != nil {
				return err
			}
			s = s[n:]
		}
	}
	return errors.Join(ctx.Err(), w.Flush(), f.Close())
}

// File is a name's file, open to be read.
type File struct {
	r        io.ReaderAt
	close    func() error
	sections []section
}

type section struct {
	at, size int64
	sums     []byte // of its blocks, as they are written
}

// diskBlocks is how many blocks a section of size bytes has.
func diskBlocks(size int64) int64 { return (size + diskBlock - 1) / diskBlock }

// Load opens a name's file, if it has that format and at most that size in bytes,
// and counts it as used. The file must be closed.
func (d *Dir) Load(name string, format uint32, most int64) (*File, error) {
	if err := statedir.Check(d.path); err != nil {
		return nil, err
	}
	path := d.file(name)
	if info, err := os.Lstat(path); err != nil {
		return nil, err
	} else if !info.Mode().IsRegular() {
		return nil, ErrBroken
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	file, err := parse(f, name, format, most)
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	now := time.Now()
	_ = os.Chtimes(path, now, now) // at worst it goes sooner
	return file, nil
}

func parse(f *os.File, name string, format uint32, most int64) (*File, error) {
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if info.Size() > most {
		return nil, ErrTooLarge
	}
	sections, err := parseHead(f, info.Size(), name, format)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrBroken, err)
	}
	return &File{f, f.Close, sections}, nil
}

// Close closes the file.
func (f *File) Close() error { return f.close() }

// Len is the number of its sections.
func (f *File) Len() int { return len(f.sections) }

// Size is the length of one of them, in bytes.
func (f *File) Size(i int) int64 { return f.sections[i].size }

// Section reads one of them, into memory of its own. It may be called by several
// goroutines at once.
func (f *File) Section(i int) ([]byte, error) { return f.Part(i, 0, f.sections[i].size) }

// Part reads what lies between two positions in a section, as Section does.
func (f *File) Part(i int, from, to int64) ([]byte, error) {
	s := f.sections[i]
	if from < 0 || to < from || to > s.size {
		return nil, fmt.Errorf("%w: section %d has no part from %d to %d", ErrBroken, i, from, to)
	}
	first := from / diskBlock
	start, end := first*diskBlock, min(diskBlocks(to)*diskBlock, s.size)
	b := make([]byte, end-start)
	if n, err := f.r.ReadAt(b, s.at+start); n < len(b) {
		return nil, fmt.Errorf("%w: section %d: %w", ErrBroken, i, err)
	}
	sums := s.sums[first*perBlock:]
	for some := range slices.Chunk(b, diskBlock) {
		if crc32.Checksum(some, castagnoli) != binary.LittleEndian.Uint32(sums) {
			return nil, fmt.Errorf("%w: section %d: a checksum is wrong", ErrBroken, i)
		}
		sums = sums[perBlock:]
	}
	return b[from-start : to-start], nil
}

// parseHead finds the sections of a file of size bytes.
func parseHead(r io.ReaderAt, size int64, name string, format uint32) ([]section, error) {
	var begin [head]byte
	if _, err := io.ReadFull(io.NewSectionReader(r, 0, size), begin[:]); err != nil {
		return nil, err
	}
	word := func(i int) uint32 { return binary.LittleEndian.Uint32(begin[len(magic)+4*i:]) }
	count := int64(word(3))
	switch {
	case string(begin[:len(magic)]) != magic:
		return nil, errors.New("no such file")
	case word(1) != format:
		return nil, fmt.Errorf("its format is %d, not %d", word(1), format)
	case int64(word(2)) != int64(len(name)) || count > maxSections:
		return nil, errors.New("it belongs to another program")
	case binary.LittleEndian.Uint64(begin[head-8:]) != uint64(size):
		return nil, errors.New("its length differs from the length it states")
	}
	table := make([]byte, perSection*count+int64(len(name)))
	if _, err := io.ReadFull(io.NewSectionReader(r, int64(head), size), table); err != nil {
		return nil, err
	}
	sections, total, err := lengths(table[:perSection*count], size)
	if err != nil {
		return nil, err
	}
	at := int64(head + len(table))
	sums := make([]byte, perBlock*total)
	if _, err := io.ReadFull(io.NewSectionReader(r, at, size), sums); err != nil {
		return nil, err
	}
	sum := crc32.Checksum(begin[len(magic)+4:], castagnoli)
	if crc32.Update(crc32.Update(sum, castagnoli, table), castagnoli, sums) != word(0) {
		return nil, errors.New("its checksum is wrong")
	}
	if string(table[perSection*count:]) != name {
		return nil, errors.New("it belongs to another program")
	}
	at += int64(len(sums))
	for i := range sections {
		n := perBlock * diskBlocks(sections[i].size)
		sections[i].at, sections[i].sums, sums = at, sums[:n:n], sums[n:]
		at += sections[i].size
	}
	if at != size {
		return nil, errors.New("its sections do not fill the file")
	}
	return sections, nil
}

// lengths reads the lengths of the sections of a file of size bytes, and counts their
// blocks.
func lengths(table []byte, size int64) (sections []section, total int64, err error) {
	for row := range slices.Chunk(table, perSection) {
		n := binary.LittleEndian.Uint64(row)
		if n > uint64(size) {
			return nil, 0, errors.New("its sections are longer than the file")
		}
		size -= int64(n)
		sections = append(sections, section{size: int64(n)})
		total += diskBlocks(int64(n))
	}
	return sections, total, nil
}

// trim removes what was used least recently until the rest fits, but not the file
// last written, and the unfinished files of dead writers. The directory is locked.
func (d *Dir) trim(last string) error {
	return statedir.SweepDir(d.path, statedir.Limits{Files: d.files, Bytes: d.bytes}, func(e fs.DirEntry) statedir.Kind {
		switch name := e.Name(); {
		case !e.Type().IsRegular():
			return statedir.Foreign
		case strings.HasSuffix(name, unfinished): // its writer would hold the lock
			return statedir.Unfinished
		case name == last:
			return statedir.Latest
		case strings.HasSuffix(name, suffix):
			return statedir.Kept
		}
		return statedir.Foreign
	})
}
