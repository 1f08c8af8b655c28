package journal

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"sync"

	"time"

	"github.com/toolhost/toolhost/guard/privatefile"
)

const (
	indexName = "index"
	copyName  = "index.copy" // of the index: what is damaged in one is read from the other
	packsName = "packs"
	lockName  = "lock"
	asideName = "aside"
)

var sectionNames = regexp.MustCompile(`^[0-9a-f]{32}$`)

// A section is the part of the journal with the changes of one principal.
type section struct {
	dir   string
	cfg   *Config
	owner *owner

	mu    sync.Mutex // taken before the lock, which holds what follows too
	packs packs
	since int // changes begun since it was tidied
	kept  int // changes remembered when it was tidied
}

func newSection(dir string, cfg *Config, owner *owner) *section {
	p := packs{dir: filepath.Join(dir, packsName), owner: owner.name, limit: min(maxPack, cfg.Quota/packShare)}
	return &section{dir: dir, cfg: cfg, owner: owner, packs: p}
}

func sectionName(principal string) string {
	sum := sha256.Sum256([]byte(principal))
	return hex.EncodeToString(sum[:16])
}

// locked runs do while no other goroutine or process changes the directory.
func (s *section) locked(do func() error) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return privatefile.Locked(filepath.Join(s.dir, lockName), do)
}

// load reads the index. It needs no lock: lines are appended, for a moment incompletely, and an index is replaced by
// a rename.
func (s *section) load() (index, error) {
	x, err := s.read()
	s.setStates(x)
	return x, err
}

// setStates sets the states that the owners of the entries tell.
func (s *section) setStates(x index) {
	var open map[string]string
	for i := range x.records {
		r := &x.records[i]
		if r.State != "" {
			continue
		}
		if open == nil {
			open = s.owner.open()
		}
		r.State = Done
		if open[r.ID] != "" {
			r.State = Pending
		}
	}
}

// grain is the coarsest tick of the kernel clock that the times of files are taken from.
const grain = 10 * time.Millisecond

// writtenSince reports whether the index may have been written since a time.
func (s *section) writtenSince(t time.Time) bool {
	info, err := os.Lstat(filepath.Join(s.dir, indexName))
	return err != nil || !info.ModTime().Before(t.Add(-grain))
}

// firstTail is how much of the end of an index is read first, in bytes: some 6 changes.
const firstTail = 4 << 10

// tail reads the end of the index, as much as is enough. If it is damaged, everything is read.
func (s *section) tail(enough func(index) bool) (x index, err error) {
	if enough == nil {
		return s.load()
	}
	f, err := os.OpenFile(filepath.Join(s.dir, indexName), os.O_RDONLY|privatefile.NoWait|privatefile.NoFollow, 0)
	if err != nil {
		return s.load()
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil || !info.Mode().IsRegular() {
		return s.load()
	}
	for size := int64(firstTail); size < info.Size(); size *= 4 {
		raw := make([]byte, size)
		if _, err := f.ReadAt(raw, info.Size()-size); err != nil {
			return s.load()
		}
		_, raw, _ = bytes.Cut(raw, []byte("\n"))
		if x = parseIndex(raw); len(x.damaged) > 0 {
			break
		}
		if enough(x) {
			s.setStates(x)
			return x, nil
		}
	}
	return s.load()
}

// read reads the index and its copy. Damaged or missing lines are taken from the copy: the two have the same length,
// unless the last writer was killed between them.
func (s *section) read() (index, error) {
	raw, err := s.readFile(indexName)
	if err != nil {
		return index{}, err
	}
	x := parseIndex(raw)
	if info, err := os.Lstat(filepath.Join(s.dir, copyName)); len(x.damaged) == 0 &&
		(err == nil && info.Size() == int64(len(raw)) || err != nil && len(raw) > 0) {
		return x, nil
	}
	other, _ := s.readFile(copyName) // without it, the index alone says what it can
	both := parseIndex(raw, other)
	both.lost = len(other) == 0 && (len(raw) == 0 || len(x.damaged) > 0) || len(x.damaged) > 0 &&
		len(both.damaged) > len(x.damaged)
	both.found = len(both.records) - len(x.records)
	if both.found > 0 {
		slices.SortStableFunc(both.records, func(a, b record) int { return a.Time.Compare(b.Time) })
	}
	return both, nil
}

// readFile returns the content of a file of the section, nothing if it does not exist.
func (s *section) readFile(name string) ([]byte, error) {
	raw, err := privatefile.Read(filepath.Join(s.dir, name), maxIndex)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	return raw, err
}

// append adds a line to the index and its copy. After an error the index is unchanged. Callers hold the lock.
func (s *section) append(line []byte) (err error) {
	f, err := os.OpenFile(filepath.Join(s.dir, indexName),
		os.O_RDWR|os.O_CREATE|privatefile.NoWait|privatefile.NoFollow, ownerFile)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	info, err := f.Stat()
	if err != nil {
		return err
	}
	size := info.Size()
	torn, err := isTorn(f, size)
	if err != nil {
		return err
	}
	if torn {
		line = append([]byte("\n"), line...)
	}
	if _, err := f.WriteAt(line, size); err != nil {
		return errors.Join(err, f.Truncate(size))
	}
	s.appendToCopy(line)
	return nil
}

// appendToCopy adds to the copy what the index has in addition. Errors are ignored, because the index has all lines.
func (s *section) appendToCopy(line []byte) {
	f, err := os.OpenFile(filepath.Join(s.dir, copyName),
		os.O_WRONLY|os.O_APPEND|os.O_CREATE|privatefile.NoWait|privatefile.NoFollow, ownerFile)
	if err != nil {
		return
	}
	defer f.Close()
	_, _ = f.Write(line)
}

// isTorn reports whether the last line is incomplete: its writer was killed. A line end is added, and the line set
// aside when the journal is tidied.
func isTorn(f *os.File, size int64) (bool, error) {
	if size == 0 {
		return false, nil
	}
	var last [1]byte
	_, err := f.ReadAt(last[:], size-1)
	return last[0] != '\n', err
}

// replaceIndex writes a new index, and sets aside the damaged parts of the old one. Callers hold the lock.
func (s *section) replaceIndex(records []record, damaged [][]byte) error {
	var all bytes.Buffer
	for i := 0; i < len(records); {
		n := 1
		for i+n < len(records) && records[i+n].ID == records[i].ID {
			n++
		}
		line, err := encode(records[i : i+n])
		if err != nil {
			return err
		}
		all.Write(line)
		i += n
	}
	if len(damaged) > 0 {
		aside := filepath.Join(s.dir, asideName)
		if err := os.MkdirAll(aside, ownerDir); err != nil {
			return err
		}
		lines := append(bytes.Join(damaged, []byte("\n")), '\n')
		if err := os.WriteFile(filepath.Join(aside, indexName+"-"+shortID()), lines, ownerFile); err != nil {
			return err
		}
	}
	// The copy is written first: it never has what the index has not.
	if err := privatefile.ReplaceQuickly(filepath.Join(s.dir, copyName), all.Bytes()); err != nil {
		_ = os.Remove(filepath.Join(s.dir, copyName))
	}
	return privatefile.ReplaceQuickly(filepath.Join(s.dir, indexName), all.Bytes())
}

// content returns a content from the first of some places at which it is intact.
func (s *section) content(b Blob, places []location) ([]byte, error) {
	damaged := ErrNotKept
	for _, at := range places {
		raw, err := s.packs.read(b, at)
		if err == nil {
			return raw, nil
		}
		if errors.Is(err, ErrDamaged) {
			s.mu.Lock()
			delete(s.packs.packed, b) // it is stored again when it comes again
			s.mu.Unlock()
		}
		if !errors.Is(err, ErrNotKept) {
			damaged = err
		}
	}
	return nil, damaged
}
