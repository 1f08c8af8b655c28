// Package readstate remembers which version of each file a scope has read, so that a change by another program is
// noticed before it is overwritten.
//
// The hash of the content decides; size, times and inode are hints only: they change when a file is merely touched,
// and do not when bytes are rewritten within one tick of the clock. Contents are kept in memory, within a budget,
// only to show what has changed. Scopes whose key names exactly one conversation survive a restart; their versions
// and hashes are written to disk, never contents.
//
// This package does not open the files it describes: callers pass the bytes that they read, under their own lock.
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

// Defaults of Config. They bound memory to about 64 MiB of contents plus a few hundred bytes for each file of each
// live scope.
const (
	defaultMaxKept    = 64 << 20
	defaultMaxFile    = 1 << 20
	defaultMaxFiles   = 4096
	defaultMaxScopes  = 512
	defaultIdleScopes = 24 * time.Hour
)

// writeBehind is the delay after a change before exact scopes are written. A kill within it loses reads, which costs
// the agent another Read and never a wrong answer.
const writeBehind = time.Second

// Config bounds a Store. Zero values mean the defaults.
type Config struct {
	// Dir is the absolute path of the directory that holds exact scopes; it is created owner-only. Empty: nothing
	// outlives the process.
	Dir string
	// MaxKept bounds the bytes of contents kept over all scopes; the least recently used are dropped first. Negative keeps
	// none.
	MaxKept int64
	// MaxFile is the largest content kept, in bytes.
	MaxFile int64
	// MaxFiles bounds the files remembered in one scope; those not seen for the longest time are forgotten first.
	MaxFiles int
	// MaxScopes bounds the scopes in memory. The least recently used scopes of the owner with the most are dropped
	// first. Exact ones are loaded from disk again.
	MaxScopes int
	// IdleScopes is how long an unused scope stays in memory.
	IdleScopes time.Duration
	// Logger receives errors on files that could not be read or written, which are never fatal. Nil: nothing is logged.
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

// A Store holds the scopes of one process. Several processes may share its directory. All methods are safe for
// concurrent use.
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

// Open returns a Store. It fails if Dir is not absolute, or cannot be created and made owner-only. A caller that can
// work without persistence may then call Open with an empty Dir.
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

// Close writes the remaining changes to disk and returns what could not be written. Scopes may be used afterwards, in
// memory only.
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

// Scope returns the scope of a key, such as "principal\x00kind\x00value". The part before the first zero byte is its
// owner; scopes of other owners do not displace its scopes. Scopes are created on first use. An exact scope, whose
// key names one conversation and no other, is loaded from disk if known there and written back as it changes; the
// first use of a key decides whether it is exact. Scopes are cheap and may be kept.
func (s *Store) Scope(key string, exact bool) *Scope {
	return &Scope{store: s, key: key, exact: exact}
}

// enter returns the state of a scope, creating or loading it if needed, and drops idle scopes.
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

// collect drops idle and excess scopes. Scopes that are not yet written stay until they are. Callers hold s.mu.
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

// owner returns the owner that a key names.
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

// changed records that an exact scope must be written.
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

// flush writes the changed scopes. A scope that cannot be written is retried when it next changes.
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
