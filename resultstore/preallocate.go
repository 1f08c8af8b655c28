package resultstore

import "time"

// takeSpare takes the file that was made beforehand for a shelf; nil if there is none.
func (s *Store) takeSpare(h *rootDir, shelf string) *File {
	s.mu.Lock()
	defer s.mu.Unlock()
	f := s.preallocated
	if f == nil || f.rootDir != h || f.shelf != shelf {
		return nil
	}
	s.preallocated = nil
	return f
}

// prepareAfter is some times what it takes to write an answer, and for a client to read it.
const prepareAfter = 2 * time.Millisecond

// prepare makes a file for the next result of a shelf that is at hand as a whole, while its principal reads the last one, which was
// used: a file system takes up to a millisecond to make one where many have just been removed, as next to builds (ext4 looks for a
// number that none of these had). A store has one such file, for the shelf that was used last.
//
// It waits until the result has likely been written and read: a client that does so would else wait for a processor.
func (s *Store) prepare(used *File) {
	s.mu.Lock()
	defer s.mu.Unlock()
	old := s.preallocated
	if s.closed || s.preparing || s.rootDir != used.rootDir || old != nil && old.rootDir == used.rootDir && old.shelf == used.shelf {
		return
	}
	s.preallocated, s.preparing = nil, true
	s.work.Go(func() {
		time.Sleep(prepareAfter)
		if old != nil {
			_ = old.Discard() // what is left of it is recovered as any unfinished file
		}
		f := s.file(used.rootDir, used.shelf, resultName, true)
		f.preallocated = true
		err := f.create()
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.preparing = false; err == nil {
			s.preallocated, s.files[f] = f, true
		}
	})
}
