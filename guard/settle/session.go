package settle

import (
	"errors"
	"fmt"
	"os"
	"sync"
	"time"
)

// A Session is a program that runs for as long as a person works, such as a server. It is a command during its calls,
// and whenever it changes files by itself, for as long as it does. What changes between is a person's.
//
// Where the system does not tell of its changes, all its life is that of a task, and its calls are commands besides.
type Session struct {
	k     *Keeper
	dirs  []string
	keep  bool
	quiet func() bool // reports whether each change that it was told of has been made; nil: it is told of none
	log   func(notes []string)

	mu     sync.Mutex
	now    *Command // nil: what changes is a person's
	task   *Command // where it is told of no changes
	calls  int
	begun  time.Time // when now began
	last   time.Time // of a change or call
	late   bool      // now counts as a task
	timer  *time.Timer
	closed bool
}

// settleAfter is how long a session changes nothing until what it has changed is settled: it often makes several changes.
const settleAfter = 200 * time.Millisecond

// lateAfter is how long a session changes files by itself until it counts as a task: what it has changed is told then,
// and the changes of commands are settled without waiting for it.
const lateAfter = 10 * time.Second

// Session begins a session in some directories. The caller calls [Session.Wrote] before each change that the program
// makes, and quiet reports whether these changes have been made; a nil quiet says that Wrote is not called. log gets
// notes.
func (k *Keeper) Session(dirs []string, keep bool, quiet func() bool, log func(notes []string)) (*Session, error) {
	s := &Session{k: k, dirs: dirs, keep: keep, quiet: quiet, log: log}
	s.timer = time.AfterFunc(time.Hour, s.rest)
	s.timer.Stop()
	var why []string
	for _, dir := range dirs {
		if err := leases(dir); err != nil && quiet != nil {
			why = append(why, fmt.Sprintf("A server is settled when it has ended: %v.", err))
		}
	}
	if len(why) > 0 {
		log(why)
		s.quiet = nil
	}
	if s.quiet != nil {
		return s, nil
	}
	task, notes, err := k.Begin(dirs, keep)
	if s.task = task; err == nil {
		notes = append(notes, task.Background()...)
	}
	log(notes)
	return s, err
}

// Enter begins a call. The function that it returns ends it.
func (s *Session) Enter() (leave func(), err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.open(); err != nil {
		return func() {}, err
	}
	s.calls++
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.calls--; s.calls == 0 && s.now != nil && !s.settle() {
			s.timer.Reset(settleAfter)
		}
	}, nil
}

// Wrote is called before the program may change a file. After an error it must not.
func (s *Session) Wrote() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.quiet == nil {
		return nil
	}
	return s.open()
}

// open makes the session a command, if it is none. The caller holds the lock.
func (s *Session) open() error {
	if s.last = time.Now(); s.now != nil || s.closed {
		return nil
	}
	c, notes, err := s.k.Begin(s.dirs, s.keep)
	s.log(notes)
	if err != nil {
		return err
	}
	s.now, s.begun, s.late = c, s.last, false
	s.timer.Reset(settleAfter)
	return nil
}

// rest settles what a session has changed that has been idle for a while.
func (s *Session) rest() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.now == nil || s.calls > 0 {
		return
	}
	if !s.late && time.Since(s.begun) > lateAfter {
		s.late = true
		s.log(s.now.Background())
	}
	if wait := settleAfter - time.Since(s.last); wait > 0 {
		s.timer.Reset(wait)
	} else if !s.settle() {
		s.timer.Reset(settleAfter)
	}
}

// settle ends the command, unless a change may be under way. The caller holds the lock.
func (s *Session) settle() bool {
	if s.quiet != nil && !s.quiet() {
		return false
	}
	for _, dir := range s.dirs {
		if p, err := s.k.place(dir); err == nil {
			p.cutOff()
		}
	}
	s.log(s.now.End())
	s.now = nil
	return true
}

// End says that everything that the program has started has ended.
func (s *Session) End() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	s.timer.Stop()
	if s.now != nil {
		s.log(s.now.End())
		s.now = nil
	}
	if s.task != nil {
		s.log(s.task.End())
	}
}

// openWait is how long a program of a person may have a file open for writing.
const openWait = 100 * time.Millisecond

// cutOff puts copies in the place of files that the program of a session has open for writing: it could change them
// between its calls, and after a person was asked about them.
func (p *place) cutOff() {
	p.mu.Lock()
	defer p.mu.Unlock()
	until := time.Now().Add(openWait)
	for rel, st := range p.scan().leaves {
		if classOf(rel) != Held || !st.Mode.IsRegular() {
			continue
		}
		if err := inDir(p.path(rel), func(f side) error { return p.cutOffAt(f, until) }); err != nil && !missing(err) {
			p.note("%s is open for writing, and could not be replaced by a copy: %v.", name(p.path(rel)), err)
		}
	}
}

func (p *place) cutOffAt(f side, until time.Time) error {
	for openForWriting(f.dir, f.name) && time.Now().Before(until) {
		time.Sleep(openWait / 20)
	}
	for range copyTries {
		if !openForWriting(f.dir, f.name) {
			return nil
		}
		was, err := f.dir.Lstat(f.name)
		if err != nil || heldOpenOutside(was) {
			return err
		}
		slot := side{p.store.slots, p.store.next(&p.rec, copyLetter)}
		if err := copyAs(f.dir, f.name, slot.dir, slot.name); err != nil {
			return err
		}
		if err := swapAny(f, slot); err != nil {
			return errors.Join(err, slot.dir.Remove(slot.name))
		}
		info, err := slot.dir.Lstat(slot.name)
		if err == nil && !os.SameFile(was, info) { // another program has just replaced it
			err = swapAny(f, slot)
		}
		if err = errors.Join(err, slot.dir.Remove(slot.name)); err != nil {
			return err
		}
	}
	return errWritten
}

// swapAny exchanges a file with the one in a slot, whatever its content is by now.
func swapAny(f, slot side) error {
	info, err := f.dir.Lstat(f.name)
	if err != nil {
		return err
	}
	if err := exchange(f, slot); !needsCopy(err) {
		return err
	}
	return swap(f, slot, stampOf(info))
}
