package resultstore

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"
)

// A PrincipalStore holds the results of one principal.
type PrincipalStore struct {
	store     *Store
	principal string
}

// For returns the store of a principal. It is cheap and may be kept.
func (s *Store) For(principal string) *PrincipalStore {
	return &PrincipalStore{store: s, principal: principal}
}

// Dir returns the real path of the principal's directory, which it creates if needed; "" if results cannot be stored at
// present.
func (sh *PrincipalStore) Dir() string {
	h, err := sh.store.open()
	if err != nil {
		return ""
	}
	name := dirName(sh.principal)
	if err := h.root.MkdirAll(name, 0o700); err != nil {
		return ""
	}
	return filepath.Join(h.dir, name)
}

// A file is a result being written. Its methods are safe for concurrent use.
type file struct {
	store   *Store
	rootDir *rootDir
	path    string // below the home
	mark    string
	dir     string
	usage   *usage // of the directory

	mu   sync.Mutex
	file *os.File // nil once closed or discarded
	kept kept
	// entered says that the usage counts the file.
	entered bool
}

// A kept result describes where a whole result is stored and how much of it.
type kept struct {
	Path   string // absolute; empty when nothing is kept
	Stored int64  // bytes in the file
	Err    error  // why the rest could not be kept
}

// Create returns a new file to stream a result into. Only its owner can read it, under its path and at once. It
// counts as unfinished until Close: the next process removes the unfinished files of a killed one. The file's name
// begins with name, such as "bash", and cannot be guessed. Create removes older results to make room; it returns
// errQuota if those that must stay use up the quota. At most MaxOne bytes are stored.
func (sh *PrincipalStore) Create(name string) (*file, error) {
	return sh.create(name, sh.store.cfg.MaxOne)
}

// create is Create for a result of at most size bytes.
func (sh *PrincipalStore) create(name string, size int64) (*file, error) {
	h, err := sh.store.open()
	if err != nil {
		return nil, err
	}
	f, err := sh.createIn(h, name, size)
	if errors.Is(err, fs.ErrNotExist) {
		if h, err = sh.store.reopen(h); err == nil {
			f, err = sh.createIn(h, name, size)
		}
	}
	if err != nil && h != nil {
		return nil, h.named(err)
	}
	if err != nil {
		return nil, err
	}
	sh.store.mu.Lock()
	sh.store.files[f] = true
	sh.store.mu.Unlock()
	return f, nil
}

func (sh *PrincipalStore) createIn(h *rootDir, name string, size int64) (*file, error) {
	cfg := sh.store.cfg
	size = min(size, cfg.MaxOne)
	dir := dirName(sh.principal)
	u := sh.store.usageOf(dir)
	if !u.hasRoom(size, cfg.Quota) {
		if err := h.makeRoom(dir, u, cfg, remains{cfg.Quota - size, maxResults - 1}); err != nil {
			return nil, err
		}
	}
	if !u.enter(cfg.Quota) {
		return nil, errQuota
	}
	f := sh.store.file(h, dir, name)
	err := h.root.MkdirAll(dir, 0o700)
	if err == nil {
		err = f.create()
	}
	if err != nil {
		u.leave()
		return nil, err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.entered = true
	return f, nil
}

// file returns a new file of a directory; create makes it on disk.
func (s *Store) file(h *rootDir, dir, name string) *file {
	base := fileName(name)
	f := &file{
		store:   s,
		rootDir: h,
		path:    filepath.Join(dir, base),
		mark:    filepath.Join(openName, h.owner, dir+"."+base),
		dir:     dir,
		usage:   s.usageOf(dir),
	}
	f.kept.Path = filepath.Join(h.dir, f.path)
	return f
}

// makeRoom removes the oldest results of a directory until at most most remain, if possible, and measures the rest.
func (h *rootDir) makeRoom(dir string, u *usage, cfg Config, most remains) error {
	return h.locked(func() error {
		return u.measure(func() (remains, error) { return h.evict(dir, cfg.MaxAge, most) })
	})
}

// A directory keeps 1/freeRoom of its limits free for the next results.
const freeRoom = 16

// measureAfter is a few times the time needed to write an answer and for a client to read it.
const measureAfter = 2 * time.Millisecond

// measureLater measures a directory, and makes room, after a result was stored there and its answer has likely been
// read.
func (s *Store) measureLater(h *rootDir, dir string, u *usage) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed || s.rootDir != h || !u.wantsMeasure() {
		return
	}
	s.work.Go(func() {
		time.Sleep(measureAfter)
		most := remains{s.cfg.Quota - s.cfg.Quota/freeRoom, maxResults - maxResults/freeRoom}
		// a failure is retried after the next result, or before one for which there is no room
		_ = h.makeRoom(dir, u, s.cfg, most)
		u.mu.Lock()
		defer u.mu.Unlock()
		u.measuring = false
	})
}

// create makes the mark, then the file.
func (f *file) create() error {
	const exclusive = os.O_WRONLY | os.O_CREATE | os.O_EXCL
	mark, err := f.rootDir.root.OpenFile(f.mark, exclusive, 0o600)
	if err != nil {
		return err
	}
	if err := mark.Close(); err != nil {
		return errors.Join(err, f.rootDir.removeIfThere(f.mark))
	}
	f.file, err = f.rootDir.root.OpenFile(f.path, exclusive, 0o600)
	if err != nil {
		return errors.Join(err, f.rootDir.removeIfThere(f.mark))
	}
	return nil
}

// fileName returns a name that begins with name, reduced to letters, digits and dashes, and cannot be guessed.
func fileName(name string) string {
	const longest = 32
	plain := strings.Map(func(r rune) rune {
		switch {
		case 'a' <= r && r <= 'z', 'A' <= r && r <= 'Z', '0' <= r && r <= '9', r == '-':
			return r
		}
		return '-'
	}, name)
	if plain == "" {
		plain = "result"
	}
	return fmt.Sprintf("%.*s-%s.txt", longest, plain, rand.Text())
}

// Write stores as much of p as it may. The error says why not all of it was stored: the limit, the quota or the disk.
// Later writes store nothing. After Close or Discard it returns os.ErrClosed.
func (f *file) Write(p []byte) (int, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.file == nil {
		return 0, os.ErrClosed
	}
	before := f.kept.Stored
	if f.kept.Err == nil {
		f.put(p)
	}
	return int(f.kept.Stored - before), f.kept.Err
}

// put stores p, or as much of it as it can and then records the reason.
func (f *file) put(p []byte) {
	cfg := f.store.cfg
	var tooLarge error
	if room := cfg.MaxOne - f.kept.Stored; int64(len(p)) > room {
		p, tooLarge = p[:room], errTooLarge
	}
	n, err := f.share(p)
	if n < len(p) && err == nil {
		// Other results have grown since room was made. This happens once for each file: later writes store nothing.
		if err = f.rootDir.makeRoom(f.dir, f.usage, cfg,
			remains{cfg.Quota - (cfg.MaxOne - f.kept.Stored), maxResults}); err == nil {
			var more int
			more, err = f.share(p[n:])
			n += more
		}
		if n < len(p) && err == nil {
			err = errQuota
		}
	}
	if f.kept.Err = err; err == nil {
		f.kept.Err = tooLarge
	}
}

// share writes as much of p as the quota allows.
func (f *file) share(p []byte) (int, error) {
	f.usage.writing.RLock()
	defer f.usage.writing.RUnlock()
	taken := f.usage.take(int64(len(p)), f.store.cfg.Quota)
	n, err := f.file.Write(p[:taken])
	f.usage.give(taken - int64(n))
	f.kept.Stored += int64(n)
	return n, err
}

// Path returns the absolute path of the file. It does not change after Create.
func (f *file) Path() string { return filepath.Join(f.rootDir.dir, f.path) }

// Kept returns what was written so far. After Discard it reports that nothing is stored.
func (f *file) Kept() kept {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.kept
}

// Close finishes the result. Closing twice, or after Discard, does nothing.
func (f *file) Close() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.file == nil {
		return nil
	}
	err := f.file.Close() // a network file system may report write errors only here
	f.file = nil
	if err != nil {
		return errors.Join(err, f.remove(err))
	}
	f.untrack()
	defer f.store.measureLater(f.rootDir, f.dir, f.usage)
	return f.rootDir.removeIfThere(f.mark)
}

// Discard removes the file, finished or not: the result turned out not to be needed.
func (f *file) Discard() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	var err error
	if f.file != nil {
		err = f.file.Close()
		f.file = nil
	}
	return errors.Join(err, f.remove(f.kept.Err))
}

// remove removes the file, then its mark. Callers hold f.mu.
func (f *file) remove(why error) error {
	f.untrack()
	f.usage.give(f.kept.Stored)
	if f.entered {
		f.usage.leave()
		f.entered = false
	}
	f.kept.Path, f.kept.Stored, f.kept.Err = "", 0, why
	return errors.Join(f.rootDir.removeIfThere(f.path), f.rootDir.removeIfThere(f.mark))
}

func (f *file) untrack() {
	f.store.mu.Lock()
	defer f.store.mu.Unlock()
	delete(f.store.files, f)
}
