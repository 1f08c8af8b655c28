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

// besides is the size of what a file held, in bytes, from which both contents are hashed and written beside each other.
const besides = 64 << 10

// An Entry is a change that has begun. The caller ends it, with Done or Failed, once it knows. A nil Entry stands for a change that could
// not be journalled and is made all the same: ending it does nothing.
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
// Of c, Principal, Scope, Tool, Path and UndoOf are recorded; the rest is filled in.
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
	e, err := s.begin(c, before, after)
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

func (s *Store) begin(c Change, before []byte, after [][]byte) (*Entry, error) {
	if err := s.enter(); err != nil {
		return nil, err
	}
	e, err := s.record(c, before, after)
	if err != nil {
		s.exit()
		return nil, err
	}
	return e, nil
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
	if err := os.MkdirAll(filepath.Join(j.dir, blobsName), ownerDir); err != nil {
		return nil, err
	}
	c.Created = before == nil
	contents, err := j.stageBoth(before, after, c.Created, c.Deleted, s.cfg)
	defer func() {
		for i := range contents {
			contents[i].discard()
		}
	}()
	if err != nil {
		return nil, err
	}
	c.Path = filepath.Clean(c.Path)
	c.Before, c.After = contents[0].blob, contents[1].blob
	c.ID, c.Time, c.State, c.UndoneBy = shortID(), time.Now().UTC().Round(0), Pending, ""
	c.UndoOf = slices.Clone(c.UndoOf)
	l, err := record{c, s.owner.name}.encode()
	if err != nil {
		return nil, err
	}
	if err := j.locked(func() error { return j.commit(contents[:], l, s.cfg.Sync) }); err != nil {
		return nil, err
	}
	return &Entry{store: s, journal: j, change: c, lost: !c.Created && !contents[0].keep}, nil
}

// stageBoth prepares what there is of two contents, beside each other if they are large.
func (j *journal) stageBoth(before []byte, after [][]byte, created, deleted bool, cfg Config) (both [2]staged, err error) {
	var errs [2]error
	stage := func(i int, content ...[]byte) {
		both[i], errs[i] = j.stage(content, cfg.MaxFile, cfg.Sync)
	}
	var beside sync.WaitGroup
	if !created {
		if len(before) < besides {
			stage(0, before)
		} else {
			beside.Go(func() { stage(0, before) })
		}
	}
	if !deleted {
		stage(1, after...)
	}
	beside.Wait()
	return both, errors.Join(errs[:]...)
}

// commit puts contents in use, then adds the line that refers to them. On an error neither is left. Callers hold the lock.
func (j *journal) commit(contents []staged, l []byte, sync bool) (err error) {
	defer func() {
		for i := range contents {
			if st := &contents[i]; err != nil && st.made {
				err = errors.Join(err, os.Remove(j.blobPath(st.blob)))
			}
		}
	}()
	for i := range contents {
		if err := j.settle(&contents[i], sync); err != nil {
			return err
		}
	}
	if sync {
		if err := syncDir(filepath.Join(j.dir, blobsName)); err != nil {
			return err
		}
	}
	if err := j.append(l, sync); err != nil {
		return err
	}
	j.mu.Lock()
	defer j.mu.Unlock()
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

// end records how the change ended. Only the first call counts.
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
	l, err := line{ID: e.change.ID, State: state}.encode()
	if err != nil {
		return err
	}
	if err := e.journal.locked(func() error { return e.journal.append(l, e.store.cfg.Sync) }); err != nil {
		e.journal.owe(l)
		return fmt.Errorf("the end of the change of %s could not be journalled: %w", e.change.Path, err)
	}
	e.store.exit()
	e.store.tidyFull(e.journal)
	return nil
}
