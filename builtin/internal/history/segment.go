package history

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"sync"
	"time"

	"github.com/toolhost/toolhost/guard/privatefile"
)

const (
	// maxPack is the size in bytes from which on contents go to the next pack, and packShare which share of the quota a pack is at
	// most: packs are removed whole. For the same reason none is written for longer than packAge.
	maxPack   = 8 << 20
	packShare = 64
	packAge   = 24 * time.Hour
	// maxPacked bounds for how many contents of its pack a process remembers where they are.
	maxPacked = 4096
)

// packNames are the names of packs: the owner, and a number that grows.
var packNames = regexp.MustCompile(`^[a-z2-7]{12}\.[1-9][0-9]{0,8}$`)

// A location is where a content is kept: in which pack, and how far from its beginning. The zero location is nowhere.
type location struct {
	Pack   string `json:"pack"`
	Offset int64  `json:"offset"`
}

func (p location) isZero() bool { return p == location{} }

func (p location) valid() bool { return p.isZero() || p.Offset >= 0 && packNames.MatchString(p.Pack) }

// A segmentWriter appends contents to packs. A pack has one writer, so that it needs no lock, and what a killed one left half written is in
// no one's way: making a file of its own for each content takes the file system ten times as long.
type segmentWriter struct {
	dir   string // of the packs
	owner string
	limit int64 // size from which on a pack is full, in bytes

	mu     sync.Mutex
	number int      // of the pack
	file   *os.File // nil if none is open
	info   fs.FileInfo
	begun  time.Time
	end    int64
	packed map[Blob]*packed
}

// packed is where a content of the pack begins.
type packed struct {
	offset int64
	shared bool // more than one change was told
}

func (p *segmentWriter) name() string { return p.owner + "." + strconv.Itoa(p.number) }

// put returns where a content is, after appending it unless it is in the pack already. made says whether it was appended. On an error
// nothing is left of it.
func (p *segmentWriter) put(b Blob, content [][]byte, sync bool) (at location, made bool, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.file != nil && !p.intact() {
		p.shut()
	}
	if known := p.packed[b]; known != nil {
		known.shared = true
		return location{p.name(), known.offset}, false, nil
	}
	if p.file == nil || p.end >= p.limit || time.Since(p.begun) > packAge {
		if err := p.next(sync); err != nil {
			return location{}, false, err
		}
	}
	at = location{p.name(), p.end}
	for _, piece := range content {
		if err == nil {
			_, err = p.file.WriteAt(piece, p.end)
			p.end += int64(len(piece))
		}
	}
	if err == nil && sync {
		err = p.file.Sync()
	}
	if err != nil {
		return location{}, false, errors.Join(err, p.cut(at.Offset))
	}
	if len(p.packed) >= maxPacked {
		clear(p.packed)
	}
	p.packed[b] = &packed{offset: at.Offset}
	return at, true, nil
}

// next begins another pack. Callers hold the mutex.
func (p *segmentWriter) next(sync bool) error {
	p.shut()
	if err := os.MkdirAll(p.dir, ownerDir); err != nil {
		return err
	}
	p.number++
	f, err := os.OpenFile(filepath.Join(p.dir, p.name()), os.O_WRONLY|os.O_CREATE|os.O_EXCL, ownerFile)
	if err != nil {
		return err
	}
	info, err := f.Stat()
	if err == nil && sync { // the names are new
		err = errors.Join(privatefile.SyncDir(p.dir), privatefile.SyncDir(filepath.Dir(p.dir)))
	}
	if err != nil {
		return errors.Join(err, f.Close(), os.Remove(f.Name()))
	}
	p.file, p.info, p.begun, p.end, p.packed = f, info, time.Now(), 0, make(map[Blob]*packed)
	return nil
}

// cut takes back what was appended from an offset on. Callers hold the mutex.
func (p *segmentWriter) cut(from int64) error {
	p.end = from
	return p.file.Truncate(from)
}

// takeBack takes back what was put last, if that is at a place and no one else was told of it: nothing came to refer to it.
func (p *segmentWriter) takeBack(b Blob, at location) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.file == nil || at.Pack != p.name() || at.Offset+b.Size != p.end || p.packed[b] == nil || p.packed[b].shared {
		return
	}
	delete(p.packed, b)
	_ = p.cut(at.Offset) // else it goes with the pack
	if at.Offset == 0 {
		p.shut()
	}
}

// intact reports whether the pack is as it was left: a power loss, or somebody else, may have taken from it. Callers hold the mutex.
func (p *segmentWriter) intact() bool {
	info, err := os.Lstat(filepath.Join(p.dir, p.name()))
	return err == nil && os.SameFile(info, p.info) && info.Size() == p.end
}

// holds reports whether a pack still reaches as far as a content in it.
func (p *segmentWriter) holds(b Blob, at location) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.file != nil && at.Pack == p.name() {
		return p.intact()
	}
	info, err := os.Lstat(filepath.Join(p.dir, at.Pack))
	return err == nil && info.Mode().IsRegular() && info.Size() >= at.Offset+b.Size
}

// doubt puts a content anew when it comes again: what was kept of it is damaged.
func (p *segmentWriter) doubt(b Blob) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.packed, b)
}

// shut closes the pack; what comes next goes to another. Callers hold the mutex.
func (p *segmentWriter) shut() {
	if p.file == nil {
		return
	}
	p.file.Close() // what was written can no longer fail to be
	if p.end == 0 {
		_ = os.Remove(filepath.Join(p.dir, p.name())) // else it goes when the journal is tidied
	}
	p.file, p.packed = nil, nil
}

func (p *segmentWriter) close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.shut()
}

// read returns a content after checking that it is what was stored.
func (p *segmentWriter) read(b Blob, at location) ([]byte, error) {
	f, err := openRegular(filepath.Join(p.dir, at.Pack))
	if err != nil {
		return nil, err
	}
	if f == nil {
		return nil, ErrNotKept
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, err
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

// sweep removes the packs that nothing refers to, also those that are written: what has just been put there is put anew.
func (p *segmentWriter) sweep(used map[string]bool, remove func(path string) error) error {
	entries, err := os.ReadDir(p.dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	var errs []error
	for _, e := range entries {
		if used[e.Name()] || !packNames.MatchString(e.Name()) {
			continue
		}
		p.leave(e.Name())
		if err := remove(filepath.Join(p.dir, e.Name())); err != nil && !errors.Is(err, fs.ErrNotExist) {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

// leave goes on in another pack if this is the one that is written.
func (p *segmentWriter) leave(name string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if name == p.name() {
		p.shut()
	}
}
