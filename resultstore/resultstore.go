// Package resultstore fits a result into its limit and keeps the whole of it on disk, where it can be read on.
//
// A long result is shown as its head and its tail, with a notice between them that says how much is missing, where the whole is, and
// which call shows the next part. When the whole cannot be kept the notice says so, and why; the result itself never fails for it.
//
// Results belong to principals. Each has an owner-only directory whose name only the holder of a key can compute, a quota, and an age
// after which results go.
//
// Its Go API is not stable.
package resultstore

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/gofrs/flock"

	"github.com/toolhost/toolhost/guard/privatefile"
)

// Defaults of Config.
const (
	DefaultQuota  = 256 << 20
	defaultMaxAge = 7 * 24 * time.Hour
	defaultMaxOne = 64 << 20
)

const (
	lockName   = "lock"   // held while the directory changes
	keyName    = "key"    // the key of the names of directories
	openName   = "open"   // holds, for each owner, a lock and the marks of its unfinished files
	tidiedName = "tidied" // was made when what is over its age was last looked for everywhere
	lockMark   = ".lock"
	keyLength  = 32 // bytes, that of an HMAC-SHA256 key
)

// Reasons why a whole result, or the rest of it, is not in a file.
var (
	errNoDir    = errors.New("no directory for results is set")
	errQuota    = errors.New("the quota for kept results is used up by results less than a minute old or still being written")
	errTooLarge = errors.New("the result is larger than one kept result may be")

	errClosed = errors.New("the result store is closed")
)

// Config bounds a Store. Zero values stand for the defaults, except that without Dir nothing is kept.
type Config struct {
	Dir    string        // absolute path of the directory, made owner-only; empty: results are cut, and the whole is not kept
	Quota  int64         // bytes that the results of one principal may take
	MaxAge time.Duration // age at which a result is removed
	MaxOne int64         // bytes that one result may take; never more than Quota
	Log    *slog.Logger  // receives what was found damaged; nothing is logged if nil
}

// A Store keeps results. Several processes may share its directory. All methods may be called at once.
type Store struct {
	cfg Config

	mu      sync.Mutex
	rootDir *rootDir       // nil until the directory could be used
	key     []byte         // of the last home, so that directories keep their names when the directory is made anew
	files   map[*file]bool // unfinished
	usage   map[string]*usage
	closed  bool

	work sync.WaitGroup
}

// Open returns a Store and removes what killed processes left unfinished and, once an hour, what is over its age. It fails only when
// Dir is not an absolute path: a directory that cannot be used now is tried again whenever a result must be kept, and what stood in
// the way is said in that result.
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
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	s := &Store{cfg: cfg, files: make(map[*file]bool)}
	_, _ = s.open() // the first result that is not kept returns this error again
	return s, nil
}

// Close removes the results still being written, which cannot be finished, and gives the directory free for others to tidy.
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

// open returns the home, made ready if it is not.
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
		_ = s.rootDir.close() // what is written there cannot be found
		s.rootDir = nil
	}
	if s.rootDir == nil {
		h, err := openHome(s.cfg, s.key)
		if err != nil {
			return nil, err
		}
		s.rootDir, s.key = h, h.key
	}
	return s.rootDir, nil
}

// reopen makes the directory anew after it was removed under a running process.
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
//	key                    of the names of directories
//	key.copy               the same again, with a checksum
//	key.damaged            what was found in its place
//	tidied                 made when what is over its age was last looked for
//	open/OWNER.lock        held by a process as long as it may write
//	open/OWNER/DIR.NAME    mark: the file of that name in that directory is unfinished
//	DIR/NAME               a result
//
// A file is whole when it bears no mark: a mark is made before its file and removed after the last byte. Marks rather than a rename at
// the end, because the path of a task's output is returned before the task ends. A result that is at hand as a whole is written where its
// mark would stand, and renamed.
type rootDir struct {
	dir   string // real path
	root  *os.Root
	self  os.FileInfo // of root
	key   []byte
	owner string // name of this process among the owners
	alive *flock.Flock

	changing sync.Mutex // taken before the lock, whose waiters in other processes can only poll
}

// openHome makes a directory ready. key is used when it holds none; nil stands for a new one.
func openHome(cfg Config, key []byte) (*rootDir, error) {
	if err := privatefile.MakeDir(cfg.Dir); err != nil {
		return nil, err
	}
	dir, err := filepath.EvalSymlinks(cfg.Dir) // paths shown are judged later by what they resolve to
	if err != nil {
		return nil, err
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, err
	}
	h := &rootDir{dir: dir, root: root, key: key, owner: rand.Text()}
	if h.self, err = root.Stat("."); err == nil {
		err = h.locked(func() error { return h.prepare(cfg) })
	}
	if err != nil {
		return nil, errors.Join(h.named(err), h.close())
	}
	return h, nil
}

// inPlace reports whether the directory still has its path. If it was moved, it takes files that cannot be found by their paths.
func (h *rootDir) inPlace() bool {
	info, err := os.Lstat(h.dir)
	return err == nil && os.SameFile(info, h.self)
}

// named says the whole path in an error about something below the directory.
func (h *rootDir) named(err error) error {
	if e, ok := errors.AsType[*fs.PathError](err); ok && !filepath.IsAbs(e.Path) {
		return &fs.PathError{Op: e.Op, Path: filepath.Join(h.dir, e.Path), Err: e.Err}
	}
	if e, ok := errors.AsType[*os.LinkError](err); ok && !filepath.IsAbs(e.New) {
		return &os.LinkError{Op: e.Op, Old: filepath.Join(h.dir, e.Old), New: filepath.Join(h.dir, e.New), Err: e.Err}
	}
	return err
}

// prepare tidies the directory and registers this process as an owner. Callers hold the lock, without which another
// process could take the fresh owner, whose lock is not held yet, for a dead one.
func (h *rootDir) prepare(cfg Config) error {
	if err := h.root.MkdirAll(openName, 0o700); err != nil {
		return err
	}
	h.alive = privatefile.NewLock(filepath.Join(h.dir, openName, h.owner+lockMark))
	if _, err := h.alive.TryLock(); err != nil { // no other process knows the name, so it is free
		return err
	}
	if err := h.root.Mkdir(filepath.Join(openName, h.owner), 0o700); err != nil {
		return err
	}
	if err := h.loadKey(cfg); err != nil {
		return err
	}
	h.gc(cfg.MaxAge)
	return nil
}

// dirName returns the name of a principal's directory, which cannot be guessed without the key.
func (h *rootDir) dirName(principal string) string {
	mac := hmac.New(sha256.New, h.key)
	mac.Write([]byte(principal))
	return hex.EncodeToString(mac.Sum(nil)[:16])
}

// locked runs do while no other process, and no other Store of this one, makes or removes names.
func (h *rootDir) locked(do func() error) error {
	h.changing.Lock()
	defer h.changing.Unlock()
	return privatefile.Locked(filepath.Join(h.dir, lockName), do)
}

// close takes this process from the owners. Marks that could not be removed stay, and with them the lock, for others to recover.
func (h *rootDir) close() error {
	if h.alive == nil {
		return h.root.Close()
	}
	err := h.locked(func() error {
		err := h.alive.Unlock() // first: Windows removes no open file
		if h.root.Remove(filepath.Join(openName, h.owner)) != nil {
			return err
		}
		return errors.Join(err, h.root.Remove(filepath.Join(openName, h.owner+lockMark)))
	})
	if errors.Is(err, fs.ErrNotExist) {
		err = nil // the directory is gone, and all of this with it
	}
	return errors.Join(err, h.alive.Unlock(), h.root.Close())
}
