package history

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"
)

// besides is the size of what a file held, in bytes, from which both contents are hashed concurrently.
const besides = 64 << 10

// An Entry is a change that has begun. The caller ends it, with Done or Failed, once it knows; one that is never
// ended is settled by the next process. A nil Entry stands for a change that could not be journalled and is made all the same: ending it
// does nothing.
type Entry struct {
	store   *Store   // nil if nothing is journalled
	journal *journal // of the principal
	change  Change
	lost    bool // what was there before is not kept

	mu    sync.Mutex
	ended bool
}

// Begin journals a change that is about to be made; the caller touches the file only after it has returned, and holds the lock of the
// file from before it read it until the change has ended. before is what the file holds, nil if it does not exist; after is what it will
// hold, in any number of pieces. A change that removes the file says so by c.Deleted: after is not looked at then.
// Of c, Principal, Scope, Tool, Path and UndoOf are recorded, and Before, if the caller knows what stands for before; the rest is
// filled in.
//
// After an error nothing is journalled, and nothing is left of the attempt. It is then up to the caller whether the change is made all
// the same; who asked for it must learn that it cannot be undone.
func (s *Store) Begin(c Change, before []byte, after ...[]byte) (*Entry, error) {
	if s.cfg.Dir == "" {
		return &Entry{}, nil
	}
	if err := c.check(); err != nil {
		return nil, err
	}
	e, err := s.entry(c, before, after)
	if err != nil {
		return nil, fmt.Errorf("the change of %s could not be journalled, so there would be no undo: %w", c.Path, err)
	}
	return e, nil
}

func (c Change) check() error {
	switch {
	case c.Principal == "" || strings.ContainsRune(c.Principal, 0):
		return fmt.Errorf("a change by the principal %q cannot be journalled", c.Principal)
	case !filepath.IsAbs(c.Path):
		return fmt.Errorf("a change of %q cannot be journalled: the path must be absolute", c.Path)
	}
	return nil
}

func (s *Store) entry(c Change, before []byte, after [][]byte) (*Entry, error) {
	if err := s.enter(); err != nil {
		return nil, err
	}
	e, err := s.record(c, before, after)
	for isFull(err) && s.worthwhile(int64(len(before))+sizeOf(after)) && s.Shrink() {
		e, err = s.record(c, before, after)
	}
	if err != nil {
		s.exit()
		return nil, err
	}
	return e, nil
}

// sizeOf is the size of a content in pieces, in bytes.
func sizeOf(content [][]byte) (size int64) {
	for _, piece := range content {
		size += int64(len(piece))
	}
	return size
}

// enter counts an entry that has begun, exit one that has ended.
func (s *Store) enter() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return errClosed
	}
	s.open++
	return nil
}

func (s *Store) exit() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.open--
}

func (s *Store) record(c Change, before []byte, after [][]byte) (*Entry, error) {
	j := s.journal(journalName(c.Principal))
	if err := os.MkdirAll(j.dir, ownerDir); err != nil {
		return nil, err
	}
	c.Created = before == nil
	if c.Created || c.Before.Size != int64(len(before)) {
		c.Before = Blob{}
	}
	contents, err := j.stageBoth(before, c.Before, after, c.Created, c.Deleted, s.cfg)
	if err == nil {
		c.Path = filepath.Clean(c.Path)
		c.Before, c.After = contents[0].blob, contents[1].blob
		c.ID, c.Time, c.State, c.UndoneBy = shortID(), time.Now().UTC().Round(0), Pending, ""
		c.UndoOf = slices.Clone(c.UndoOf)
		err = j.locked(func() error { return j.commit(&contents, record{Change: c, owner: s.owner.name}, s.cfg.Sync) })
	}
	if err != nil {
		j.discard(&contents[1]) // the last first
		j.discard(&contents[0])
		return nil, err
	}
	s.wrote(j)
	return &Entry{store: s, journal: j, change: c, lost: !c.Created && !contents[0].keep}, nil
}

// stageBoth prepares what there is of two contents. They are hashed concurrently if they are large; the old one goes to a pack
// first, where the change before will have put it.
func (j *journal) stageBoth(before []byte, known Blob, after [][]byte, created, deleted bool, cfg Config) (both [2]staged, err error) {
	if !created {
		both[0].content, both[0].blob = [][]byte{before}, known
	}
	if !deleted {
		both[1].content = after
	}
	var beside sync.WaitGroup
	if !created && len(before) >= besides {
		beside.Go(both[0].name)
	} else if !created {
		both[0].name()
	}
	if !deleted {
		both[1].name()
	}
	beside.Wait()
	for i := range both {
		if st := &both[i]; !st.blob.IsZero() && st.blob.Size <= cfg.MaxFile {
			st.keep = true
			err = errors.Join(err, j.put(st, cfg.Sync))
		}
	}
	return both, err
}

// commit adds the line of a change, which refers to the contents staged for it. Callers hold the lock.
func (j *journal) commit(contents *[2]staged, r record, sync bool) error {
	for i := range contents {
		if err := j.settle(&contents[i], sync); err != nil {
			return err
		}
		r.at[i] = contents[i].at
	}
	l, err := r.encode()
	if err != nil {
		return err
	}
	if err := j.append(l, sync); err != nil {
		return err
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	j.since++
	for _, st := range contents {
		if st.made {
			j.grown += st.blob.Size
		}
	}
	return nil
}

// Change returns what was journalled; its ID is empty if nothing was.
func (e *Entry) Change() Change {
	if e == nil {
		return Change{}
	}
	return e.change
}

// Undoable returns why the change cannot be undone, or nil if it can be.
func (e *Entry) Undoable() error {
	switch {
	case e == nil:
		return errors.New("it could not be journalled")
	case e.store == nil:
		return errors.New("no history is kept")
	case e.lost:
		return fmt.Errorf("its %d bytes are more than the %d that the history keeps of a file", e.change.Before.Size, e.store.cfg.MaxFile)
	}
	return nil
}

// Done records that the change was made. An error does not unmake it: its end is recorded with the next change, or found out later by a
// look at the file.
func (e *Entry) Done() error { return e.end(Done) }

// Failed records that the change was not made: the file is as it was.
func (e *Entry) Failed() error { return e.end(Failed) }

// end records how the change ended, a moment later unless the journal is to survive a power loss. Only the first call counts.
func (e *Entry) end(state State) error {
	if e == nil || e.store == nil {
		return nil
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.ended {
		return nil
	}
	e.ended = true
	l, err := recordLine{ID: e.change.ID, State: state}.encode()
	if err != nil {
		return err
	}
	e.journal.queue(l)
	e.store.exit()
	if e.store.flushSoon(e.journal) {
		return nil
	}
	if err := e.store.flush(e.journal); err != nil {
		return fmt.Errorf("the end of the change of %s could not be journalled: %w", e.change.Path, err)
	}
	return nil
}
