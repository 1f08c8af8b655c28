package builtin

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/toolhost/toolhost/builtin/internal/checkpoint"
	"github.com/toolhost/toolhost/builtin/internal/history"
	"github.com/toolhost/toolhost/builtin/internal/search/walk"
	"github.com/toolhost/toolhost/guard"
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
	dir  string        // of copies; "" disables them
	wait time.Duration // how long a command waits for the base

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
	return t.Close()
}

// openCheckpoints keeps copies below the state directory.
func openCheckpoints(state string, wait time.Duration) *checkpoints {
	c := &checkpoints{wait: wait, trackers: map[trackerKey]*tracker{}, used: map[string]*atomic.Int64{}}
	if state != "" {
		dir := filepath.Join(state, "checkpoints")
		if os.MkdirAll(dir, 0o700) == nil {
			c.dir = dir
		}
	}
	return c
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
	hidden, tag := env.Policy.Hiding()
	t, err := c.entry(trackerKey{env.Principal, root, tag})
	if err != nil {
		return nil, err
	}
	t.open.Do(func() { // other callers do not wait for the packs of this root
		links := env.Policy.HidingLinks()
		t.Tracker, t.err = checkpoint.New(checkpoint.Config{Root: root, Dir: c.dir, Used: t.bytes, Wait: c.wait, Hidden: func(path string, info walk.Info) bool {
			return hidden != nil && hidden(path, info.Kind == walk.Dir) || links != nil && info.Links > 1 && links(info.Device, info.Inode, info.Status)
		}})
	})
	if t.err != nil {
		c.release(t)
		return nil, t.err
	}
	return t, nil
}

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
	env     *Env
	command string
	begun   time.Time
	roots   []rootMark
	notes   []string
	ended   func()                // notifies other hosts of the end
	end     func() commandChanges // once
}

type rootMark struct {
	root    string
	tracker *tracker
	mark    *checkpoint.Mark
}

// commandChanges are the changes of a command.
type commandChanges struct {
	count, ignored int
	names          []string // of at most maxChangedNames files
	notes          []string // what was not covered
}

// beginCommand is called before a command starts.
func (b *Runtime) beginCommand(ctx context.Context, env *Env, command string) *commandMark {
	m := &commandMark{env: env, command: command, begun: time.Now()}
	m.end = sync.OnceValue(m.finish)
	roots := outermost(env.Policy.Roots())
	var err error
	if m.ended, err = history.Announce(b.history, history.Running{Principal: env.Principal, Command: command, Roots: roots}); err != nil {
		b.log.Warn("cannot record that a command runs: a rewind will not wait for it", "error", err)
		m.ended = func() {}
	}
	if b.checkpoints.dir == "" || !env.Shell.KeepChanges {
		return m
	}
	killed, err := history.Abandoned(b.history, env.Principal)
	if err != nil {
		b.log.Warn("cannot read which commands of killed hosts ran", "error", err)
	}
	for _, k := range killed {
		m.notes = append(m.notes, fmt.Sprintf("The host was killed while it ran %q, begun %s: what that changed may not be in the history",
			k.Command[:min(len(k.Command), maxKilledCommand)], k.Begun.Local().Format(time.DateTime)))
	}
	for _, root := range roots {
		if !tracked(root) {
			b.checkpoints.told.Do(func() {
				m.notes = append(m.notes, fmt.Sprintf("What commands change in %s cannot be taken back: it is, or holds, the home directory. This is said once", root))
			})
			continue
		}
		t, err := b.checkpoints.acquire(env, root)
		if err != nil {
			b.log.Warn("cannot record the changes of commands", "root", root, "error", err)
			continue
		}
		mark := t.Begin(ctx)
		m.roots = append(m.roots, rootMark{root, t, mark})
		if files, partial := mark.Partial(); partial && env.Progress != nil {
			env.Progress(fmt.Sprintf("%s is not read whole yet, only %s: what this command changes elsewhere in it cannot be taken back.",
				root, count(files, "file")))
		}
	}
	return m
}

// readRoots begins to read the roots, so that what the first command changes can be taken back.
func (b *Runtime) readRoots(env *Env) {
	if b.checkpoints.dir == "" {
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
	defer m.ended()
	call := history.Change{Principal: m.env.Principal, Scope: m.env.Scope, Tool: m.env.Tool, Time: m.begun}
	call.Command = m.command
	var changes []history.PathChange
	all.notes = m.notes
	for _, r := range m.roots {
		report := r.mark.End()
		defer report.Close()
		defer m.env.Runtime.checkpoints.release(r.tracker)
		all.ignored += report.Ignored
		all.notes = append(all.notes, report.Notes...)
		call.HeadMoved = call.HeadMoved || report.HeadMoved
		for i, c := range report.Changes {
			changes = append(changes, pathChange(r.root, report, c))
			if !c.IsDir() || i+1 == len(report.Changes) || !strings.HasPrefix(report.Changes[i+1].Path, c.Path+"/") {
				all.add(m.env.Policy, r.root, c)
			}
		}
	}
	call.Ignored, call.Notes = all.ignored, all.notes
	if err := m.env.Runtime.history.Record(call, changes); err != nil {
		all.notes = append(all.notes, fmt.Sprintf("What the command changed could not be recorded, and cannot be taken back: %v.", err))
	}
	return all
}

// pathChange is a change as the history records it.
func pathChange(root string, report *checkpoint.Report, c checkpoint.Change) history.PathChange {
	return history.PathChange{
		Path: filepath.Join(root, c.Path), Before: node(c.Before), After: node(c.After), Lost: c.Why, Target: c.After.Link,
		Content: func() ([]byte, error) { return report.Content(c) },
	}
}

func node(s checkpoint.State) history.Node {
	n := history.Node{Mode: s.Mode, Stamp: s.Stamp}
	switch s.Kind {
	case checkpoint.Absent:
		return history.Node{}
	case checkpoint.File:
		if s.Sum != (checkpoint.Sum{}) {
			n.Blob = history.BlobOfHash(s.Sum, s.Size)
		} else if n.Mode == 0 { // a file that cannot be read is not absent
			n.Mode = os.ModeIrregular
		}
	case checkpoint.Link:
		n.Mode, n.Blob = os.ModeSymlink, history.BlobOf([]byte(s.Link))
	case checkpoint.Dir:
		n.Mode |= os.ModeDir
	default:
		n.Mode |= os.ModeIrregular
	}
	return n
}

// add counts a change. Directories count if nothing in them changed.
func (a *commandChanges) add(policy *guard.Policy, root string, c checkpoint.Change) {
	if a.count++; len(a.names) == maxChangedNames {
		return
	}
	name := c.Path
	if first := policy.Roots()[0]; root != first {
		name = filepath.Join(root, c.Path)
	}
	if c.IsDir() {
		name += "/"
	}
	a.names = append(a.names, name)
}

// structured returns the changes for programs, or nil.
func (a commandChanges) structured() *changedFiles {
	if a.count+a.ignored == 0 {
		return nil
	}
	c := &changedFiles{Files: a.count, Names: append([]string{}, a.names...), Ignored: a.ignored}
	if slices.ContainsFunc(a.names, func(name string) bool { return !utf8.ValidString(name) }) {
		for _, name := range a.names {
			c.RawNames = append(c.RawNames, base64.StdEncoding.EncodeToString([]byte(name)))
		}
	}
	return c
}

// lines returns the line of a result that reports the changes, or nil if there is nothing to report.
func (a commandChanges) lines() []string {
	var parts []string
	if a.count > 0 {
		names := make([]string, len(a.names))
		for i, name := range a.names {
			names[i] = quoteOdd(name)
		}
		part := fmt.Sprintf("changed %s: %s", count(a.count, "file"), strings.Join(names, ", "))
		if more := a.count - len(names); more > 0 {
			part += fmt.Sprintf(" and %d more", more)
		}
		parts = append(parts, part)
	}
	if a.ignored > 0 {
		parts = append(parts, fmt.Sprintf("%s changed, not kept", count(a.ignored, "ignored file")))
	}
	parts = append(parts, a.notes...)
	if len(parts) == 0 {
		return nil
	}
	return []string{"[" + strings.Join(parts, "; ") + "]"}
}

// quoteOdd quotes a name that could be misread.
func quoteOdd(name string) string {
	odd := func(r rune) bool {
		return !unicode.IsLetter(r) && !unicode.IsDigit(r) && !strings.ContainsRune("/._-+@=~", r)
	}
	if strings.ContainsFunc(name, odd) || strings.ContainsRune(name, unicode.ReplacementChar) {
		return strconv.Quote(name)
	}
	return name
}
