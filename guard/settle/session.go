package settle

import (
	"errors"
	"fmt"
	"iter"
	"os"
	"sync"
	"time"
)

// A Program is what a [Session] is told of a program.
type Program struct {
	// Keep makes the changes of the program stay, as for [Keeper.Begin].
	Keep bool
	// IsAgent says that a person works with the program directly, and that it has no calls. What it changes stays
	// until it ends, as with a task.
	IsAgent bool
	// Quiet reports whether each change that the session was told of has been made. Nil: it is told of none.
	Quiet func() bool
	// Wake is called before the program may change files, and Rest once it does not any more, or has ended; or nil. Rest
	// returns notes.
	Wake func()
	Rest func(ended bool) (notes []string)
	// Log gets notes while the program runs.
	Log func(notes []string)
}

// A Session is a program that runs for as long as a person works, such as a server. The program counts as a command
// during its calls, and while it changes files by itself. Changes at other times are a person's. The same holds for
// an agent, except that its changes are settled when it ends.
//
// If the system does not report its changes, the program counts as a task for all its life, and its calls are
// commands as well.
type Session struct {
	k    *Keeper
	dirs []string
	Program

	mu     sync.Mutex
	active bool     // else what changes is a person's
	now    *Command // while active; nil for an agent
	task   *Command // of an agent, or of a program whose changes are not reported
	calls  int
	begun  time.Time // when it became active
	last   time.Time // of a change or call
	late   bool      // now counts as a task
	timer  *time.Timer
	closed bool
}

// settleAfter is how long a session must change nothing before its changes are settled: programs often make several
// changes.
const settleAfter = 200 * time.Millisecond

// lateAfter is how long a session changes files by itself until it counts as a task. Then its changes are told, and
// the changes of commands are settled without waiting for it.
const lateAfter = 10 * time.Second

// Session begins a session in some directories. The caller calls [Session.Wrote] before each change that the program
// makes, unless there is no Quiet.
func (k *Keeper) Session(dirs []string, program Program) (*Session, error) {
	s := &Session{k: k, dirs: dirs, Program: program}
	s.timer = time.AfterFunc(time.Hour, s.rest)
	s.timer.Stop()
	if s.Wake == nil {
		s.Wake, s.Rest = func() {}, func(bool) []string { return nil }
	}
	for _, dir := range dirs {
		if err := leases(dir); err != nil && s.Quiet != nil {
			s.Log([]string{fmt.Sprintf(
				"Changes of the program cannot be told from those of a person until it has ended: %v.", err)})
			s.Quiet = nil
		}
	}
	if s.Quiet != nil && !s.IsAgent {
		return s, nil
	}
	if s.Quiet == nil {
		s.Wake() // for all its life
	}
	task, notes, err := k.Begin(dirs, s.Keep)
	if err != nil {
		if s.Log(notes); s.Quiet == nil {
			s.Log(s.Rest(true))
		}
		return nil, err
	}
	s.task = task
	notes = append(notes, task.Background()...)
	if s.Quiet != nil {
		notes = append(notes, s.sleep()...)
	}
	s.Log(notes)
	return s, nil
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
		if s.calls--; s.calls == 0 && s.active && !s.settle() {
			s.timer.Reset(settleAfter)
		}
	}, nil
}

// Wrote is called before the program may change a file. After an error it must not.
func (s *Session) Wrote() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.Quiet == nil {
		return nil
	}
	return s.open()
}

// open makes the session active. The caller holds the lock.
func (s *Session) open() (err error) {
	if s.last = time.Now(); s.active || s.closed {
		return nil
	}
	s.Wake()
	var notes []string
	if s.IsAgent {
		notes, err = s.wake()
	} else {
		s.now, notes, err = s.k.Begin(s.dirs, s.Keep)
	}
	s.Log(notes)
	if err != nil {
		s.Log(s.Rest(false))
		return err
	}
	s.active, s.begun, s.late = true, s.last, false
	s.timer.Reset(settleAfter)
	return nil
}

// rest settles what a session has changed that has been idle for a while.
func (s *Session) rest() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.active || s.calls > 0 {
		return
	}
	if s.now != nil && !s.late && time.Since(s.begun) > lateAfter {
		s.late = true
		s.Log(s.now.Background())
	}
	if wait := settleAfter - time.Since(s.last); wait > 0 {
		s.timer.Reset(wait)
	} else if !s.settle() {
		s.timer.Reset(settleAfter)
	}
}

// settle ends the time in which the session is active, unless a change may be under way. The caller holds the lock.
func (s *Session) settle() bool {
	if s.Quiet != nil && !s.Quiet() {
		return false
	}
	s.Log(s.Rest(false))
	if s.IsAgent {
		s.Log(s.sleep())
	} else {
		for p := range s.places() {
			p.cutOff()
		}
		s.Log(s.now.End())
		s.now = nil
	}
	s.active = false
	return true
}

// End says that everything that the program has started has ended. It returns notes.
func (s *Session) End() (notes []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil
	}
	s.closed = true
	s.timer.Stop()
	if s.active {
		notes = s.Rest(true)
	}
	if s.Quiet == nil {
		notes = append(notes, s.Rest(true)...)
	}
	if s.active && s.now != nil {
		notes = append(notes, s.now.End()...)
	}
	if !s.active && s.IsAgent && s.Quiet != nil {
		more, _ := s.wake() // a file that the agent has not changed is a person's
		notes = append(notes, more...)
	}
	if s.task != nil {
		notes = append(notes, s.task.End()...)
	}
	s.active = false
	return notes
}

// places yields the places of the directories.
func (s *Session) places() iter.Seq[*place] {
	return func(yield func(*place) bool) {
		for _, dir := range s.dirs {
			if p, err := s.k.place(dir); err == nil && !yield(p) {
				return
			}
		}
	}
}

// sleep says that the task of an agent changes nothing until wake is called.
func (s *Session) sleep() (notes []string) {
	for p := range s.places() {
		notes = append(notes, p.sleep()...)
	}
	return notes
}

func (s *Session) wake() (notes []string, err error) {
	for p := range s.places() {
		more, failed := p.wake()
		notes, err = append(notes, more...), errors.Join(err, failed)
	}
	return notes, err
}

// openWait is how long a program of a person may have a file open for writing. Tests change it.
var openWait = 100 * time.Millisecond

// openPause is the time between two looks whether a file is still open.
const openPause = 5 * time.Millisecond

// cutOff replaces files by copies if the program of a session has them open for writing: through the open file it
// could change them between its calls, and after a person was asked about them.
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

// StaysOpen reports whether a file is still open for writing at a time. If until is zero, that is openWait from the
// first look.
func StaysOpen(dir *os.Root, name string, until time.Time) bool {
	for openForWriting(dir, name) {
		if until.IsZero() {
			until = time.Now().Add(openWait)
		}
		if !time.Now().Before(until) {
			return true
		}
		time.Sleep(openPause)
	}
	return false
}

// isOpen reports whether the file at a name is still open for writing at a time.
func (p *place) isOpen(rel name, until time.Time) (open bool) {
	err := inDir(p.path(rel), func(f side) error {
		open = StaysOpen(f.dir, f.name, until)
		return nil
	})
	return open || err != nil && !missing(err)
}

func (p *place) cutOffAt(f side, until time.Time) error {
	for range copyTries {
		if !StaysOpen(f.dir, f.name, until) {
			return nil
		}
		was, err := f.dir.Lstat(f.name)
		if err != nil || heldOpenOutside(f.dir, f.name, was) {
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

// swapAny exchanges a file with the one in a slot, whatever the content of the file is.
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
