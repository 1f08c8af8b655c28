// Package readstate remembers which version of each file a scope has read, so that a change made meanwhile by another program is seen
// before it is overwritten.
//
// The hash of the content decides; size, times and inode are hints only, because they change when a file is merely touched and stay
// when bytes are rewritten within one tick of the clock. Contents are kept in memory, within a budget, for one purpose: to show what
// changed since. Scopes whose key names exactly one conversation survive a restart; of them versions and hashes are written to disk,
// never contents.
//
// Nothing here opens the files it speaks about: callers hand over the bytes that they read, under the lock that they hold.
//
// Its Go API is not stable.
package readstate

import (
	"container/list"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"
)

// Defaults of Config. They bound memory to about 64 MiB of contents plus a few hundred bytes for each file of each live scope.
const (
	defaultMaxKept    = 64 << 20
	defaultMaxFile    = 1 << 20
	defaultMaxFiles   = 4096
	defaultMaxScopes  = 512
	defaultIdleScopes = 24 * time.Hour
)

// writeBehind is how long after a change exact scopes are written. A kill within it forgets reads, which costs the agent another Read
// and never a wrong answer.
const writeBehind = time.Second

// Config bounds a Store. Zero values stand for the defaults.
type Config struct {
	// Dir is the absolute path of the directory that holds exact scopes; it is created owner-only. Empty: nothing outlives the process.
	Dir string
	// MaxKept bounds the bytes of contents kept over all scopes; the least recently used go first. Negative keeps none.
	MaxKept int64
	// MaxFile is the largest content kept, in bytes.
	MaxFile int64
	// MaxFiles bounds the files remembered in one scope; the longest unseen are forgotten first.
	MaxFiles int
	// MaxScopes bounds the scopes in memory; the least recently used of the owner with most leave first. Exact ones come back from
	// disk.
	MaxScopes int
	// IdleScopes is how long an unused scope stays in memory.
	IdleScopes time.Duration
	// Logger hears of files on disk that could not be read or written, which is never fatal. Nil is silence.
	Logger *slog.Logger
}

func (c Config) withDefaults() Config {
	c.MaxKept = orDefault(c.MaxKept, defaultMaxKept)
	c.MaxFile = orDefault(c.MaxFile, defaultMaxFile)
	c.MaxFiles = orDefault(c.MaxFiles, defaultMaxFiles)
	c.MaxScopes = orDefault(c.MaxScopes, defaultMaxScopes)
	c.IdleScopes = orDefault(c.IdleScopes, defaultIdleScopes)
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	return c
}

func orDefault[T comparable](value, fallback T) T {
	var zero T
	if value == zero {
		return fallback
	}
	return value
}

// A Store holds the scopes of one process. Several processes may share its directory. All methods may be called at once.
type Store struct {
	cfg  Config
	kept *contents
	disk *disk // nil: memory only

	mu     sync.Mutex
	scopes map[string]*list.Element // of *scope, by key
	byUse  *list.List               // most recently used first
	of     map[string]int           // owner → how many scopes it has
	dirty  map[*scope]bool          // exact scopes not on disk yet; false while being written
	timer  *time.Timer              // set while a write is due
	closed bool

	flushing chan struct{} // holds one token while a flush runs; not a mutex, so that synctest sees the waiting goroutines
}

// Open returns a Store. It fails when Dir is not absolute or cannot be created and made owner-only; a caller that would rather go on
// without persistence opens again with an empty Dir.
func Open(cfg Config) (*Store, error) {
	s := &Store{
		cfg:    cfg.withDefaults(),
		scopes: make(map[string]*list.Element),
		byUse:  list.New(),
		of:     make(map[string]int),
		dirty:  make(map[*scope]bool),

		flushing: make(chan struct{}, 1),
	}
	s.kept = newContents(s.cfg.MaxKept, s.cfg.MaxFile)
	if cfg.Dir == "" {
		return s, nil
	}
	if !filepath.IsAbs(cfg.Dir) {
		return nil, fmt.Errorf("read state directory %q: must be an absolute path", cfg.Dir)
	}
	d, err := openDisk(cfg.Dir, s.cfg.Logger)
	if err != nil {
		return nil, fmt.Errorf("read state directory: %w", err)
	}
	s.disk = d
	return s, nil
}

// Close writes what is not yet on disk and returns what could not be written. Scopes may be used afterwards, in memory only.
func (s *Store) Close() error {
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		return nil
	}
	s.closed = true
	if s.timer != nil {
		s.timer.Stop()
	}
	s.mu.Unlock()
	if s.disk == nil {
		return nil
	}
	err := s.flush()
	if err != nil {
		err = fmt.Errorf("what was read in this session could not be kept in %s: %w", s.cfg.Dir, err)
	}
	return errors.Join(err, s.disk.close())
}

// Scope returns the scope of a key, such as "principal\x00kind\x00value": what stands before the first zero byte is its owner, and no other owner's
// scopes push out another's. Scopes begin to exist when they are first used. An exact
// one, whose key names one conversation and no other, is loaded from disk when it is known there and written back as it changes; the
// first use of a key decides whether it is exact. Scopes are cheap to ask for and may be kept.
func (s *Store) Scope(key string, exact bool) *Scope {
	return &Scope{store: s, key: key, exact: exact}
}

// enter returns the state of a scope, made or loaded if need be, and lets idle scopes go.
func (s *Store) enter(key string, exact bool) *scope {
	now := time.Now()
	s.mu.Lock()
	e, ok := s.scopes[key]
	if !ok {
		e = s.byUse.PushFront(&scope{key: key, exact: exact && s.disk != nil})
		s.scopes[key] = e
		s.of[owner(key)]++
	}
	sc := e.Value.(*scope)
	sc.used = now
	s.byUse.MoveToFront(e)
	s.collect(now)
	s.mu.Unlock()
	sc.loadOnce.Do(func() { s.load(sc) })
	return sc
}

// collect drops scopes that are idle or too many. Those not yet written stay until they are. Callers hold s.mu.
func (s *Store) collect(now time.Time) {
	most := 0
	for e := s.byUse.Back(); e != nil && e != s.byUse.Front(); {
		sc := e.Value.(*scope)
		old := now.Sub(sc.used) >= s.cfg.IdleScopes
		if !old && s.byUse.Len() <= s.cfg.MaxScopes {
			return
		}
		if most == 0 {
			most = slices.Max(slices.Collect(maps.Values(s.of)))
		}
		previous := e.Prev()
		if _, unwritten := s.dirty[sc]; !unwritten && (old || s.of[owner(sc.key)] == most) {
			s.evict(e)
			most = 0 // it may be less now
		}
		e = previous
	}
}

// evict forgets a scope. Callers hold s.mu.
func (s *Store) evict(e *list.Element) {
	key := s.byUse.Remove(e).(*scope).key
	delete(s.scopes, key)
	if s.of[owner(key)]--; s.of[owner(key)] == 0 {
		delete(s.of, owner(key))
	}
}

// owner is whose scope a key names.
func owner(key string) string {
	name, _, _ := strings.Cut(key, "\x00")
	return name
}

func (s *Store) load(sc *scope) {
	sc.files = make(map[string]record)
	if !sc.exact {
		return
	}
	files, err := s.disk.load(sc.key)
	if err != nil {
		s.cfg.Logger.Warn("read state not loaded; its files count as not read", "error", err)
		return
	}
	sc.adopt(files, s.cfg.MaxFiles)
}

// changed notes that an exact scope must be written.
func (s *Store) changed(sc *scope) {
	if !sc.exact {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return
	}
	s.dirty[sc] = true
	if s.timer == nil {
		s.timer = time.AfterFunc(writeBehind, func() {
			if err := s.flush(); err != nil {
				s.cfg.Logger.Warn("read state not written; it will not survive a restart", "error", err)
			}
		})
	}
}

// flush writes the scopes that changed. One that cannot be written is tried again when it next changes.
func (s *Store) flush() error {
	s.flushing <- struct{}{}
	defer func() { <-s.flushing }()
	s.mu.Lock()
	s.timer = nil
	changed := slices.Collect(maps.Keys(s.dirty))
	for _, sc := range changed {
		s.dirty[sc] = false
	}
	s.mu.Unlock()

	var errs []error
	for _, sc := range changed {
		merged, err := s.disk.merge(sc.key, sc.snapshot(s.kept), s.cfg.MaxFiles)
		errs = append(errs, err)
		if err == nil {
			sc.adopt(merged, s.cfg.MaxFiles)
		}
		s.mu.Lock()
		if !s.dirty[sc] {
			delete(s.dirty, sc)
		}
		s.mu.Unlock()
	}
	return errors.Join(errs...)
}
