package builtin

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/toolhost/toolhost/builtin/internal/atomicfile"
	"github.com/toolhost/toolhost/builtin/internal/checkpoint"
	"github.com/toolhost/toolhost/builtin/internal/journal"
	"github.com/toolhost/toolhost/builtin/internal/search/walk"
	"github.com/toolhost/toolhost/guard"
	"github.com/toolhost/toolhost/guard/settle"
)

// Limits of what is recorded to undo the changes of commands.
const (
	// maxTrackers limits the tracked roots of callers.
	maxTrackers = 16
	// trackerIdle is how long the tracker of a root is kept without a command.
	trackerIdle = 30 * time.Minute
	// maxChangedNames limits the names of changed files in a result.
	maxChangedNames = 20
	// maxKilledCommand limits how much of an interrupted command is shown, in bytes.
	maxKilledCommand = 200
)

// checkpoints track the roots in which commands run.
type checkpoints struct {
	store *journal.Journal
	wait  time.Duration // how long a command waits for the base

	told     sync.Once // for the note that a root is not covered
	mu       sync.Mutex
	trackers map[trackerKey]*tracker
	used     map[string]*atomic.Int64 // bytes of the copies for each principal
	closing  sync.WaitGroup           // trackers that were given up
	closed   bool
}

// trackerKey identifies a root for one caller. hiding represents the rules that hide files.
type trackerKey struct{ principal, root, hiding string }

type tracker struct {
	*checkpoint.Tracker // nil until it was opened, or if that failed
	open                sync.Once
	err                 error
	room                string        // its directory
	bytes               *atomic.Int64 // of the copies for the principal
	commands            int           // that run
	used                time.Time
}

// close closes the tracker, after it was opened.
func (t *tracker) close() error {
	t.open.Do(func() {})
	if t.Tracker == nil {
		return nil
	}
	return errors.Join(t.Close(), os.RemoveAll(t.room))
}

func openCheckpoints(store *journal.Journal, wait time.Duration) *checkpoints {
	return &checkpoints{store: store, wait: wait, trackers: map[trackerKey]*tracker{},
		used: map[string]*atomic.Int64{}}
}

func (c *checkpoints) close() error {
	c.mu.Lock()
	c.closed = true
	all := c.trackers
	c.trackers = nil
	c.mu.Unlock()
	var err error
	for _, t := range all {
		err = errors.Join(err, t.close())
	}
	c.closing.Wait()
	return err
}

// acquire returns the tracker of a root. A new tracker starts to read the base.
func (c *checkpoints) acquire(env *Env, root string) (*tracker, error) {
	_, tag := env.Policy.Hiding()
	t, err := c.entry(trackerKey{env.Principal, root, tag})
	if err != nil {
		return nil, err
	}
	t.open.Do(func() { // other callers do not wait for the packs of this root
		if t.room, t.err = c.store.Room(); t.err != nil {
			return
		}
		t.Tracker, t.err = checkpoint.New(checkpoint.Config{Root: root, Dir: t.room, Used: t.bytes, Wait: c.wait,
			HasRoom: c.store.HasRoom, Hidden: hiddenFiles(env.Policy)})
		if t.err != nil {
			_ = os.RemoveAll(t.room)
		}
	})
	if t.err != nil {
		c.release(t)
		return nil, t.err
	}
	return t, nil
}

// hiddenFiles returns a function that reports whether rules hide a file from commands, or whether it is a temporary
// file of a host. While a command runs, another host may write a file, and has a temporary one next to it.
func hiddenFiles(policy *guard.Policy) func(path string, info walk.Info) bool {
	hidden, _ := policy.Hiding()
	links := policy.HidingLinks()
	return func(path string, info walk.Info) bool {
		return hidden != nil && hidden(path, info.Kind == walk.Dir) || links != nil && info.Links > 1 &&
			links(info.Device, info.Inode, info.Status) || info.Kind != walk.Dir && isTemp(filepath.Base(path))
	}
}

// isTemp reports whether a name is one that hosts give to files which stand for a moment.
func isTemp(name string) bool { return atomicfile.IsTemp(name) || settle.IsCopy(name) }

// entry counts a command on the tracker of a key. It creates a tracker if there is none, or if the root was replaced.
func (c *checkpoints) entry(key trackerKey) (*tracker, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return nil, errors.New("the host is closing")
	}
	t := c.trackers[key]
	if t != nil && t.commands == 0 && (t.err != nil || t.Tracker != nil && checkpoint.IsMoved(t.Tracker)) {
		c.giveUp(t)
		t = nil
	}
	if t == nil {
		if c.used[key.principal] == nil {
			c.used[key.principal] = new(atomic.Int64)
		}
		t = &tracker{bytes: c.used[key.principal]}
		c.trackers[key] = t
	}
	t.commands++
	t.used = time.Now()
	c.evict()
	return t, nil
}

// giveUp closes a tracker in the background. close waits for that.
func (c *checkpoints) giveUp(t *tracker) { c.closing.Go(func() { _ = t.close() }) }

func (c *checkpoints) release(t *tracker) {
	c.mu.Lock()
	defer c.mu.Unlock()
	t.commands--
	t.used = time.Now()
}

// evict closes idle trackers, and the oldest ones above maxTrackers.
func (c *checkpoints) evict() {
	for len(c.trackers) > 0 {
		var oldest trackerKey
		for key, t := range c.trackers {
			if o := c.trackers[oldest]; t.commands == 0 && (o == nil || t.used.Before(o.used)) {
				oldest = key
			}
		}
		o := c.trackers[oldest]
		if o == nil || len(c.trackers) <= maxTrackers && time.Since(o.used) < trackerIdle {
			return
		}
		delete(c.trackers, oldest)
		c.giveUp(o)
	}
}

// A commandMark tracks a running command, and returns its changes afterwards.
type commandMark struct {
	env   *Env
	entry *journal.Entry
	roots []rootMark
	notes []string
	end   func() commandChanges // once
}

type rootMark struct {
	root    string
	tracker *tracker
	mark    *checkpoint.Mark
}

// beginCommand is called before a command starts. It announces the entry of the command on disk. A lasting one is an
// agent program, whose calls have entries of their own.
func (b *Runtime) beginCommand(ctx context.Context, env *Env, command string, lasting bool) *commandMark {
	m := &commandMark{env: env}
	m.end = sync.OnceValue(m.finish)
	roots := outermost(env.Policy.Roots())
	r := journal.Running{Principal: env.Principal, Scope: env.Scope, Tool: env.Tool, Command: command, Roots: roots,
		Begun: time.Now(), Lasting: lasting, Open: b.history.OpenEntries()}
	if b.history.Keeps() && env.Shell.KeepChanges {
		for _, k := range b.settleKilled(env.Policy) {
			m.notes = append(m.notes, fmt.Sprintf("The host was killed while it ran %q, begun %s: toolhost history shows what "+
				"that changed, as %s",
				k.Command[:min(len(k.Command), maxKilledCommand)], k.Begun.Local().Format(time.DateTime), k.ID))
		}
		m.beginRoots(ctx, roots)
		for _, root := range m.roots {
			if begun, ok := root.mark.Saved(); ok {
				r.Bases = append(r.Bases, journal.Base{Root: root.root, Room: filepath.Base(root.tracker.room), Begun: begun})
			}
		}
	}
	var err error
	if m.entry, err = b.history.Announce(r); err != nil {
		b.log.Warn("cannot record that a command runs: a rewind will not wait for it", "error", err)
	}
	return m
}

// beginRoots marks the state of the roots.
func (m *commandMark) beginRoots(ctx context.Context, roots []string) {
	b := m.env.Runtime
	for _, root := range roots {
		if !tracked(root) {
			b.checkpoints.told.Do(func() {
				m.notes = append(m.notes, fmt.Sprintf("What commands change in %s cannot be taken back: it is, or holds, the home "+
					"directory. This is said once", root))
			})
			continue
		}
		t, err := b.checkpoints.acquire(m.env, root)
		if err != nil {
			b.log.Warn("cannot record the changes of commands", "root", root, "error", err)
			continue
		}
		mark := t.Begin(ctx)
		m.roots = append(m.roots, rootMark{root, t, mark})
		if unread := mark.Unread(); unread != "" && m.env.Progress != nil {
			m.env.Progress(unread)
		}
	}
}

// settleKilled settles the entries of commands in the roots whose host was killed, and returns those commands.
func (b *Runtime) settleKilled(policy *guard.Policy) (killed []journal.Running) {
	if !b.history.Keeps() {
		return nil
	}
	b.settling.Lock()
	defer b.settling.Unlock()
	roots := outermost(policy.Roots())
	mine := func(r journal.Running) bool {
		return !slices.ContainsFunc(r.Bases, func(base journal.Base) bool {
			_, err := os.Lstat(base.Root)
			return err == nil && !slices.ContainsFunc(roots, func(root string) bool { return isBelow(base.Root, root) })
		})
	}
	taken, err := b.history.Killed(mine)
	if err != nil {
		b.log.Warn("cannot find the commands of killed hosts", "error", err)
	}
	for _, entry := range taken {
		if err := b.settleOne(policy, entry); err != nil {
			b.log.Warn("what a command of a killed host changed cannot be settled", "command", entry.Command, "error", err)
			entry.GiveBack()
			continue
		}
		killed = append(killed, entry.Running)
	}
	return killed
}

// settleOne settles the entry of a command whose host was killed.
func (b *Runtime) settleOne(policy *guard.Policy, entry *journal.Entry) error {
	var reports rootReports
	defer func() { reports.close() }()
	for _, base := range entry.Bases {
		report, err := checkpoint.Settle(checkpoint.Config{Root: base.Root, Dir: b.history.RoomOf(base),
			HasRoom: b.history.HasRoom, Hidden: hiddenFiles(policy)}, base.Begun)
		if errors.Is(err, fs.ErrNotExist) { // the root, or its base
			report, err = &checkpoint.Report{Notes: []string{fmt.Sprintf("What it changed in %s is not known: %v.",
				base.Root, err)}}, nil
		}
		if err != nil {
			return err
		}
		reports = append(reports, rootReport{base.Root, report})
	}
	call := reports.call()
	call.Notes = append(call.Notes, "The host was killed while it ran.")
	_, err := entry.Settle(call, reports.changes())
	return err
}

// A rootReport is what changed in a root while a command ran.
type rootReport struct {
	root string
	*checkpoint.Report
}

type rootReports []rootReport

func (all rootReports) close() {
	for _, r := range all {
		r.Close()
	}
}

// call returns what the history records of all changes together.
func (all rootReports) call() (c journal.Call) {
	for _, r := range all {
		c.Ignored += r.Ignored
		c.Notes = append(c.Notes, r.Notes...)
		c.HeadMoved = c.HeadMoved || r.HeadMoved
	}
	return c
}

// changes returns the changes as the history records them.
func (all rootReports) changes() (changes []journal.PathChange) {
	for _, r := range all {
		for _, c := range r.Changes {
			changes = append(changes, pathChange(r.root, r.Report, c))
		}
	}
	return changes
}

// readRoots begins to read the roots, so that what the first command changes can be taken back.
func (b *Runtime) readRoots(env *Env) {
	if !b.history.Keeps() {
		return
	}
	for _, root := range outermost(env.Policy.Roots()) {
		if !tracked(root) {
			continue
		}
		if t, err := b.checkpoints.acquire(env, root); err == nil { // an error is told with the first command
			b.checkpoints.release(t)
		}
	}
}

// outermost returns the real paths of the directories that are not below another one.
func outermost(dirs []string) (roots []string) {
	for _, dir := range dirs {
		real, err := filepath.EvalSymlinks(dir)
		if err != nil || slices.ContainsFunc(roots, func(r string) bool { return isBelow(real, r) }) {
			continue
		}
		roots = slices.DeleteFunc(roots, func(r string) bool { return isBelow(r, real) })
		roots = append(roots, real)
	}
	return roots
}

// tracked reports whether a root is tracked. The home directory and directories above it are not.
func tracked(root string) bool {
	home, err := os.UserHomeDir()
	if err == nil {
		home, err = filepath.EvalSymlinks(home)
	}
	return root != filepath.Dir(root) && (err != nil || !isBelow(home, root))
}

// finish records the changes of the command.
func (m *commandMark) finish() (all commandChanges) {
	var reports rootReports
	for _, r := range m.roots {
		reports = append(reports, rootReport{r.root, r.mark.End()})
		defer m.env.Runtime.checkpoints.release(r.tracker)
	}
	defer reports.close()
	call := reports.call()
	call.Notes = slices.Concat(m.notes, call.Notes)
	all.notes, all.ignored = call.Notes, call.Ignored
	own, err := m.entry.Settle(call, reports.changes())
	if err != nil {
		all.notes = append(all.notes, fmt.Sprintf("What the command changed could not be recorded, and cannot be taken "+
			"back: %v.", err))
	}
	mine := make(map[string]bool, len(own))
	for _, p := range own {
		mine[p.Path] = true
	}
	for _, r := range reports {
		some := slices.DeleteFunc(slices.Clone(r.Changes),
			func(c checkpoint.Change) bool { return c.IsBack() || !mine[filepath.Join(r.root, c.Path)] })
		for i, c := range some {
			if !c.IsDir() || i+1 == len(some) || !strings.HasPrefix(some[i+1].Path, c.Path+"/") {
				all.add(m.env.Policy, r.root, c)
			}
		}
	}
	return all
}
