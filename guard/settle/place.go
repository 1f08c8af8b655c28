package settle

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/toolhost/toolhost/guard/statedir"
)

// A place is a directory that commands write.
type place struct {
	dir   string // without links
	store *store
	marks func(dir string) ([]string, uint64)

	temporary bool // the state directory cannot be used: the store is removed at the end

	mu     sync.Mutex // held while files are exchanged
	users  int        // commands of this host that run
	calls  int        // those of them that are not tasks
	asleep int        // tasks that change nothing until [place.wake]
	keep   bool       // changes stay: all these commands run in a mode without questions
	rec    record
	memory memory
	last   scan
	listed uint64            // the number that marks returned last
	stuck  map[name]bool     // names that could not be settled: what stands there is not known
	holds  atomic.Int32      // how many files are held; read without mu
	told   map[name]identity // changes that were named while other commands run
	notes  []string          // for the next command that ends
	fresh  []name            // held by the end of a command, and not before

	// ofTasks are names that had changed or were held inside when only tasks ran, also those of other hosts. They stay
	// until the last has ended.
	ofTasks map[name]bool
}

// note adds a note for the reader of a result.
func (p *place) note(format string, args ...any) {
	p.notes = append(p.notes, fmt.Sprintf(format, args...))
}

func (p *place) takeNotes() []string {
	notes := p.notes
	p.notes = nil
	return notes
}

// errBusy reports that another process works on the record of a directory.
var errBusy = errors.New("another process settles protected files of the workspace: repeat the call")

// beginTries is how often a lock is tried that another process holds for milliseconds.
const (
	beginTries = 50
	beginPause = 10 * time.Millisecond
)

func (p *place) begin(keep bool) ([]string, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.calls > 0 {
		p.users, p.calls, p.keep = p.users+1, p.calls+1, p.keep && keep
		return p.takeNotes(), nil
	}
	err := p.first(keep)
	if broken, ok := errors.AsType[*stateError](err); ok && !p.temporary {
		if err = p.useTemporary(broken.err); err == nil {
			err = p.first(keep)
		}
	}
	return p.takeNotes(), err
}

// first begins the first call of this host.
func (p *place) first(keep bool) error {
	for range beginTries {
		begin := p.open
		if alone := p.store.lockAlone(); !alone {
			if err := statedir.ShareLock(p.store.lock); err != nil {
				return &stateError{err}
			}
			if !p.store.running() { // meanwhile the other process has ended a command, or a person has answered
				statedir.Unlock(p.store.lock)
				time.Sleep(beginPause)
				continue
			}
			begin = p.readFirst
		}
		if err := begin(); err != nil {
			statedir.Unlock(p.store.lock)
			return err
		}
		_ = statedir.ShareLock(p.store.lock) // it was locked before
		p.start(keep)
		return nil
	}
	return errBusy
}

// A stateError says that the state directory cannot be used.
type stateError struct{ err error }

func (e *stateError) Error() string {
	return "the state of protected files cannot be used: " + e.err.Error()
}

// useTemporary has a temporary directory take the place of the state directory until the end of this host.
func (p *place) useTemporary(why error) error {
	dir, err := os.MkdirTemp("", "toolhost-settle-")
	if err != nil {
		return fmt.Errorf("protected files of %s cannot be settled: %w", p.dir, errors.Join(why, err))
	}
	s, err := openStore(dir)
	if err != nil {
		return fmt.Errorf("protected files of %s cannot be settled: %w", p.dir, errors.Join(why, err))
	}
	if p.store != nil {
		_ = p.store.close()
	}
	p.store, p.temporary, p.memory.read = s, true, 0
	p.note("The state of protected files cannot be used (%v). Until this host ends, what commands write to them is held "+
		"in %s.",
		why, dir)
	for rel, was := range p.rec.Files { // its copy is lost
		was.Copy = ""
		p.rec.Files[rel] = was
	}
	clear(p.rec.Held)
	return nil
}

// start counts the first call.
func (p *place) start(keep bool) {
	p.keep = keep && (p.users == 0 || p.keep)
	p.users, p.calls = p.users+1, 1
}

// read reads what another host may have written.
func (p *place) read() error {
	err := errors.Join(p.store.load(&p.rec), p.store.remember(&p.memory))
	p.holds.Store(int32(len(p.rec.Held)))
	return err
}

// readFirst reads the record for a first call. While tasks of this host run, this host has the record in memory too.
func (p *place) readFirst() error {
	if p.asleep == 0 {
		p.ofTasks = nil
	}
	err := p.read()
	switch {
	case err == nil:
	case p.users == 0:
		return &stateError{err}
	default:
		p.noteUnread(err)
	}
	return nil
}

func (p *place) noteUnread(err error) {
	p.note("What other hosts recorded of protected files cannot be read: %v.", err)
}

// open prepares the place for the first call: what a killed host has left is settled, what has changed since the
// last command was done by other programs, and held files are exchanged in. While tasks run, what has changed is
// theirs.
func (p *place) open() error {
	if err := p.readFirst(); err != nil {
		return err
	}
	if p.tasksRun() {
		return p.joinTasks()
	}
	if p.store.running() && !p.store.mixed() && p.readClaims() { // a host was killed whose tasks slept
		if err := p.adopt(); err != nil {
			return err
		}
	}
	p.ofTasks = nil
	if err := p.store.unclaim(); err != nil {
		return &stateError{err}
	}
	if p.store.running() || p.anyIn() {
		p.keep = false
		p.settle()
	}
	if err := p.adopt(); err != nil {
		return err
	}
	if err := p.store.mark(runningAt, "11"); err != nil {
		return &stateError{err}
	}
	p.enter()
	return nil
}

// end ends a command, which ran in the background if task is set. It returns notes, and the files that are held now and
// were not before.
func (p *place) end(task bool) (notes []string, fresh []File) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.users--
	if !task {
		p.calls--
	}
	if p.users == p.calls {
		statedir.Unlock(p.store.tasks)
	}
	if p.calls > 0 || task && p.users > 0 || !p.store.lockAlone() {
		p.tell()
	} else {
		p.endLast(task)
	}
	if p.calls == 0 {
		statedir.Unlock(p.store.lock)
	}
	p.holds.Store(int32(len(p.rec.Held)))
	for _, rel := range p.fresh {
		if h := p.rec.Held[rel]; h != nil {
			fresh = append(fresh, p.heldFile(rel, h))
		}
	}
	p.fresh = nil
	return p.takeNotes(), fresh
}

// endLast settles the place after the last call, or after the last task of this host. No call of any host runs.
func (p *place) endLast(task bool) {
	if err := p.read(); err != nil {
		p.noteUnread(err)
	}
	if p.tasksRun() {
		if !task {
			p.leaveTasks()
		}
		p.tell()
		return
	}
	p.told, p.ofTasks = nil, nil
	if p.settle(); len(p.stuck) == 0 {
		_ = p.store.mark(runningAt, "00") // if this fails, the next command settles once more
	}
}

// adopt takes what stands at protected names for known, because no command has run since it was settled. Names that
// belong to tasks are left out.
func (p *place) adopt() error {
	own := ownOfHome(p.dir)
	changed := !maps.Equal(own, p.rec.Own)
	p.rec.Own = own
	now := p.scan()
	if now.over {
		return fmt.Errorf("%s has more than %d protected files: remove some, or name a smaller workspace",
			p.dir, maxLeaves)
	}
	dirs := now.dirs
	if p.ofTasks != nil { // tasks may have made some
		dirs = maps.Clone(p.rec.Dirs)
	}
	var known []answer
	for _, rel := range namesOf(&p.rec, now) {
		if p.stuck[rel] || p.ofTasks[rel] || p.isUnchanged(rel, now) {
			continue
		}
		for dir := range prefixes(filepath.Dir(string(rel))) {
			if now.dirs[name(dir)] {
				dirs[name(dir)] = true
			}
		}
		id, st, kept, err := p.atWithCopy(rel)
		if err != nil {
			return err
		}
		changed = true
		if h := p.rec.Held[rel]; h != nil && id != h.Former {
			p.dropHeld(rel, h, "was changed by another program meanwhile, whose content stays")
		}
		if id == absent {
			delete(p.rec.Files, rel)
			known = append(known, answer{knownWord, rel, id})
			continue
		}
		next := file{ID: id, Stamp: st, Racy: st.racy()}
		if next.Copy = kept; classOf(rel) == Held && id.isKnowable() && !p.memory.made[rel][id] &&
			!p.memory.known[rel][id] {
			known = append(known, answer{knownWord, rel, id})
		}
		p.rec.Files[rel] = next
	}
	changed = changed || len(dirs) != len(p.rec.Dirs)
	p.rec.Dirs = dirs
	if !changed {
		return nil
	}
	err := errors.Join(p.store.write(&p.memory, known), p.store.save(&p.rec))
	if err = errors.Join(err, p.store.tidy(&p.rec)); err != nil {
		return &stateError{err}
	}
	return nil
}

// copyTries is how often a file is looked at that another program replaces meanwhile.
const copyTries = 10

// atWithCopy returns what stands at a name, and the name of a copy of it.
func (p *place) atWithCopy(rel name) (id identity, st stamp, kept string, err error) {
	until := time.Now().Add(openWait)
	for try := range copyTries {
		if classOf(rel) == Held {
			p.isOpen(rel, until) // an editor may have emptied the file, to write it
		}
		if id, st, err = p.at(rel); err != nil {
			return id, st, "", fmt.Errorf("the protected file %s cannot be read: %w", p.path(rel), err)
		}
		if id == absent || classOf(rel) != Held {
			return id, st, "", nil
		}
		if kept, err = p.copyOf(rel); err != nil && !missing(err) {
			break
		}
		copied, _, _ := identify(p.store.slots, kept)
		again := try+1 < copyTries && time.Now().Before(until) && p.isOpen(rel, time.Now())
		if err == nil && !again && (kept == "" || copied == id || !id.isKnowable()) {
			return id, st, kept, nil
		}
		err = errWritten
	}
	return id, st, "", &stateError{fmt.Errorf("no copy of %s can be made: %w", p.path(rel), err)}
}

// isUnchanged reports whether a name is as it was settled, and has the copy that it needs.
func (p *place) isUnchanged(rel name, now scan) bool {
	was := p.rec.Files[rel]
	st, is := now.leaves[rel]
	return was.Stamp == st && !was.Racy && (was.Copy != "" || !is || !was.ID.isKnowable() || classOf(rel) == Prompt)
}

func classOf(rel name) Class { return ClassOf(filepath.ToSlash(string(rel))) }

// copyOf makes a copy of a file, in case a command writes into it. It makes none of a pipe, a socket, a device or an
// unreadable file, and none of the state of a rebase: an earlier state would repeat steps.
func (p *place) copyOf(rel name) (string, error) {
	if isSequencer(rel) {
		return "", nil
	}
	to := p.store.next(&p.rec, copyLetter)
	err := inDir(p.path(rel), func(f side) error { return copyAs(f.dir, f.name, p.store.slots, to) })
	if errors.Is(err, errOdd) || errors.Is(err, fs.ErrPermission) {
		return "", nil
	}
	return to, err
}

// dropHeld ends the hold of a file and keeps the file in its slot among the dropped ones.
func (p *place) dropHeld(rel name, h *held, why string) {
	delete(p.rec.Held, rel)
	kept, err := p.store.drop(h.Slot, rel)
	if err != nil && !missing(err) {
		p.note("%s %s; what a command had put there is in %s.", name(p.path(rel)), why,
			filepath.Join(p.store.dir, h.Slot))
	} else if err == nil {
		p.note("%s %s; what a command had put there is in %s.", name(p.path(rel)), why, kept)
	}
}

// isMarked reports whether a path lies at or below a protected name.
func isMarked(rel string) bool {
	return slices.ContainsFunc(strings.Split(rel, string(filepath.Separator)), IsMark)
}

// renew records what stands at a name and has no copy yet. A write through a mapping changes the times of a file only
// the first time.
func (p *place) renew(rel name) error {
	open := p.isOpen(rel, time.Now())
	id, st, err := p.at(rel)
	if err != nil {
		return err
	}
	if id == absent {
		delete(p.rec.Files, rel)
		return nil
	}
	next := file{ID: id, Stamp: st, Racy: open || st.racy()}
	if was := p.rec.Files[rel]; was.ID == id {
		next.Copy = was.Copy
	}
	p.rec.Files[rel] = next
	return nil
}
