// Package history journals every change of a file before it is made, so that it can be looked at and undone.
//
// A change is two contents and what is known of the call that made it. The contents are appended to packs, of which each process has its
// own, the rest to an index that all share. [Store.Begin] records a change before the file is touched, [Entry.Done] and [Entry.Failed]
// record how it ended. What a killed process left open is settled by the next one, which looks at the file: it holds the
// content of before, or that of after.
//
// The package never writes the files of the user. [Store.PlanUndo] says what an undo has to write where; the caller writes it through
// its own guards and journals that as a change too, which makes the undo undoable.
//
// Principals have separate directories, and none sees the changes of another. Several processes may share all of it. The journal
// survives the death of processes at any moment; a power loss can take its last seconds unless [Config.Sync] is set, and what it
// damages is noticed and set aside.
//
//	lock                    held while owners come and go
//	owners/OWNER            locked by a process for as long as it may leave a change open
//	PRINCIPAL/lock          held while the directory changes
//	PRINCIPAL/index         the changes, a line with a checksum for each beginning and each end
//	PRINCIPAL/index.copy    the same again: what is damaged or missing in one is read from the other
//	PRINCIPAL/packs/OWNER.N contents as they were, one after the other: deflating one saves two thirds but takes 18 times as long as writing it
//	PRINCIPAL/aside/…       what was found damaged
//	PRINCIPAL/tidied        when the quota and the age were last enforced
package history

import (
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"path/filepath"
	"sync"
	"time"

	"github.com/toolhost/toolhost/guard/privatefile"
)

// Defaults of [Config].
const (
	// DefaultQuota has room for some 50,000 versions of source files of 20 KB.
	DefaultQuota = 1 << 30
	// DefaultMaxAge is how long a mistake may take to be noticed.
	DefaultMaxAge = 30 * 24 * time.Hour
	// DefaultMaxFile is far above anything that was written by hand.
	DefaultMaxFile = 64 << 20
)

// AllPrincipals stands for all principals where a method asks for one. It is for the owner of the machine; no caller that speaks for
// somebody else passes it.
const AllPrincipals = "\x00"

var (
	// ErrNotKept is returned for content that is not in the store: it was too large, or has been removed for the quota or its age.
	ErrNotKept = errors.New("the content is not kept")
	// ErrDamaged is returned for content that is not what was stored.
	ErrDamaged = errors.New("the content kept is damaged")
	// ErrUnknown is returned for a change that the journal does not have.
	ErrUnknown = errors.New("no such change in the history")

	errClosed = errors.New("the history is closed")
)

// Config bounds a [Store]. Zero values stand for the defaults, except that without Dir nothing is journalled.
type Config struct {
	// Dir is the absolute path of the directory, which is made owner-only; "" means that nothing is journalled.
	Dir string
	// Quota is how many bytes the contents of one principal may take, [DefaultQuota] if zero. The oldest changes go first, none before
	// it is a minute old. It is enforced when another sixteenth of it has been stored, or 256 changes have been made.
	Quota int64
	// MaxAge is the age at which changes are forgotten, [DefaultMaxAge] if zero.
	MaxAge time.Duration
	// MaxFile is the size in bytes above which a content is recorded by its hash alone, [DefaultMaxFile] if zero; never more than a
	// quarter of Quota. A change of such a file cannot be undone.
	MaxFile int64
	// Sync makes what is journalled survive a power loss, for some milliseconds a change.
	Sync bool
	// Torn reports whether a file may hold parts of two contents, because who wrote it in place has died and that has not been dealt
	// with: how its last change ended is then told the next time. Nil: none does.
	Torn func(path string) bool
	// Log receives what was settled after a crash and what was found damaged; nothing is logged if nil.
	Log *slog.Logger
}

// State is how far a change has come.
type State string

// The states of a change.
const (
	Pending State = "pending" // begun, by a process that may still be at it
	Done    State = "done"    // made
	Failed  State = "failed"  // not made: the file is as it was
	Unknown State = "unclear" // the process was killed, and the file has been changed since by something that was not journalled
)

// A Change is one change of one file.
type Change struct {
	ID        string // 12 letters and digits; set by Begin
	Time      time.Time
	Principal string
	Scope     string
	Tool      string
	Path      string // absolute
	Created   bool   // the file did not exist before
	Deleted   bool   // the file does not exist after
	Before    Blob   // zero: the file did not exist
	After     Blob   // zero: the file does not exist
	State     State
	UndoOf    []string // the changes that this one undoes
	UndoneBy  string   // the change that undid this one, if that stands; set by List and Show
}

// A Store is the journal of a host. All methods may be called at once.
type Store struct {
	cfg   Config
	owner *owner

	registering sync.Mutex // taken before the lock of the directory, whose waiters in other processes can only poll

	mu       sync.Mutex
	journals map[string]*journal // by name of the directory
	writing  []*journal          // those whose packs are open, the oldest first
	unended  map[string]bool     // dead owners of changes of which it could not be told how they ended
	open     int                 // entries that have not ended
	closed   bool

	due     []*journal     // in which something is written when later fires
	later   *time.Timer    // nil when nothing was put off yet
	tidying *time.Timer    // nil without a directory; see tidyDelay
	flushes sync.WaitGroup // of what is written then
}

// Open returns the journal in a directory. Changes that killed processes left open are settled, and quota and age enforced soon where
// that was last done more than an hour ago. It must come after files torn by a crash have been repaired: it looks at what they hold.
func Open(cfg Config) (*Store, error) {
	if cfg.Dir != "" && !filepath.IsAbs(cfg.Dir) {
		return nil, fmt.Errorf("history directory %q: must be an absolute path", cfg.Dir)
	}
	s := &Store{cfg: cfg.withDefaults(), journals: make(map[string]*journal)}
	if cfg.Dir == "" {
		return s, nil
	}
	if err := s.openDir(); err != nil {
		return nil, fmt.Errorf("the history in %s cannot be used: %w", cfg.Dir, err)
	}
	return s, nil
}

func (c Config) withDefaults() Config {
	if c.Quota <= 0 {
		c.Quota = DefaultQuota
	}
	if c.MaxAge <= 0 {
		c.MaxAge = DefaultMaxAge
	}
	if c.MaxFile <= 0 {
		c.MaxFile = DefaultMaxFile
	}
	c.MaxFile = min(c.MaxFile, c.Quota/4)
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	return c
}

func (s *Store) openDir() error {
	if err := privatefile.MakeDir(s.cfg.Dir); err != nil {
		return err
	}
	if err := privatefile.MakeDir(filepath.Join(s.cfg.Dir, ownersName)); err != nil {
		return err
	}
	var err error
	if s.owner, err = s.register(); err != nil {
		return err
	}
	s.recover()
	s.flushes.Add(1)
	s.tidying = time.AfterFunc(tidyDelay, func() { defer s.flushes.Done(); s.tidyDue() })
	return nil
}

// Close ends the use of the journal. Changes that have not ended by then are settled by the next process that opens it.
func (s *Store) Close() error {
	s.mu.Lock()
	closed, open := s.closed, s.open
	s.closed = true
	s.mu.Unlock()
	if closed || s.owner == nil {
		return nil
	}
	err := s.finish()
	err = errors.Join(err, s.leave(open == 0 && err == nil))
	if errors.Is(err, fs.ErrNotExist) {
		return nil // somebody removed the directory, and the owner with it
	}
	return err
}
