// Package journal records each change of the user's files, so that it can be listed, shown and undone.
//
// An entry is what one call changes: an Edit or a Write one file, an undo, a rewind or an applied copy several, a
// command what the tree of its workspace shows at its end. It is announced on disk before the first file changes
// ([Journal.Begin], [Journal.BeginSteps], [Journal.Announce]) and settled afterwards. If the process is killed in
// between, the next one settles the entry: from the files that were announced, or from the tree ([Journal.Killed]).
//
// The package never writes the files of the user. [Journal.PlanUndo] returns what an undo has to write; the caller
// writes it through its own guards, as an entry of its own, so that an undo can be undone.
//
// Principals have separate sections, and none sees the changes of another. Several processes may use the journal.
// It survives the death of processes at any moment. A power loss can remove its last seconds; damage is detected, and
// the damaged part set aside.
//
//	owners/OWNER            locked by a process while it lives
//	running/OWNER.ID        an entry that this process has not ended; of a command it says what runs
//	rooms/OWNER.ID          the base of a root: what a killed command changed is determined from it
//	PRINCIPAL/lock          held while the section changes
//	PRINCIPAL/index         the entries, a line with a checksum for each; one more for each entry that failed
//	PRINCIPAL/index.copy    the same again: what is damaged or missing in one is read from the other
//	PRINCIPAL/packs/OWNER.N contents as they were, one after the other: a file for each takes ten times as long
//	PRINCIPAL/aside/…       what was found damaged
//	PRINCIPAL/tidied        when the quota and the age were last enforced
package journal

import (
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"
)

// Defaults of [Config].
const (
	// DefaultQuota has room for some 50,000 versions of source files of 20 KB.
	DefaultQuota = 1 << 30
	// DefaultMaxAge is the time in which a mistake is usually noticed.
	DefaultMaxAge = 30 * 24 * time.Hour
	// DefaultMaxFile is far above the size of files that are written by hand.
	DefaultMaxFile = 64 << 20
)

// AllPrincipals means all principals where a method takes one. It is for the owner of the machine: code that acts for
// another caller must not pass it.
const AllPrincipals = "\x00"

var (
	// ErrNotKept is returned for content that is not in the store: it was too large, or has been removed for the quota
	// or its age.
	ErrNotKept = errors.New("the content is not kept")
	// ErrDamaged is returned for content that differs from what was stored.
	ErrDamaged = errors.New("the content kept is damaged")
	// ErrUnknown is returned for a change that the journal does not have.
	ErrUnknown = errors.New("no such change in the history; toolhost history lists them")

	errClosed = errors.New("the history is closed")
)

// Config configures a [Journal]. Zero values mean the defaults, except that without Dir nothing is journalled.
type Config struct {
	// Dir is the absolute path of the directory, which is made owner-only; "" means that nothing is journalled.
	Dir string
	// Quota is how many bytes the contents of one principal may take, [DefaultQuota] if zero. The oldest changes go
	// first, none before it is a minute old. It is enforced when another sixteenth of it has been stored, or 256 changes
	// have been made.
	Quota int64
	// MaxAge is the age at which changes are forgotten, [DefaultMaxAge] if zero.
	MaxAge time.Duration
	// MaxFile is the size in bytes above which a content is recorded by its hash alone, [DefaultMaxFile] if zero; never
	// more than a quarter of Quota. A change of such a file cannot be undone.
	MaxFile int64
	// Torn reports whether a file may hold parts of two contents, because the process that wrote it in place was killed
	// and the file is not repaired yet: how its last change ended is then found out at the next start. Nil: none does.
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
	// Unknown says that the process was killed, and that something that was not journalled has changed the file since.
	Unknown State = "unclear"
)

// A Change is one change of one file. Its JSON is that of a file in a line of the index.
type Change struct {
	ID        string    `json:"-"` // 12 letters and digits; set by Begin
	Time      time.Time `json:"-"`
	Principal string    `json:"-"`
	Scope     string    `json:"-"`
	Tool      string    `json:"-"`
	Path      string    `json:"path,omitempty"`  // absolute
	Created   bool      `json:"-"`               // the file did not exist before
	Deleted   bool      `json:"-"`               // the file does not exist after
	Before    Blob      `json:"before,omitzero"` // zero: the file did not exist
	After     Blob      `json:"after,omitzero"`  // zero: the file does not exist
	State     State     `json:"state,omitempty"` // in a line: where it is another one than that of the entry
	UndoOf    []string  `json:"-"`               // the changes that this one undoes
	UndoneBy  string    `json:"-"`               // the change that undid this one and is in effect; set by List and Show

	// BeforeMode and AfterMode are those of [Node]: zero for a regular file whose mode the change left alone, and for
	// nothing.
	BeforeMode  fs.FileMode `json:"before_mode,omitzero"`
	AfterMode   fs.FileMode `json:"after_mode,omitzero"`
	BeforeStamp string      `json:"before_stamp,omitempty"` // of [Node]; "" for what was read
	AfterStamp  string      `json:"after_stamp,omitempty"`
	Made        int         `json:"made,omitempty"`  // how many directories above the file were made for it
	Links       []string    `json:"links,omitempty"` // other names of the file before the change, absolute
	From        time.Time   `json:"from,omitzero"`   // when it was made, if that is known better than from the call
	To          time.Time   `json:"to,omitzero"`
	Open        []string    `json:"-"`              // entries that had not ended when this one began, see [Running]
	Lost        string      `json:"lost,omitempty"` // why Before is not kept; "" if it is, or unknown
	Call        `json:"-"`  // what all changes with this ID share
}

// Word returns "created", "changed" or "removed".
func (c Change) Word() string {
	switch {
	case c.Created:
		return "created"
	case c.Deleted:
		return "removed"
	}
	return "changed"
}

// before and after return what stood at the path.
func (c Change) before() Node { return Node{c.Before, c.BeforeMode, c.BeforeStamp} }
func (c Change) after() Node  { return Node{c.After, c.AfterMode, c.AfterStamp} }

// A Journal is the history of a host. All methods may be called concurrently.
type Journal struct {
	cfg   Config
	owner *owner // nil without a directory

	mu       sync.Mutex
	sections map[string]*section // by name of the directory

	tidying    *time.Timer    // runs tidyDue once; nil without a directory
	background sync.WaitGroup // sections that are being tidied
}

// Open returns the history in a directory. It settles changes that killed processes left open, and soon enforces
// quota and age if that was last done more than an hour ago. Files that are torn by a crash must be repaired before,
// because it reads them.
func Open(cfg Config) (*Journal, error) {
	if cfg.Dir != "" && !filepath.IsAbs(cfg.Dir) {
		return nil, fmt.Errorf("history directory %q: must be an absolute path", cfg.Dir)
	}
	j := &Journal{cfg: cfg.withDefaults(), sections: make(map[string]*section)}
	if cfg.Dir == "" {
		return j, nil
	}
	if err := j.openDir(); err != nil {
		return nil, fmt.Errorf("the history in %s cannot be used: %w", cfg.Dir, err)
	}
	return j, nil
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

func (j *Journal) openDir() (err error) {
	if j.owner, err = register(j.cfg.Dir); err != nil {
		return err
	}
	j.recover()
	j.tidied(j.sweepRooms())
	j.background.Add(1)
	j.tidying = time.AfterFunc(tidyDelay, func() { defer j.background.Done(); j.tidyDue() })
	return nil
}

// Keeps reports whether changes are journalled.
func (j *Journal) Keeps() bool { return j.cfg.Dir != "" }

// Close ends the use of the history. Changes that have not ended by then are settled by the next process that opens it.
func (j *Journal) Close() error {
	if j.owner == nil || !j.owner.close() {
		return nil
	}
	j.still()
	err := j.owner.leave()
	if errors.Is(err, fs.ErrNotExist) {
		return nil // the directory was removed, and the owner with it
	}
	return err
}

// still tidies the sections that are due since the start, and waits until all are tidied.
func (j *Journal) still() {
	if j.tidying.Stop() {
		j.tidyDue()
		j.background.Done()
	}
	j.background.Wait()
}

// section returns the section in the directory with a name.
func (j *Journal) section(name string) *section {
	j.mu.Lock()
	defer j.mu.Unlock()
	s := j.sections[name]
	if s == nil {
		s = newSection(filepath.Join(j.cfg.Dir, name), &j.cfg, j.owner)
		j.sections[name] = s
	}
	return s
}

// of returns the sections of a principal or of everyone, none if there is no directory.
func (j *Journal) of(principal string) ([]*section, error) {
	if j.cfg.Dir == "" {
		return nil, nil
	}
	if principal == "" {
		return nil, errors.New("the history was asked for without a principal: a principal is needed")
	}
	if principal != AllPrincipals {
		return []*section{j.section(sectionName(principal))}, nil
	}
	entries, err := os.ReadDir(j.cfg.Dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	var all []*section
	for _, e := range entries {
		if e.IsDir() && sectionNames.MatchString(e.Name()) {
			all = append(all, j.section(e.Name()))
		}
	}
	return all, nil
}

// records returns the changes of a principal or of everyone, oldest first, and what undid them.
func (j *Journal) records(principal string) ([]record, error) {
	return j.newest(principal, nil)
}

// newest is records, of which it may return the newest ones alone: those of each journal that are enough. Nil: all.
func (j *Journal) newest(principal string, enough func(index) bool) ([]record, error) {
	sections, err := j.of(principal)
	if err != nil {
		return nil, err
	}
	var all []record
	for _, s := range sections {
		x, err := s.tail(enough)
		if err != nil {
			return nil, err
		}
		all = append(all, x.records...)
	}
	if len(sections) > 1 {
		slices.SortStableFunc(all, func(a, b record) int { return a.Time.Compare(b.Time) })
	}
	markUndone(all)
	return all, nil
}

// markUndone sets on each change the undo that is in effect. The newest come first: an undo that was undone has no
// effect.
func markUndone(all []record) {
	type change struct{ id, path string }
	by := make(map[change]string)
	for i := range slices.Backward(all) {
		r := &all[i]
		r.UndoneBy = by[change{r.ID, r.Path}]
		if r.State != Done || r.UndoneBy != "" {
			continue
		}
		for _, id := range r.UndoOf {
			if undone := (change{id, r.Path}); by[undone] == "" {
				by[undone] = r.ID
			}
		}
	}
}
