package history

import (
	"errors"
	"maps"
	"slices"
	"time"
)

// flushAfter is for how long the end of a change may wait for the beginning of the next to take it along. Whoever is killed within it
// leaves the change open, for the next process to settle by a look at the file.
const flushAfter = 5 * time.Millisecond

// queue adds the end of a change to what is to be written with the next line.
func (j *journal) queue(l []byte) {
	j.changing.Lock()
	defer j.changing.Unlock()
	j.pending = append(j.pending, l...)
}

// flushSoon writes in a moment what is owed. It does not, and says so, where that may not be put off.
func (s *Store) flushSoon(j *journal) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed || s.cfg.Sync {
		return false
	}
	if slices.Contains(s.due, j) {
		return true
	}
	s.flushes.Add(1)
	if s.due = append(s.due, j); len(s.due) == 1 {
		s.later = time.AfterFunc(flushAfter, s.flushDue)
	}
	return true
}

// flushDue writes what was put off.
func (s *Store) flushDue() {
	for _, j := range s.takeDue() {
		if err := s.flush(j); err != nil {
			s.cfg.Log.Warn("the ends of changes could not be journalled; they will be with the next change", "error", err)
		}
		s.flushes.Done()
	}
}

// takeDue returns the journals in which something was put off. Each is counted in flushes until it has been dealt with.
func (s *Store) takeDue() []*journal {
	s.mu.Lock()
	defer s.mu.Unlock()
	due := s.due
	s.due = nil
	return due
}

// flush writes what is owed, and tidies a journal in which much has been added.
func (s *Store) flush(j *journal) error {
	if err := j.flush(s.cfg.Sync); err != nil {
		return err
	}
	s.tidyFull(j)
	return nil
}

// flush writes what is owed, unless a change that has begun since took it along.
func (j *journal) flush(sync bool) error {
	if !j.owes() {
		return nil
	}
	return j.locked(func() error {
		if len(j.pending) == 0 {
			return nil
		}
		return j.append(nil, sync)
	})
}

// still waits until nothing is written a moment later any more, and tidies what was due at the start. The store is closed.
func (s *Store) still() {
	s.flushes.Add(-len(s.takeDue()))
	if s.tidying.Stop() {
		s.tidyDue()
		s.flushes.Done()
	}
	s.flushes.Wait()
}

// finish writes what is owed, and closes all files. The store is closed.
func (s *Store) finish() error {
	s.still()
	s.mu.Lock()
	journals := slices.Collect(maps.Values(s.journals))
	s.mu.Unlock()
	var errs []error
	for _, j := range journals {
		errs = append(errs, j.flush(s.cfg.Sync))
		j.packs.close()
	}
	return errors.Join(errs...)
}

func (j *journal) owes() bool {
	j.changing.Lock()
	defer j.changing.Unlock()
	return len(j.pending) > 0
}

// maxWriting bounds how many packs are open at once, each for another principal.
const maxWriting = 16

// wrote notes that the pack of a journal is open, and closes that of another if there are too many.
func (s *Store) wrote(j *journal) {
	s.mu.Lock()
	var idle *journal
	if !slices.Contains(s.writing, j) {
		if s.writing = append(s.writing, j); len(s.writing) > maxWriting {
			idle = s.writing[0]
			s.writing = slices.Delete(s.writing, 0, 1)
		}
	}
	s.mu.Unlock()
	if idle != nil {
		idle.packs.close()
	}
}
