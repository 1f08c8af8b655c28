package checkpoint

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"
)

// Mark is a command that runs. End it once.
type Mark struct {
	tracker *Tracker
	start   uint64
	unread  string // what the base lacked, "" if it was complete
	unsure  bool   // what changed before may be taken for its changes
	head    string
	ignored int   // count of the tracker at the beginning
	saved   int64 // length of the base on disk at the beginning
}

// Begin is called before a command starts. It waits for the base, at most as long as Config says.
func (t *Tracker) Begin(ctx context.Context) *Mark {
	m := &Mark{tracker: t, head: headOf(t.cfg.Root)}
	if !t.waitForBase(ctx) {
		m.unread = fmt.Sprintf("%d files of %s had been read when this command began: what it changes elsewhere in it "+
			"cannot be taken back",
			t.read.Load(), t.cfg.Root)
	}
	// The reader of the base holds mu for as long as a directory takes.
	if m.unread != "" || !t.mu.lockFor(ctx, beginTime) {
		m.unsure = m.unread == ""
		m.start = t.seq.Load()
		t.events.begin(m)
		m.saved = t.savedLength.Load()
		return m
	}
	defer t.mu.Unlock()
	if t.reading && t.err == nil && !t.short {
		t.short = true
		m.unread = fmt.Sprintf("%s has more than %d files, of which %d are read: what commands change elsewhere in it "+
			"cannot be taken back. "+
			"This is said once", t.cfg.Root, t.cfg.MaxFiles, t.read.Load())
	}
	m.unsure = !t.compare(beginTime)
	m.start = t.seq.Load()
	m.saved = t.flushLog()
	t.events.begin(m)
	return m
}

// waitForBase reports whether the base is complete.
func (t *Tracker) waitForBase(ctx context.Context) bool {
	most := t.cfg.Wait
	if t.waited.Load() {
		most = min(most, laterWait)
	}
	wait := time.NewTimer(most)
	defer wait.Stop()
	select {
	case <-t.ready:
		return true
	case <-wait.C:
		t.waited.Store(true)
	case <-ctx.Done():
	}
	return false
}

// Unread says what of the root had not been read when the command began, and is not covered; "" if all had been.
func (m *Mark) Unread() string { return m.unread }

// End is called when the command has ended, also if its call was cancelled. It takes no longer than about twice
// endTime. The caller closes the report.
func (m *Mark) End() *Report {
	t := m.tracker
	if !t.mu.lockFor(context.Background(), endTime) {
		t.events.end(m)
		return &Report{Notes: []string{"The workspace was being compared for another command for too long: changes of this " +
			"one are not kept."}}
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
		r.Notes = append(r.Notes, fmt.Sprintf("Comparing the workspace took longer than %s: some changes are not covered.",
			endTime))
	}
	t.log = trimmed(t.log, &t.events, t.files.contents)
	if !t.events.marked() {
		t.links.forget()
		t.lostRepos = nil
	}
	t.shortenLog()
	return r
}

// since merges the changes that were found after a mark into one per path. Each holds its content. What was changed and
// changed back is left out, unless another command began in between: its changes are of what it found there.
func (t *Tracker) since(m *Mark) []Change {
	at := map[string]int{}
	first := map[string]uint64{}
	var all []Change
	for _, l := range t.log {
		if l.seq <= m.start {
			continue
		}
		c := l.change
		if l.unsure && m.unread != "" {
			c.Why, c.source = "it was read only after the command had begun", source{}
		}
		if i, ok := at[c.Path]; ok {
			all[i].After = c.After
			all[i].between = all[i].between || t.events.begunBetween(first[c.Path], l.seq)
			continue
		}
		at[c.Path], first[c.Path] = len(all), l.seq
		all = append(all, c)
	}
	all = slices.DeleteFunc(all, func(c Change) bool {
		return c.Before.same(c.After) && t.sameLinks(c) && !c.between
	})
	slices.SortFunc(all, func(a, b Change) int { return strings.Compare(treeOrder(a.Path), treeOrder(b.Path)) })
	for _, c := range all {
		t.files.contents.retain(c.source)
	}
	return all
}

// treeOrder sorts a directory before its content, and both before other names with the same prefix: d, d/x, d-x.
func treeOrder(path string) string { return strings.ReplaceAll(path, "/", "\x00") }

// maxNamed is how many paths a note names.
const maxNamed = 3

// notes returns texts on what was not covered.
func (t *Tracker) notes(m *Mark, changes []Change) []string {
	var notes []string
	if m.unread != "" {
		notes = append(notes, m.unread)
	}
	if m.unsure {
		notes = append(notes, "Comparing the workspace before the command took too long: changes made before it may be "+
			"among these.")
	}
	notes = append(notes, t.repoNotes(m)...)
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
		notes = append(notes, fmt.Sprintf("%d paths could not be read and are not covered, among them %s.", n,
			strings.Join(some, ", ")))
	}
	return notes
}

// record remembers a change for the marks that are open, and releases what the base held.
func (t *Tracker) record(path string, before *entry, after State) {
	seq := t.seq.Add(1)
	l := logged{seq: seq, change: Change{Path: path, After: after}}
	if before != nil {
		l.change.Before, l.change.Why, l.change.source = before.state, before.why, before.source
		l.change.Links = t.links.others(path, before, true)
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

// merged merges changes of a path if no command began between them.
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

// trimmed drops the changes that no open mark needs.
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
