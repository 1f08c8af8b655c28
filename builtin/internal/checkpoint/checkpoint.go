// Package checkpoint determines which files below a root change while a command runs, and keeps their old content.
//
// A [Tracker] reads every file of its root once, in the background: the base. From then on the system announces
// changes ([changes.Feed]), so a command that changes k files costs O(k). Directories for which there is no watch left
// are listed again for each command. A command that begins before the base is complete is covered where it had been
// read.
//
// Content from before a change comes from git's pack files if its hash is that of an object there, else from a copy
// that was made when the base was read. git's index is not used: the content is always hashed.
//
// Files in ignored directories are counted, not kept. Nothing in a directory .git is examined. What Config.Hidden
// hides is never read. Events do not name the writer of a change: a checkpoint holds everything that changed while the
// command ran.
//
// These changes are not detected: writes through a mapping that is still open, and through a hard link outside of the
// root, or one that the command creates and removes.
package checkpoint

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"github.com/toolhost/toolhost/builtin/internal/search/ignore"
	"github.com/toolhost/toolhost/builtin/internal/search/walk"
	"github.com/toolhost/toolhost/guard/changes"
)

// Bounds of Config.
const (
	// DefaultMaxFile is the size in bytes of the largest file whose content is kept.
	DefaultMaxFile = 64 << 20
	// DefaultMaxBytes is how many bytes the copies of one root may take.
	DefaultMaxBytes = 1 << 30
	// DefaultMaxFiles is how many files of a root are read. Commands may add as many.
	DefaultMaxFiles = 200_000
	// MaxIgnoredFile is the size in bytes of the largest single ignored file whose content is kept.
	MaxIgnoredFile = 1 << 20
	// DefaultWait is how long the first command waits for the base. The base of 20,000 files takes about a second.
	DefaultWait = 2 * time.Second
	// laterWait is how long a command waits for a base that an earlier command has waited for in vain.
	laterWait = 50 * time.Millisecond
	// beginTime and endTime bound a comparison before and after a command. What it does not reach is not covered.
	beginTime, endTime = 500 * time.Millisecond, 10 * time.Second
	// compactAfter is the number of changes from which the changes of one path are merged while a command runs.
	compactAfter = 10_000
)

// Config describes a root.
type Config struct {
	Root string // the real path of the directory
	Dir  string // an existing directory for the base and the copies, of this root alone
	// Hidden reports paths that are neither read nor named. Nil hides nothing.
	Hidden func(path string, info walk.Info) bool
	// Used counts the bytes of the copies of several roots, which MaxBytes bounds together. Nil: this root has its own
	// bound.
	Used *atomic.Int64
	// HasRoom returns an error unless the disk of Dir has room for another copy. Nil: only MaxBytes bounds them.
	HasRoom func(size int64) error
	// MaxFile, MaxBytes and MaxFiles take their defaults if zero.
	MaxFile, MaxBytes int64
	MaxFiles          int
	// Wait is how long the first command waits for the base; DefaultWait if zero.
	Wait time.Duration
}

// ErrTooLarge is wrapped by the reason why the root of a Tracker is not covered.
var ErrTooLarge = errors.New("the workspace is too large for the history of commands")

// Tracker keeps the base of one root. Its methods may be called concurrently.
type Tracker struct {
	cfg    Config
	ready  chan struct{} // closed when the base is complete, or cannot be
	stop   context.CancelFunc
	work   sync.WaitGroup
	seq    atomic.Uint64 // counts what was read and what changed
	waited atomic.Bool   // a command has waited for the base in vain
	read   atomic.Int64  // files of the base so far

	mu      mutex
	until   time.Time     // when the comparison under way must end
	late    bool          // it did not end in time
	again   bool          // the next one must examine everything
	feed    *changes.Feed // nil: the system announces no changes
	files   reader
	room    *ignore.Budget // for ignore files
	top     *dir
	count   int    // of files
	told    int    // how many paths that could not be read were told
	linked  bool   // a file with several names has changed
	err     error  // why the root is not covered
	pending []*dir // not read yet
	reading bool   // the base is incomplete; it stays so if the root has too many files
	short   bool   // that was told
	// unwatched are the directories of which no event announces changes.
	unwatched map[*dir]bool
	buf       walk.Buffer

	events events
	links  links
	moves  moves
	// lostRepos are the nested repositories that disappeared while commands ran. reposAt holds the paths of the others.
	lostRepos []lostRepo
	reposAt   map[walk.ID]string
	saved     *baseLog // nil: not on disk
	// savedLength is the length of what saved has written out.
	savedLength atomic.Int64

	log     []logged
	compact int // from which length on the log is compacted
}

// mutex is a lock with a time limit on waiting.
type mutex chan struct{}

func (m mutex) Lock() { m <- struct{}{} }

func (m mutex) Unlock() { <-m }

// lockFor reports whether it got the lock in time.
func (m mutex) lockFor(ctx context.Context, d time.Duration) bool {
	wait := time.NewTimer(d)
	defer wait.Stop()
	select {
	case m <- struct{}{}:
		return true
	case <-wait.C:
	case <-ctx.Done():
	}
	return false
}

// logged is a change, and when it was found.
type logged struct {
	seq    uint64
	change Change
	unsure bool // Before was read after the command had begun
}

// New returns a Tracker and begins to read the base.
func New(cfg Config) (*Tracker, error) {
	cfg = cfg.withDefaults()
	root, err := walk.OpenRoot(cfg.Root)
	if err != nil {
		return nil, err
	}
	store, err := newContents(cfg)
	if err != nil {
		return nil, errors.Join(err, root.Close())
	}
	t := newTracker(cfg, root, store)
	if t.saved, err = newBaseLog(filepath.Join(cfg.Dir, baseName), store.packs); err != nil {
		return nil, errors.Join(err, root.Close(), store.close())
	}
	if root.Local() {
		t.feed, _ = changes.Open(maxWatches)
	}
	t.pending = []*dir{t.top}
	var ctx context.Context
	ctx, t.stop = context.WithCancel(context.Background())
	t.work.Go(func() { t.readBase(ctx) })
	return t, nil
}

// withDefaults replaces what is zero.
func (cfg Config) withDefaults() Config {
	cfg.MaxFile, cfg.MaxBytes, cfg.MaxFiles = orDefault(cfg.MaxFile, DefaultMaxFile), orDefault(cfg.MaxBytes,
		DefaultMaxBytes), orDefault(cfg.MaxFiles, DefaultMaxFiles)
	cfg.Wait = orDefault(cfg.Wait, DefaultWait)
	return cfg
}

// newTracker returns a Tracker that has read nothing.
func newTracker(cfg Config, root *walk.Root, store *contents) *Tracker {
	t := &Tracker{
		cfg: cfg, ready: make(chan struct{}), mu: make(mutex, 1), compact: compactAfter, reading: true,
		events: events{ignored: map[string]bool{}}, moves: newMoves(), unwatched: map[*dir]bool{},
		reposAt: map[walk.ID]string{},
		files:   reader{root: root, contents: store, maxFile: cfg.MaxFile, skipped: map[string]string{}},
		room:    ignore.NewBudget(ignore.MaxTree), top: &dir{},
	}
	t.top.chain, t.top.rules = parentRules(cfg.Root, t.room)
	if cfg.Hidden != nil {
		t.files.hidden = func(path string, info walk.Info) bool { return cfg.Hidden(cfg.Root+"/"+path, info) }
	}
	return t
}

func orDefault[T int | int64 | time.Duration](value, def T) T {
	if value == 0 {
		return def
	}
	return value
}

// Close ends the tracking and releases the copies. Open reports can no longer be read.
func (t *Tracker) Close() error {
	t.stop()
	t.work.Wait()
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.err == nil {
		t.err = errors.New("the history of commands is closed")
	}
	return errors.Join(t.feed.Close(), t.files.root.Close(), t.files.contents.close(), t.saved.close(),
		os.Remove(filepath.Join(t.cfg.Dir, baseName)))
}

// Ready returns a channel that is closed when the base has been read.
func (t *Tracker) Ready() <-chan struct{} { return t.ready }

// IsMoved reports whether the path of the root is another directory now.
func IsMoved(t *Tracker) bool {
	info, err := walk.Lstat(t.cfg.Root)
	id := t.files.root.ID() // zero where it is not known
	return err != nil || id != (walk.ID{}) && id != (walk.ID{Device: info.Device, Inode: info.Inode})
}
