package resultstore

import (
	"sync"
	"time"
)

// usage is the space that a directory takes, as last measured and as written by this process since: unfinished
// results share the quota while they grow.
type usage struct {
	// held for reading while counted bytes are being written, for writing while the directory is measured
	writing sync.RWMutex
	mu      sync.Mutex
	remains
	measured  time.Time // zero: never
	measuring bool      // soon, see [Store.measureLater]
}

// remains is the content of a directory: its size and its number of files.
type remains struct {
	bytes int64
	files int
}

// measuredFor is how long a measurement stays valid. A stat of each of a thousand results takes longer than storing
// one, so measuring is done after a result was stored: files of other processes since the last measurement are
// counted late.
const measuredFor = time.Second

// hasRoom reports whether a directory has room for one more result of size bytes, as far as this process knows.
func (u *usage) hasRoom(size, quota int64) bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	return !u.measured.IsZero() && u.bytes+size <= quota && u.files < maxResults
}

// wantsMeasure reports whether the directory must be measured again, and reserves the measurement for the caller.
func (u *usage) wantsMeasure() bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.measuring || time.Since(u.measured) <= measuredFor {
		return false
	}
	u.measuring = true
	return true
}

// enter counts one more result, unless the quota is used up.
func (u *usage) enter(quota int64) bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.bytes >= quota {
		return false
	}
	u.files++
	return true
}

// take returns how many of n bytes, at most, may still be written within quota, and counts them.
func (u *usage) take(n, quota int64) int64 {
	u.mu.Lock()
	defer u.mu.Unlock()
	n = max(0, min(n, quota-u.bytes))
	u.bytes += n
	return n
}

// leave removes a result from the count.
func (u *usage) leave() {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.files = max(0, u.files-1)
}

// give subtracts bytes that were counted and are not on disk.
func (u *usage) give(n int64) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.bytes = max(0, u.bytes-n)
}

// measure replaces the counts by what find finds on disk.
func (u *usage) measure(find func() (remains, error)) error {
	u.writing.Lock()
	defer u.writing.Unlock()
	found, err := find()
	u.mu.Lock()
	defer u.mu.Unlock()
	u.remains = found
	if u.measured = time.Now(); err != nil {
		u.measured = time.Time{}
	}
	return err
}

// usageOf returns the usage of a directory, by its name.
func (s *Store) usageOf(dir string) *usage {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.usage == nil {
		s.usage = make(map[string]*usage)
	}
	u := s.usage[dir]
	if u == nil {
		u = new(usage)
		s.usage[dir] = u
	}
	return u
}
