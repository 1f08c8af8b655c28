// Package resultstore truncates a result to its limit and stores the whole of it on disk, where it can be read in
// parts.
//
// A long result is shown as its head and its tail, with a notice between them that says how much is missing, where
// the whole is, and which call shows the next part. If the whole cannot be stored the notice says so, and why; the
// result itself never fails because of that.
//
// Results belong to principals. Each principal has an owner-only directory, a quota, and an age after which results are
// removed.
//
// Its Go API is not stable.
package resultstore

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/toolhost/toolhost/guard/privatefile"
	"github.com/toolhost/toolhost/guard/statedir"
)

// Defaults of Config.
const (
	DefaultQuota  = 256 << 20
	defaultMaxAge = 7 * 24 * time.Hour
	defaultMaxOne = 64 << 20
)

const (
	lockName = "lock" // held while the directory changes
	openName = "open" // holds, for each owner, a lock and the marks of its unfinished files
	lockMark = ".lock"
)

// Reasons why a whole result, or the rest of it, is not in a file.
var (
	errNoDir = errors.New("no directory for results is set")
	errQuota = errors.New("the quota for kept results is used up by results less than a minute old or still being " +
		"written")
	errTooLarge = errors.New("the result is larger than one kept result may be")

	errClosed = errors.New("the result store is closed")
)

// Config bounds a Store. Zero values stand for the defaults, except that without Dir nothing is kept.
type Config struct {
	// absolute path of the directory, made owner-only; empty: results are cut, and the whole is not kept
	Dir    string
	Quota  int64         // bytes that the results of one principal may take
	MaxAge time.Duration // age at which a result is removed
	MaxOne int64         // bytes that one result may take; never more than Quota
}

// A Store stores results. Several processes may share its directory. All methods are safe for concurrent use.
type Store struct {
	cfg Config

	mu      sync.Mutex
	rootDir *rootDir       // nil until the directory could be used
	files   map[*file]bool // unfinished
	usage   map[string]*usage
	closed  bool

	work sync.WaitGroup
}

// Open returns a Store. It removes unfinished results of killed processes and, once an hour, results over the age
// limit. It fails only if Dir is not an absolute path: a directory that cannot be used now is tried again whenever a
// result must be stored, and the notice in that result gives the reason.
func Open(cfg Config) (*Store, error) {
	if cfg.Dir != "" && !filepath.IsAbs(cfg.Dir) {
		return nil, fmt.Errorf("result directory %q: must be an absolute path", cfg.Dir)
	}
	if cfg.Quota <= 0 {
		cfg.Quota = DefaultQuota
	}
	if cfg.MaxAge <= 0 {
		cfg.MaxAge = defaultMaxAge
	}
	if cfg.MaxOne <= 0 {
		cfg.MaxOne = defaultMaxOne
	}
	cfg.MaxOne = min(cfg.MaxOne, cfg.Quota)
	s := &Store{cfg: cfg, files: make(map[*file]bool)}
	_, _ = s.open() // the first result that is not kept returns this error again
	return s, nil
}

// Close removes the results still being written, which cannot be finished, and lets other processes clean up the
// directory.
func (s *Store) Close() error {
	s.mu.Lock()
	s.closed = true
	s.mu.Unlock()
	s.work.Wait()
	s.mu.Lock()
	unfinished := s.files
	s.files = make(map[*file]bool)
	h := s.rootDir
	s.rootDir = nil
	s.mu.Unlock()
	var errs []error
	for f := range unfinished {
		errs = append(errs, f.Discard())
	}
	if h != nil {
		errs = append(errs, h.close())
	}
	return errors.Join(errs...)
}

// open returns the root directory, preparing it if needed.
func (s *Store) open() (*rootDir, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil, errClosed
	}
	if s.cfg.Dir == "" {
		return nil, errNoDir
	}
	if s.rootDir != nil && !s.rootDir.inPlace() {
		_ = s.rootDir.close() // files that are written there cannot be found
		s.rootDir = nil
	}
	if s.rootDir == nil {
		h, err := openHome(s.cfg)
		if err != nil {
			return nil, err
		}
		s.rootDir = h
	}
	return s.rootDir, nil
}

// reopen creates the directory again after it was removed under a running process.
func (s *Store) reopen(lost *rootDir) (*rootDir, error) {
	s.mu.Lock()
	if s.rootDir == lost {
		s.rootDir = nil
		_ = lost.close() // its files are gone
	}
	s.mu.Unlock()
	return s.open()
}

// rootDir is the directory of a Store while it is in use:
//
//	lock                   held while names are made and removed
//	tidied                 made when what is over its age was last looked for
//	open/OWNER.lock        held by a process as long as it may write
//	open/OWNER/DIR.NAME    mark: the file of that name in that directory is unfinished
//	DIR/NAME               a result
//
// A file without a mark is complete: a mark is made before its file and removed after the last byte. Marks are used,
// not a rename at the end, because the path of a task's output is returned before the task ends.
type rootDir struct {
	dir   string // real path
	root  *os.Root
	self  os.FileInfo // of root
	owner string      // name of this process among the owners
	alive *statedir.Mark

	changing sync.Mutex // taken before the lock: other processes can only poll for that
}

// openHome prepares a directory.
func openHome(cfg Config) (*rootDir, error) {
	if err := privatefile.MakeDir(cfg.Dir); err != nil {
		return nil, err
	}
	dir, err := filepath.EvalSymlinks(cfg.Dir) // returned paths are judged later by what they resolve to
	if err != nil {
		return nil, err
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, err
	}
	h := &rootDir{dir: dir, root: root, owner: rand.Text()}
	if h.self, err = root.Stat("."); err == nil {
		err = h.locked(func() error { return h.prepare(cfg) })
	}
	if err != nil {
		return nil, errors.Join(h.named(err), h.close())
	}
	return h, nil
}

// inPlace reports whether the directory still has its path. If it was moved, files in it cannot be found by their
// paths.
func (h *rootDir) inPlace() bool {
	info, err := os.Lstat(h.dir)
	return err == nil && os.SameFile(info, h.self)
}

// named adds the whole path to an error about a file below the directory.
func (h *rootDir) named(err error) error {
	if e, ok := errors.AsType[*fs.PathError](err); ok && !filepath.IsAbs(e.Path) {
		return &fs.PathError{Op: e.Op, Path: filepath.Join(h.dir, e.Path), Err: e.Err}
	}
	if e, ok := errors.AsType[*os.LinkError](err); ok && !filepath.IsAbs(e.New) {
		return &os.LinkError{Op: e.Op, Old: filepath.Join(h.dir, e.Old), New: filepath.Join(h.dir, e.New), Err: e.Err}
	}
	return err
}

// prepare cleans up the directory and registers this process as an owner. Callers hold the lock; otherwise another
// process could take the new owner, whose lock is not held yet, for a dead one.
func (h *rootDir) prepare(cfg Config) error {
	if err := h.root.MkdirAll(openName, 0o700); err != nil {
		return err
	}
	alive, err := statedir.Own(filepath.Join(h.dir, openName, h.owner+lockMark))
	if err != nil {
		return err
	}
	h.alive = alive
	if err := h.root.Mkdir(filepath.Join(openName, h.owner), 0o700); err != nil {
		return err
	}
	h.gc(cfg.MaxAge)
	return nil
}

// dirName returns the name of a principal's directory. Rules keep other principals out of it.
func dirName(principal string) string {
	sum := sha256.Sum256([]byte(principal))
	return hex.EncodeToString(sum[:16])
}

// locked runs do while no other process, and no other Store of this one, creates or removes names.
func (h *rootDir) locked(do func() error) error {
	h.changing.Lock()
	defer h.changing.Unlock()
	return privatefile.Locked(filepath.Join(h.dir, lockName), do)
}

// close unregisters this process as an owner. If marks cannot be removed, they and the lock stay, for others to
// recover.
func (h *rootDir) close() error {
	if h.alive == nil {
		return h.root.Close()
	}
	err := h.locked(func() error {
		// If this fails, the next store does it.
		_ = h.alive.Release(func() error { return h.root.Remove(filepath.Join(openName, h.owner)) })
		return nil
	})
	if errors.Is(err, fs.ErrNotExist) {
		err = nil // the directory was removed, and everything in it
	}
	return errors.Join(err, h.alive.Close(), h.root.Close())
}
