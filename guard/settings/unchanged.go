package settings

import (
	"path/filepath"
	"slices"
)

// unchanged reports that a reading now would find nothing new. It looks at what a reading looks at and notes nothing, so that
// several may look at once; where that could matter, it leaves the answer to a reading.
func (s *reloader) unchanged() bool {
	managed := len(s.managed) > len(s.admin) || slices.ContainsFunc(s.admin, func(d *directory) bool { return !d.absent })
	if !s.begun || s.short || !s.due.IsZero() || !s.settled() || managed {
		return false // drop-ins must be listed
	}
	for _, path := range s.absent {
		if !absent(exists(path)) {
			return false
		}
	}
	now := s.now()
	for _, f := range s.order {
		if !f.gone.IsZero() {
			return false
		}
		seen := absentStamp(now)
		if !f.dir.absent {
			seen, _ = takeStamp(f.file, now)
		}
		if !f.fileVersion.proves(seen) {
			return false
		}
	}
	if s.trustPath == "" {
		return true
	}
	seen, _ := takeStamp(s.trustPath, now)
	return s.store.proves(seen)
}

// topmostAbsent are the directories that are absent, but for those in one of them.
func (s *reloader) topmostAbsent() []string {
	var all []string
	for path, d := range s.dirs {
		above := s.dirs[filepath.Dir(path)]
		if d.absent && (above == nil || !above.absent) {
			all = append(all, path)
		}
	}
	return all
}

// settled reports whether the sources were put in order, and none has vanished from it.
func (s *reloader) settled() bool { return s.order != nil && len(s.order) == s.asked }
