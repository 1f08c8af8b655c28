package atomicfile

import (
	"bytes"
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
)

// An entry of the journal is a file in the journal's directory:
//
//	magic, length of the header (4 bytes), header (JSON), old content, new content
//
// Its writer holds a lock on it as long as the write is under way. An entry that is not locked belongs to a process
// that died.
type entry struct {
	path string
	file *os.File
}

// header is the description of an entry.
type header struct {
	Dir  string // the directory, absolute
	Base string // the temporary file, or the file written in place

	Dev uint64 `json:",omitempty"` // identity of the file that is written in place or exchanged
	Ino uint64 `json:",omitempty"`

	// These are set while the temporary file is exchanged for another file.
	Target string `json:",omitempty"` // the name of that
	NewIno uint64 `json:",omitempty"` // of the temporary file; 0 if there is none
	Back   bool   `json:",omitempty"` // the temporary file is another program's

	// The rest is set for a write in place.
	InPlace  bool        `json:",omitempty"`
	Mode     fs.FileMode `json:",omitempty"`
	OldSize  int64       `json:",omitempty"`
	NewSize  int64       `json:",omitempty"`
	Checksum []byte      `json:",omitempty"` // SHA-256 of old and new content
}

const (
	magic        = "toolhost journal 1\n"
	entrySuffix  = ".journal"
	savedSuffix  = ".saved"
	maxHeaderLen = 64 << 10
	ownerDir     = 0o700
	ownerFile    = 0o600
)

// recordTemp records that a temporary file is about to be created.
func recordTemp(journalDir, dir, name string) (*entry, error) {
	return record(journalDir, header{Dir: dir, Base: name})
}

// recordInPlace saves durably the contents of a write in place, before it begins.
func recordInPlace(journalDir string, h header, old []byte, new [][]byte) (*entry, error) {
	h.InPlace = true
	h.OldSize, h.NewSize = int64(len(old)), sizeOf(new)
	both := append([][]byte{old}, new...)
	h.Checksum = checksum(both...)
	e, err := record(journalDir, h, both...)
	if err != nil {
		return nil, err
	}
	if err := e.sync(); err != nil {
		e.done()
		return nil, err
	}
	return e, nil
}

func checksum(contents ...[]byte) []byte {
	sum := sha256.New()
	for _, content := range contents {
		sum.Write(content)
	}
	return sum.Sum(nil)
}

func record(journalDir string, h header, contents ...[]byte) (*entry, error) {
	e, err := newEntry(journalDir)
	if err != nil {
		return nil, err
	}
	if err := e.write(h, contents...); err != nil {
		e.done()
		return nil, err
	}
	return e, nil
}

// write replaces the content of the entry.
func (e *entry) write(h header, contents ...[]byte) error {
	head, err := json.Marshal(h)
	if err != nil {
		return err
	}
	head = append(binary.BigEndian.AppendUint32([]byte(magic), uint32(len(head))), head...)
	at := int64(0)
	for _, piece := range append([][]byte{head}, contents...) {
		if len(piece) == 0 {
			continue
		}
		if _, err := e.file.WriteAt(piece, at); err != nil {
			return err
		}
		at += int64(len(piece))
	}
	return nil
}

// newEntry creates an entry and locks it. Between the two, Recover of another
// process can remove the empty entry; then newEntry tries again.
func newEntry(journalDir string) (*entry, error) {
	const tries = 10
	for range tries {
		path := filepath.Join(journalDir, rand.Text()+entrySuffix)
		f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_EXCL, ownerFile)
		if errors.Is(err, fs.ErrNotExist) {
			if err := os.MkdirAll(journalDir, ownerDir); err != nil {
				return nil, err
			}
			continue
		}
		if err != nil {
			return nil, err
		}
		busy, err := tryLock(f)
		if err != nil {
			f.Close()
			os.Remove(path)
			return nil, err
		}
		if !busy && isAt(f, path) {
			return &entry{path: path, file: f}, nil
		}
		f.Close()
	}
	return nil, fmt.Errorf("no entry can be made in %s", journalDir)
}

// isAt reports whether path still names the open file f.
func isAt(f *os.File, path string) bool {
	opened, err := f.Stat()
	if err != nil {
		return false
	}
	named, err := os.Lstat(path)
	return err == nil && os.SameFile(opened, named)
}

func (e *entry) sync() error {
	if err := e.file.Sync(); err != nil {
		return err
	}
	dir, err := os.Open(filepath.Dir(e.path))
	if err != nil {
		return err
	}
	defer dir.Close()
	return syncDir(dir)
}

// done removes the entry: there is nothing left to recover. A nil entry, from
// a write without a journal, has nothing to remove. It may be called twice.
func (e *entry) done() {
	if e == nil || e.file == nil {
		return
	}
	removeOpen(e.file, e.path)
	e.file = nil
}

// abandon leaves the entry to Recover.
func (e *entry) abandon() {
	if e == nil || e.file == nil {
		return
	}
	e.file.Close()
	e.file = nil
}

// errIncomplete marks an entry whose writer died before the entry was complete,
// and so before it changed any file.
var errIncomplete = errors.New("incomplete entry")

// read returns the content of the entry. old and new are nil for a temporary file.
func (e *entry) read() (h header, old, new []byte, err error) {
	raw, err := io.ReadAll(e.file)
	if err != nil {
		return h, nil, nil, err
	}
	h, content, err := parseHeader(raw)
	if err != nil || !h.InPlace {
		return h, nil, nil, err
	}
	if h.OldSize < 0 || h.NewSize < 0 || int64(len(content)) < h.OldSize+h.NewSize {
		return h, nil, nil, errIncomplete
	}
	old, new = content[:h.OldSize], content[h.OldSize:h.OldSize+h.NewSize]
	if !bytes.Equal(checksum(old, new), h.Checksum) {
		return h, nil, nil, errors.New("damaged entry: wrong checksum")
	}
	return h, old, new, nil
}

// parseHeader reads the beginning of an entry and returns what is after it.
func parseHeader(raw []byte) (h header, content []byte, err error) {
	rest, ok := bytes.CutPrefix(raw, []byte(magic))
	if !ok {
		if bytes.HasPrefix([]byte(magic), raw) {
			return h, nil, errIncomplete
		}
		return h, nil, errors.New("not an entry of this journal")
	}
	if len(rest) < 4 {
		return h, nil, errIncomplete
	}
	n := int(binary.BigEndian.Uint32(rest))
	if rest = rest[4:]; n > maxHeaderLen {
		return h, nil, errors.New("damaged entry")
	}
	if len(rest) < n {
		return h, nil, errIncomplete
	}
	if err := json.Unmarshal(rest[:n], &h); err != nil {
		return h, nil, fmt.Errorf("damaged entry: %w", err)
	}
	return h, rest[n:], nil
}
