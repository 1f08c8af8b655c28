// Package checkpoint finds out which files below a root change while a command runs, and keeps what they held before.
//
// A [Tracker] reads every file of its root once, in the background: the base. From then on the system announces changes
// ([walk.Queue]), so a command that changes k files costs O(k), and one that changes none costs next to nothing. Content from
// before a change comes from git's pack files if its bytes hash to an object there, else from a copy that was made when the base
// was read. git's index is not consulted: only bytes decide.
//
// Files in ignored directories are counted, not kept. Nothing in .git is looked at. What Config.Hidden hides is never read.
// No watch names the writer of a change: a checkpoint holds everything that changed while the command ran.
//
// Not noticed: stores through a mapping that is still open, and writes through a hard link that lies outside of the root, or that the
// command makes and removes.
package checkpoint

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/toolhost/toolhost/builtin/internal/search/walk"
)

// Bounds of Config.
const (
	// DefaultMaxFile is the size in bytes of the largest file whose content is kept.
	DefaultMaxFile = 64 << 20
	// DefaultMaxBytes is how many bytes the copies of one root may take.
	DefaultMaxBytes = 1 << 30
	// DefaultMaxFiles is how many files a root may have.
	DefaultMaxFiles = 200_000
	// MaxIgnoredFile is the size in bytes of the largest single ignored file whose content is kept.
	MaxIgnoredFile = 1 << 20
	// baseWait is how long a command waits for the base.
	baseWait = 50 * time.Millisecond
	// endWait is how long the end of a command waits for a base that was incomplete when the command began.
	endWait = time.Second
	// beginTime and endTime are how long a comparison takes at most before and after a command. What it does not reach is not covered.
	beginTime, endTime = 500 * time.Millisecond, 10 * time.Second
	// compactAfter is from how many changes on those of one path are merged while a command runs.
	compactAfter = 10_000
)

// Config describes a root.
type Config struct {
	Root string // the real path of the directory
	Dir  string // an existing directory on the disk that the copies are kept on
	// Hidden reports what is neither read nor named. Nil hides nothing.
	Hidden func(path string, info walk.Info) bool
	// Used counts the bytes of the copies of several roots, which MaxBytes bounds together. Nil: this root has its own bound.
	Used *atomic.Int64
	// MaxFile, MaxBytes and MaxFiles take their defaults if zero.
	MaxFile, MaxBytes int64
	MaxFiles          int
}

// Kind is what stands at a path.
type Kind uint8

// The kinds.
const (
	Absent Kind = iota
	File
	Link
	Dir
	Special // a pipe, a socket, a device
)

// State is what stands at a path, as far as it is kept.
type State struct {
	Kind Kind
	Mode fs.FileMode // permission bits, with setuid, setgid and sticky
	Size int64       // bytes of a file
	Sum  Sum         // SHA-256 of a file's content; zero if it was not read
	Link string      // the target of a link
	// Stamp is the name of the [walk.Stamp] of what was not read, such as a large file or a pipe.
	Stamp string
	time  int64 // of the last change of a file that was not read
}

// same reports whether nothing has changed that is kept.
func (s State) same(o State) bool {
	s.Stamp = o.Stamp
	return s == o
}

// Sum is a SHA-256.
type Sum [32]byte

// Change is the difference that a command made at one path.
type Change struct {
	Path          string // relative to the root, with slashes
	Before, After State
	// Why says why the content of Before is not kept; "" if it is, or Before is no file.
	Why    string
	source source
}

// IsDir reports whether a directory stands at the path before or after, and nothing else does.
func (c Change) IsDir() bool {
	isDir := func(s State) bool { return s.Kind == Dir || s.Kind == Absent }
	return isDir(c.Before) && isDir(c.After)
}

// Report is what changed while a command ran.
type Report struct {
	Changes []Change // by path, what is in a directory next to it
	Ignored int      // files that changed in ignored directories, which are not kept
	// Notes say what was not covered.
	Notes []string
	// HeadMoved says that the commit that is checked out is another one.
	HeadMoved bool

	store *contents
}

// Content returns what a file held before a change whose Why is empty, or the target that a link had.
func (r *Report) Content(c Change) ([]byte, error) {
	if c.Before.Kind == Link {
		return []byte(c.Before.Link), nil
	}
	return r.store.read(c.source, c.Before)
}

// Close releases the contents of the report.
func (r *Report) Close() {
	for _, c := range r.Changes {
		r.store.release(c.source)
	}
	r.Changes = nil
}

// ErrTooLarge is wrapped by the reason why the root of a Tracker is not covered.
var ErrTooLarge = errors.New("the workspace is too large for the history of commands")

// Tracker keeps the base of one root. Its methods may be called concurrently.
type Tracker struct {
	cfg   Config
	ready chan struct{} // closed when the base is complete, or cannot be
	stop  context.CancelFunc
	work  sync.WaitGroup
	seq   atomic.Uint64 // counts what was read and what changed

	mu      mutex
	until   time.Time   // when the comparison under way must end
	late    bool        // it did not end in time
	queue   *walk.Queue // nil: the system announces no changes
	files   reader
	top     *dir
	count   int    // of files
	told    int    // how many paths that could not be read were told
	linked  bool   // a file with several names has changed
	err     error  // why the root is not covered
	pending []*dir // not read yet
	buf     walk.Buffer

	events events

	log     []logged
	compact int // from which length on the log is compacted
}

// mutex is a lock that can be waited for until a time.
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
	cfg.MaxFile, cfg.MaxBytes, cfg.MaxFiles = orDefault(cfg.MaxFile, DefaultMaxFile), orDefault(cfg.MaxBytes, DefaultMaxBytes), orDefault(cfg.MaxFiles, DefaultMaxFiles)
	root, err := walk.OpenRoot(cfg.Root)
	if err != nil {
		return nil, err
	}
	store, err := newContents(cfg)
	if err != nil {
		return nil, errors.Join(err, root.Close())
	}
	t := &Tracker{
		cfg: cfg, ready: make(chan struct{}), events: newEvents(), mu: make(mutex, 1), compact: compactAfter,
		files: reader{root: root, contents: store, maxFile: cfg.MaxFile, skipped: map[string]string{}},
	}
	if cfg.Hidden != nil {
		t.files.hidden = func(path string, info walk.Info) bool { return cfg.Hidden(cfg.Root+"/"+path, info) }
	}
	if t.queue, err = walk.OpenQueue(); err != nil || !root.Local() {
		t.closeQueue()
	}
	t.top = &dir{chain: parentRules(cfg.Root)}
	t.pending = []*dir{t.top}
	var ctx context.Context
	ctx, t.stop = context.WithCancel(context.Background())
	if q := t.queue; q != nil {
		t.work.Go(func() { q.Wait(func() { t.drain(q) }) })
	}
	t.work.Go(func() { t.readBase(ctx) })
	return t, nil
}

func orDefault[T int | int64](value, def T) T {
	if value == 0 {
		return def
	}
	return value
}

func (t *Tracker) closeQueue() {
	if t.queue != nil {
		t.queue.Close()
		t.queue = nil
	}
}

// Close ends the tracking and gives back what is kept. Reports that are open can no longer be read.
func (t *Tracker) Close() error {
	t.stop()
	t.mu.Lock()
	t.closeQueue()
	t.mu.Unlock()
	t.work.Wait()
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.err == nil {
		t.err = errors.New("the history of commands is closed")
	}
	return errors.Join(t.files.root.Close(), t.files.contents.close())
}

// Ready returns a channel that is closed when the base has been read.
func (t *Tracker) Ready() <-chan struct{} { return t.ready }

// IsMoved reports whether another directory has taken the place of the root.
func IsMoved(t *Tracker) bool {
	info, err := walk.Lstat(t.cfg.Root)
	id := t.files.root.ID() // zero where it is not known
	return err != nil || id != (walk.ID{}) && id != (walk.ID{Device: info.Device, Inode: info.Inode})
}

// Err returns why the root is not covered, or nil.
func (t *Tracker) Err() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.err
}

// Mark is a command that runs. End it once.
type Mark struct {
	tracker *Tracker
	start   uint64
	partial bool // the base was incomplete
	unsure  bool // what changed before may be taken for its changes
	head    string
	ignored int // count of the tracker at the beginning
}

// Begin is called before a command starts. It waits shortly for the base.
func (t *Tracker) Begin(ctx context.Context) *Mark {
	m := &Mark{tracker: t, head: headOf(t.cfg.Root)}
	wait := time.NewTimer(baseWait)
	defer wait.Stop()
	select {
	case <-t.ready:
	case <-wait.C:
		m.partial = true
	case <-ctx.Done():
		m.partial = true
	}
	if m.partial || !t.mu.lockFor(ctx, beginTime) { // the reader of the base holds mu for as long as a directory takes
		m.unsure = !m.partial
		m.start = t.seq.Load()
		t.events.begin(m)
		return m
	}
	defer t.mu.Unlock()
	m.unsure = !t.compare(beginTime)
	m.start = t.seq.Load()
	t.events.begin(m)
	return m
}

// End is called when the command has ended, also if its call was cancelled. It takes no longer than about twice endTime. The caller
// closes the report.
func (m *Mark) End() *Report {
	t := m.tracker
	if m.partial {
		wait := time.NewTimer(endWait)
		defer wait.Stop()
		select {
		case <-t.ready:
		case <-wait.C:
			t.events.end(m)
			return &Report{Notes: []string{"The workspace had not been read when the command ended: its changes are not kept."}}
		}
	}
	if !t.mu.lockFor(context.Background(), endTime) {
		t.events.end(m)
		return &Report{Notes: []string{"The workspace was being compared for another command for too long: changes of this one are not kept."}}
	}
	defer t.mu.Unlock()
	whole := t.err != nil || t.compare(endTime)
	r := &Report{Ignored: t.events.end(m), HeadMoved: headOf(t.cfg.Root) != m.head, store: t.files.contents}
	if t.err != nil {
		r.Notes = []string{fmt.Sprintf("Changes of commands are not kept: %v.", t.err)}
		return r
	}
	r.Changes = t.since(m)
	r.Notes = t.notes(m, r.Changes)
	if !whole {
		r.Notes = append(r.Notes, fmt.Sprintf("Comparing the workspace took longer than %s: some changes are not covered.", endTime))
	}
	t.log = trimmed(t.log, &t.events, t.files.contents)
	return r
}

// since merges the changes that were found after a mark into one per path. Each holds its content.
func (t *Tracker) since(m *Mark) []Change {
	at := map[string]int{}
	var all []Change
	for _, l := range t.log {
		if l.seq <= m.start {
			continue
		}
		c := l.change
		if l.unsure && m.partial {
			c.Why, c.source = "it was read only after the command had begun", source{}
		}
		if i, ok := at[c.Path]; ok {
			all[i].After = c.After
			continue
		}
		at[c.Path] = len(all)
		all = append(all, c)
	}
	all = slices.DeleteFunc(all, func(c Change) bool { return c.Before.same(c.After) })
	slices.SortFunc(all, func(a, b Change) int { return strings.Compare(treeOrder(a.Path), treeOrder(b.Path)) })
	for _, c := range all {
		t.files.contents.retain(c.source)
	}
	return all
}

// treeOrder sorts a directory before what is in it, and both before names that only begin like it: d, d/x, d-x.
func treeOrder(path string) string { return strings.ReplaceAll(path, "/", "\x00") }

// maxNamed is how many paths a note names.
const maxNamed = 3

// notes say what was not covered.
func (t *Tracker) notes(m *Mark, changes []Change) []string {
	var notes []string
	if m.partial {
		notes = append(notes, "The command began before the workspace had been read: changes that it made before are missing here.")
	}
	if m.unsure {
		notes = append(notes, "Comparing the workspace before the command took too long: changes made before it may be among these.")
	}
	lost, told := 0, t.told
	for _, c := range changes {
		if c.Why != "" {
			lost++
		}
	}
	if lost > 0 {
		notes = append(notes, fmt.Sprintf("Of %d of the changed files the content before is not kept.", lost))
	}
	t.told = len(t.files.skipped)
	if n := t.told; n > 0 && n != told { // else it is known
		var some []string
		for path, why := range t.files.skipped {
			if len(some) == maxNamed {
				break
			}
			some = append(some, fmt.Sprintf("%q (%s)", path, why))
		}
		slices.Sort(some)
		notes = append(notes, fmt.Sprintf("%d paths could not be read and are not covered, among them %s.", n, strings.Join(some, ", ")))
	}
	return notes
}

// record remembers a change for the marks that are open, and releases what the base held.
func (t *Tracker) record(path string, before *entry, after State) {
	seq := t.seq.Add(1)
	l := logged{seq: seq, change: Change{Path: path, After: after}}
	if before != nil {
		l.change.Before, l.change.Why, l.change.source = before.state, before.why, before.source
		l.unsure = before.scanned != 0 && t.events.earlier(before.scanned)
	}
	if !t.events.marked() {
		t.files.contents.release(l.change.source)
		return
	}
	if t.log = append(t.log, l); len(t.log) >= t.compact {
		t.log = merged(t.log, &t.events, t.files.contents)
		t.compact = max(compactAfter, 2*len(t.log))
	}
}

// merged makes one change of several of a path that no command began between.
func merged(log []logged, e *events, c *contents) []logged {
	type key struct {
		path string
		mark uint64 // the last command that had begun
	}
	first := map[key]int{}
	kept := log[:0]
	for _, l := range log {
		k := key{l.change.Path, e.before(l.seq)}
		if i, ok := first[k]; ok {
			kept[i].change.After = l.change.After
			c.release(l.change.source)
			continue
		}
		first[k] = len(kept)
		kept = append(kept, l)
	}
	clear(log[len(kept):])
	return kept
}

// trimmed forgets the changes that no open mark needs.
func trimmed(log []logged, e *events, c *contents) []logged {
	oldest := e.oldest()
	return slices.DeleteFunc(log, func(l logged) bool {
		if l.seq > oldest {
			return false
		}
		c.release(l.change.source)
		return true
	})
}
