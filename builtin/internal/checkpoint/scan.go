package checkpoint

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/toolhost/toolhost/builtin/internal/search/ignore"
	"github.com/toolhost/toolhost/builtin/internal/search/walk"
	"github.com/toolhost/toolhost/guard/changes"
)

// dir is a directory of the base.
type dir struct {
	rel     string // from the root, ending in a slash unless it is the root
	up      *dir
	chain   *ignore.Chain // the rules for its entries
	rules   int64         // what its ignore files take of the room
	ignored bool
	first   scan // what its first listing is for
	watched changes.Dir
	gone    bool
	repo    repo
	// replaced says that the watch has ended. The path may be a new directory that got the inode of the old one.
	replaced bool
	entries  map[string]*entry // of an ignored directory: its subdirectories
}

// entry is a directory entry of the base.
type entry struct {
	state   State
	stamp   walk.Stamp
	looked  int64 // when it was read, in nanoseconds since 1970
	source  source
	why     string // why its content is not kept
	ignored bool   // a rule ignores the file
	scanned uint64 // Tracker.seq when the base was read; 0: later
	sub     *dir
}

// clockTick is the longest time, in nanoseconds, in which a file system may give two changes the same time (a jiffy
// of 10 ms, doubled).
const clockTick = 20e6

// readBase reads the whole root, a directory at a time.
func (t *Tracker) readBase(ctx context.Context) {
	defer close(t.ready)
	defer func() {
		if fault := recover(); fault != nil { // the host continues without
			t.mu.Lock()
			defer t.mu.Unlock()
			t.fail(fmt.Errorf("reading the workspace failed: %v", fault))
		}
	}()
	lowPriority()
	for ctx.Err() == nil && t.readNext() {
	}
}

// readNext reads a directory of the base. It reports false when there is none left.
func (t *Tracker) readNext() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.err != nil || t.count >= t.cfg.MaxFiles || len(t.pending) == 0 {
		t.pending = nil
		return false
	}
	d := t.pending[len(t.pending)-1]
	t.pending = t.pending[:len(t.pending)-1]
	t.pending = append(t.pending, t.list(d)...)
	if len(t.pending) == 0 {
		t.reading = false
	}
	if t.saved != nil {
		t.saved.whole = t.saved.length
	}
	t.flushLog()
	return true
}

// scan is the purpose of a scan.
type scan uint8

const (
	scanBase  scan = iota // to read the base
	scanAfter             // to find what has changed: what is not known is new
	scanRules             // in what was ignored until now: what is not known was there before
)

// list watches a directory and examines its entries. It returns the subdirectories to list.
func (t *Tracker) list(d *dir) (subs []*dir) {
	if d.gone || t.stopped() {
		return nil
	}
	why := d.first
	t.buf.Opened = func(fd int) { t.watch(d, fd) }
	listed, err := t.files.root.List(strings.TrimSuffix(d.rel, "/"), &t.buf)
	if err != nil {
		if !walk.IsGone(err) {
			t.files.skip(d.rel, err)
		}
		return nil
	}
	delete(t.files.skipped, d.rel)
	listed = slices.Clone(listed)
	t.readRules(d, listed)
	t.setRepo(d, slices.ContainsFunc(listed, func(l walk.Entry) bool { return l.Name == gitName && l.Kind == walk.Dir }))
	fresh := d.entries == nil
	if fresh {
		d.entries = make(map[string]*entry, len(listed))
	}
	here := make(map[string]bool, len(listed))
	for _, l := range listed {
		if here[l.Name] = true; t.stopped() {
			return nil
		}
		if d.ignored && l.Kind != walk.Dir {
			if fresh && why == scanAfter {
				t.events.ignoredFile()
			}
			t.lookIgnored(d.rel+l.Name, why)
			continue
		}
		if sub := t.look(d, l.Name, why); sub != nil {
			subs = append(subs, sub)
		}
	}
	for name := range maps.Clone(d.entries) {
		if !here[name] {
			t.remove(d, name, State{}, true)
		}
	}
	d.first = scanAfter
	if fresh || why != scanAfter {
		t.saved.listed(d, why == scanBase)
	}
	return subs
}

// watch adds a watch on a directory. One that cannot be watched is listed again for each command.
func (t *Tracker) watch(d *dir, fd int) {
	if t.feed == nil || d.ignored && t.feed.Watching() >= maxIgnoredWatches { // its changes are not counted
		return
	}
	if t.feed.Watch(&d.watched, d, fd) {
		d.replaced = false
		delete(t.unwatched, d)
	} else {
		t.unwatched[d] = true
	}
}

// maxWatches is how many directories of one root are watched; ignored ones are watched only below maxIgnoredWatches.
// Each takes about 1 KiB of the kernel's memory; Linux allows a user 65,536, or more where there is much memory.
const (
	maxWatches        = 100_000
	maxIgnoredWatches = 10_000
)

// listAll is list for a directory and everything below.
func (t *Tracker) listAll(d *dir) {
	for pending := []*dir{d}; len(pending) > 0 && !t.stopped(); {
		d := pending[len(pending)-1]
		pending = append(pending[:len(pending)-1], t.list(d)...)
	}
}

// compare examines everything that may have changed. It returns false if that took too long: then the next one
// examines everything.
func (t *Tracker) compare(atMost time.Duration) bool {
	t.until, t.late = time.Now().Add(atMost), false
	defer func() { t.until = time.Time{} }()
	touched := map[string]bool{}
	t.compareRounds(touched)
	for name := range touched {
		if t.stopped() {
			break
		}
		t.lookIgnored(name, scanAfter)
	}
	t.match()
	t.again = t.again || t.late
	return !t.late
}

// compareRounds is compare until nothing is left to look at. touched takes the files in ignored directories.
func (t *Tracker) compareRounds(touched map[string]bool) {
	for round := range maxRounds {
		dirty, lost := t.drain(touched)
		if round == 0 {
			t.listUnwatched()
		}
		switch {
		case t.feed == nil || lost:
			t.listKnown(t.top)
		case len(dirty) == 0:
			return
		default:
			t.compareDirs(dirty)
			if t.linked {
				t.linked = false
				t.listKnown(t.top)
			}
		}
		if t.feed == nil {
			return
		}
	}
}

// listUnwatched examines the directories of which no event announces changes.
func (t *Tracker) listUnwatched() {
	for d := range maps.Clone(t.unwatched) {
		for _, sub := range t.list(d) {
			t.listAll(sub)
		}
	}
}

// stopped reports whether a scan must end, because the tracking has ended or the comparison takes too long.
func (t *Tracker) stopped() bool {
	if !t.until.IsZero() && !t.late {
		t.late = time.Now().After(t.until)
	}
	return t.late || t.err != nil
}

// maxRounds bounds the rounds of a comparison: other programs may change files all the time.
const maxRounds = 3

// compareDirs examines names in directories. If ignore files have changed, it then examines everything by the new
// rules.
func (t *Tracker) compareDirs(dirty map[*dir]map[string]bool) {
	for d, names := range dirty {
		for name := range names {
			if d.gone || t.stopped() {
				break
			}
			if sub := t.look(d, name, scanAfter); sub != nil {
				t.listAll(sub)
			}
		}
	}
	for d, names := range dirty {
		if (names[ignore.GitIgnore] || names[gitName]) && !d.gone && !d.ignored {
			t.listKnown(d)
		}
	}
}

// listKnown examines everything in a directory again, but for what the reader of the base has not listed.
func (t *Tracker) listKnown(d *dir) {
	var known func(d *dir)
	known = func(d *dir) {
		if d.entries == nil && d.first == scanBase && t.reading {
			return
		}
		for _, sub := range t.list(d) {
			t.listAll(sub)
		}
		for _, e := range d.entries {
			if e.sub != nil {
				known(e.sub)
			}
		}
	}
	known(d)
}

// look compares the entry of a name with the base. It returns the directory to list, if any.
func (t *Tracker) look(d *dir, name string, why scan) *dir {
	if d.entries == nil {
		return nil
	}
	path := d.rel + name
	info, err := t.files.root.Stat(path)
	switch {
	case walk.IsGone(err):
		t.remove(d, name, State{}, true)
		return nil
	case err != nil:
		if t.cfg.Hidden == nil || !t.cfg.Hidden(t.cfg.Root+"/"+path, walk.Info{}) {
			t.files.skip(path, err)
		}
		return nil
	case t.cfg.Hidden != nil && t.cfg.Hidden(t.cfg.Root+"/"+path, info):
		t.remove(d, name, State{}, false)
		return nil
	}
	if name == gitName && info.Kind == walk.Dir {
		t.remove(d, name, State{}, true) // it was a file
		return nil
	}
	ignored := d.ignored || !d.entries[name].covered() && d.chain.Match(path, info.Kind == walk.Dir) == ignore.Ignored
	if info.Kind == walk.Dir {
		return t.lookDir(d, name, info, ignored, why)
	}
	if d.ignored {
		t.remove(d, name, State{}, false)
		return nil
	}
	t.lookFile(d, name, info, ignored, why)
	return nil
}

// covered reports whether the entry was kept because it was not ignored. It stays covered when ignore files change:
// else its content would be lost with the next change.
func (e *entry) covered() bool {
	return e != nil && !e.ignored && (e.sub == nil || !e.sub.ignored)
}

// lookDir returns a directory that is new, or may have been replaced.
func (t *Tracker) lookDir(d *dir, name string, info walk.Info, ignored bool, why scan) *dir {
	e, path := d.entries[name], d.rel+name
	if top := t.files.root.ID(); top.Device != 0 && info.Device != top.Device {
		t.files.skip(path+"/", errors.New("another file system is mounted there"))
		return nil
	}
	state := State{Kind: Dir, Mode: modeOf(info)}
	same := e != nil && e.sub != nil && e.stamp.Inode == info.Inode && e.stamp.Device == info.Device
	if same && e.sub.ignored == ignored {
		switch {
		case e.state == state:
		case ignored:
			t.events.ignoredFile()
		default:
			t.record(path, e, state)
		}
		if e.state != state {
			e.state = state
			t.saved.put(path, e, false)
		}
		e.stamp = info.Stamp
		if e.sub.replaced {
			e.sub.replaced = false
			return e.sub
		}
		return nil
	}
	t.remove(d, name, state, true)
	if e != nil && t.moves.newDirs[path] == e { // it is as new as the rules by which it is not ignored
		delete(t.moves.newDirs, path)
		delete(t.moves.goneDirs, path)
		e = nil
	}
	sub := &dir{rel: path + "/", up: d, chain: d.chain, ignored: ignored, first: why}
	if e != nil && e.sub != nil && e.sub.ignored {
		sub.first = scanRules
	}
	d.entries[name] = &entry{state: state, stamp: info.Stamp, sub: sub, scanned: scanned(&t.seq, why)}
	t.saved.put(path, d.entries[name], why == scanBase)
	if why == scanAfter && !ignored {
		t.moves.madeDirs[idOf(d.entries[name])] = true
	}
	if why == scanAfter && e == nil {
		if ignored {
			t.moves.newDirs[path] = d.entries[name]
		} else {
			t.record(path, nil, state)
		}
	}
	return sub
}

// scanned returns a number for an entry that is read for the base, 0 for later ones.
func scanned(seq *atomic.Uint64, why scan) uint64 {
	if why == scanBase {
		return seq.Add(1)
	}
	return 0
}

// lookFile compares a file, a link or a special file.
func (t *Tracker) lookFile(d *dir, name string, info walk.Info, ignored bool, why scan) {
	was, path := d.entries[name], d.rel+name
	same := was != nil && was.sub == nil && was.stamp == info.Stamp
	if same && was.ignored == ignored && info.Status+clockTick < was.looked {
		return
	}
	if was == nil || was.sub != nil {
		t.count++
		if why == scanBase {
			t.read.Add(1)
		}
		if t.count > 2*t.cfg.MaxFiles { // in one directory, or by commands
			t.fail(fmt.Errorf("%w: it has more than %d files", ErrTooLarge, 2*t.cfg.MaxFiles))
			return
		}
	}
	if (info.Links > 1 || hasNames(was)) && why == scanAfter { // no event announces changes under its other names
		t.linked = true
	}
	e := t.files.read(path, info, ignored)
	e.ignored, e.scanned = ignored, scanned(&t.seq, why)
	if was != nil && was.sub != nil {
		t.remove(d, name, e.state, true)
	}
	d.entries[name] = e
	t.saved.put(path, e, why == scanBase)
	t.links.put(path, was, e, t.events.marked())
	if why == scanAfter && (was == nil || idOf(was) != idOf(e)) {
		t.moves.note(t.moves.made, path, e)
		if was != nil {
			t.moves.note(t.moves.gone, path, was)
		}
	}
	switch {
	case was != nil && was.sub != nil && !was.sub.ignored: // recorded with the removal
	case same && was.state.Sum == Sum{}: // it could be read only now
	case was == nil && why == scanAfter || was != nil && (!was.state.same(e.state) || relinked(was, e)):
		t.record(path, was, e.state)
	case was != nil:
		t.files.contents.release(was.source)
	}
}

// remove drops the entry of a name, with everything below it. If told is set, that is recorded as a change; after is
// the new state.
func (t *Tracker) remove(d *dir, name string, after State, told bool) {
	e := d.entries[name]
	if e == nil {
		return
	}
	if e.sub != nil {
		if told && e.sub.repo != (repo{}) {
			t.loseRepo(e.sub.rel, e.sub.repo)
		}
		for _, below := range slices.Collect(maps.Keys(e.sub.entries)) {
			t.remove(e.sub, below, State{}, told)
		}
		t.feed.Unwatch(&e.sub.watched)
		e.sub.gone = true
		t.dropRules(e.sub)
		delete(t.unwatched, e.sub)
	} else {
		t.count--
		t.links.gone(d.rel+name, e, t.events.marked())
		t.linked = t.linked || hasNames(e) // it may have changed before
	}
	delete(d.entries, name)
	t.saved.gone(d.rel + name)
	delete(t.files.skipped, d.rel+name)
	delete(t.files.skipped, d.rel+name+"/")
	ignored := e.sub != nil && e.sub.ignored
	switch {
	case !told:
	case ignored:
		t.moves.goneDirs[d.rel+name] = e
	case e.sub != nil:
		t.moves.leftDirs[idOf(e)] = true
	default:
		t.moves.note(t.moves.gone, d.rel+name, e)
	}
	if told && !ignored && !e.state.same(after) {
		t.record(d.rel+name, e, after)
		return
	}
	t.files.contents.release(e.source)
}

// fail ends the tracking.
func (t *Tracker) fail(err error) {
	t.err = err
	t.pending, t.top.entries = nil, nil
	_ = t.feed.Close()
	t.files.contents.reset()
}

func modeOf(info walk.Info) fs.FileMode {
	return info.Mode & (fs.ModePerm | fs.ModeSetuid | fs.ModeSetgid | fs.ModeSticky)
}
