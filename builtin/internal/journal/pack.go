package journal

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"time"

	"github.com/toolhost/toolhost/guard/privatefile"
)

const (
	// A pack is full at maxPack bytes, or at 1/packShare of the quota, because a pack is removed as a whole. For the
	// same reason no pack is written for longer than packAge.
	maxPack   = 8 << 20
	packShare = 64
	packAge   = 24 * time.Hour
	// maxPacked bounds the number of contents of its pack whose location a process remembers.
	maxPacked = 4096
)

// packNames are the names of packs: the owner, and a number that grows.
var packNames = regexp.MustCompile(`^[a-z2-7]{12}\.[1-9][0-9]{0,8}$`)

// A location is the place of a content: a pack and an offset in it. The zero location is none.
type location struct {
	Pack   string `json:"pack"`
	Offset int64  `json:"offset"`
}

func (p location) isZero() bool { return p == location{} }

func (p location) valid() bool { return p.isZero() || p.Offset >= 0 && packNames.MatchString(p.Pack) }

// packs are the contents of a section. Each process appends to a pack of its own. The lock of the section is held to
// append, and to remove packs: callers of all methods but read hold it.
type packs struct {
	dir   string
	owner string
	limit int64 // size from which on a pack is full, in bytes

	number int      // of the pack that is appended to
	file   *os.File // nil between two entries
	begun  time.Time
	end    int64
	packed map[Blob]int64 // where a content of the pack begins
	grown  int64          // bytes put since the journal was tidied
}

func (p *packs) name() string { return p.owner + "." + strconv.Itoa(p.number) }

func (p *packs) path() string { return filepath.Join(p.dir, p.name()) }

// put returns the location of a content, which it appends unless the pack has it already. The caller calls close
// after the last put.
func (p *packs) put(b Blob, content [][]byte) (at location, err error) {
	if p.file == nil && p.number > 0 {
		p.reopen()
	}
	if offset, ok := p.packed[b]; ok {
		return location{p.name(), offset}, nil
	}
	if p.file == nil || p.end >= p.limit || time.Since(p.begun) > packAge {
		if err := p.next(); err != nil {
			return location{}, err
		}
	}
	at = location{p.name(), p.end}
	for _, piece := range content {
		if _, err := p.file.WriteAt(piece, p.end); err != nil {
			return location{}, err
		}
		p.end += int64(len(piece))
		p.grown += int64(len(piece))
	}
	if len(p.packed) >= maxPacked {
		clear(p.packed)
	}
	p.packed[b] = at.Offset
	return at, nil
}

// reopen opens the pack if it has the length that it had: a power loss, or another program, may have shortened it.
func (p *packs) reopen() {
	f, err := os.OpenFile(p.path(), os.O_WRONLY|privatefile.NoWait|privatefile.NoFollow, 0)
	if err == nil {
		if info, err := f.Stat(); err == nil && info.Mode().IsRegular() && info.Size() == p.end {
			p.file = f
			return
		}
		f.Close()
	}
	clear(p.packed)
}

// next begins another pack.
func (p *packs) next() error {
	p.close()
	if err := os.MkdirAll(p.dir, ownerDir); err != nil {
		return err
	}
	p.number++
	f, err := os.OpenFile(p.path(), os.O_WRONLY|os.O_CREATE|os.O_EXCL, ownerFile)
	if err != nil {
		return err
	}
	p.file, p.begun, p.end, p.packed = f, time.Now(), 0, make(map[Blob]int64)
	return nil
}

// close closes the pack until the next entry.
func (p *packs) close() {
	if p.file != nil {
		p.file.Close() // what was written can no longer fail to be
		p.file = nil
	}
}

// rollback removes what was put after a pack had a number and an end, and closes the pack.
func (p *packs) rollback(number int, end int64) {
	p.close()
	clear(p.packed)
	for ; p.number > number; p.number-- {
		_ = os.Remove(p.path()) // else it goes with the next sweep
	}
	p.end = end
	if info, err := os.Lstat(p.path()); err != nil || info.Size() <= end {
		return
	}
	if end == 0 {
		_ = os.Remove(p.path())
		return
	}
	_ = os.Truncate(p.path(), end) // else the next content goes to another pack
}

// read returns a content after it has verified the checksum.
func (p *packs) read(b Blob, at location) ([]byte, error) {
	f, err := os.OpenFile(filepath.Join(p.dir, at.Pack), os.O_RDONLY|privatefile.NoWait|privatefile.NoFollow, 0)
	if errors.Is(err, fs.ErrNotExist) || at.isZero() {
		return nil, ErrNotKept
	}
	if err != nil {
		return nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil || !info.Mode().IsRegular() {
		return nil, errors.Join(err, errOther)
	}
	if info.Size() < at.Offset+b.Size {
		return nil, fmt.Errorf("%s: %w", b, ErrDamaged)
	}
	raw := make([]byte, b.Size)
	if _, err := f.ReadAt(raw, at.Offset); err != nil {
		return nil, err
	}
	if BlobOf(raw) != b {
		return nil, fmt.Errorf("%s: %w", b, ErrDamaged)
	}
	return raw, nil
}

// sweep removes the packs without references.
func (p *packs) sweep(used map[string]bool, remove func(path string) error) error {
	entries, err := os.ReadDir(p.dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	for _, e := range entries {
		if used[e.Name()] || !packNames.MatchString(e.Name()) {
			continue
		}
		if gone := remove(filepath.Join(p.dir, e.Name())); !errors.Is(gone, fs.ErrNotExist) {
			err = errors.Join(err, gone)
		}
	}
	return err
}

// size returns how many bytes the packs take.
func (p *packs) size() (size int64) {
	entries, _ := os.ReadDir(p.dir) // what cannot be read cannot be removed
	for _, e := range entries {
		if info, err := e.Info(); err == nil && info.Mode().IsRegular() {
			size += info.Size()
		}
	}
	return size
}

// A place identifies a content of a principal. The packs of two principals may have the same names.
type place struct {
	principal string
	Blob
}

// places are the locations of contents, the newest first.
type places map[place][]location

func placesOf(records []record) places {
	all := make(places, len(records))
	for _, r := range slices.Backward(records) {
		for i, side := range [...]Blob{r.Before, r.After} {
			key := place{r.Principal, side}
			if at := r.at[i]; !at.isZero() && !slices.Contains(all[key], at) {
				all[key] = append(all[key], at)
			}
		}
	}
	return all
}
