package journal

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/toolhost/toolhost/guard/statedir"
)

const (
	// youngest is the age below which no change is removed: a person may have just been told about it.
	youngest = time.Minute
	// tidyEvery is how often hosts that start enforce quota and age. They do so tidyDelay after the start, or at their
	// end if that is sooner: with 5,000 changes it takes 90 ms, ten times as long as a start.
	tidyEvery = time.Hour
	tidyDelay = time.Second
	// Quota and age are enforced after tidyAfter changes of a principal at the earliest, after 1/tidyPart of the changes
	// that are remembered, since each is read then, and after 1/tidyShare of the quota.
	tidyAfter = 256
	tidyPart  = 4
	tidyShare = 16
	// maxChanges bounds what is remembered of a principal, so that reading an index stays a matter of 0.1 s (6 µs a
	// change).
	maxChanges = 20_000
	// maxIndex bounds what is read as an index, in bytes: a hundred times what so many changes take.
	maxIndex = 1 << 30
)

// tidyDue tidies the sections that are due.
func (j *Journal) tidyDue() {
	sections, err := j.of(AllPrincipals)
	for _, s := range sections {
		if statedir.TidyDue(s.dir, tidyEvery) || s.isDamaged() {
			err = errors.Join(err, s.gc())
		}
	}
	j.tidied(err)
}

// tidyLater tidies a section to which much has been added, outside of the call.
func (j *Journal) tidyLater(s *section) {
	j.background.Go(func() { j.tidied(s.gc()) })
}

func (j *Journal) tidied(err error) {
	if err != nil {
		j.cfg.Log.Warn("the history could not be tidied", "error", err)
	}
}

func (j *Journal) tidyAll() error {
	sections, err := j.of(AllPrincipals)
	for _, s := range sections {
		err = errors.Join(err, s.gc())
	}
	return err
}

// recover settles the entries that dead owners left open.
func (j *Journal) recover() {
	if err := j.owner.settle(j.tidyAll); err != nil {
		j.cfg.Log.Warn("changes that a killed host left open could not be settled", "error", err)
	}
}

// isDamaged reports whether the index of a section differs from what was written.
func (s *section) isDamaged() (damaged bool) {
	err := s.locked(func() error {
		x, err := s.read()
		damaged = x.isDamaged()
		return err
	})
	return err == nil && damaged
}

// gc settles entries that dead owners left open, forgets changes beyond the age or the quota, and removes contents
// without references.
func (s *section) gc() error {
	return s.locked(func() error {
		s.since, s.packs.grown = 0, 0
		x, err := s.load()
		if err != nil {
			return err
		}
		settled := s.settle(x.records)
		kept := s.cfg.remember(x.records)
		s.kept = len(kept)
		if settled || len(kept) < len(x.records) || x.ends > 0 || x.isDamaged() {
			if err := s.replaceIndex(kept, x.odd()); err != nil {
				return err
			}
		}
		if x.isDamaged() {
			s.cfg.Log.Warn("the index of the history was damaged; what could not be read was set aside", "lines",
				len(x.damaged),
				"changes found in its copy", x.found, "changes may be lost", x.lost, "directory", filepath.Join(s.dir, asideName))
		}
		return errors.Join(s.sweepPacks(kept, x.lost), s.sweepAside(), statedir.NoteTidied(s.dir))
	})
}

// remember returns the changes that are not forgotten. Open changes are forgotten only for their age.
func (c *Config) remember(records []record) []record {
	oldest := c.forget(records)
	needed := needed(records, nil)
	kept := slices.DeleteFunc(slices.Clone(records[:oldest]), func(r record) bool {
		return !needed[r.ID] || r.State == Pending && time.Since(r.Time) > c.MaxAge
	})
	return append(kept, records[oldest:]...)
}

// forget returns how many of the oldest changes are beyond the age, the quota, or the room on the disk. For the disk
// young changes count too, except the last one. A content that several changes share counts once.
func (c *Config) forget(records []record) int {
	limit := c.limit(usedBy(records))
	var used int64
	counted := make(map[location]bool)
	for i, r := range slices.Backward(records) {
		age := time.Since(r.Time)
		used += r.adds(counted)
		old := age > c.MaxAge
		over := used > c.Quota || len(records)-i > maxChanges
		tight := used > limit && limit < c.Quota && i < len(records)-1
		if old || (over && age >= youngest || tight) && r.State != Pending {
			return wholeEntries(records, i+1)
		}
	}
	return 0
}

// wholeEntries moves a cut to the end of an entry, or before the newest one: part of an entry would be undone in part.
func wholeEntries(records []record, cut int) int {
	if cut == len(records) {
		return cut
	}
	for cut < len(records) && records[cut].ID == records[cut-1].ID {
		cut++
	}
	if cut == len(records) {
		for cut > 0 && records[cut-1].ID == records[len(records)-1].ID {
			cut--
		}
	}
	return cut
}

// usedBy returns how many bytes the contents of changes take.
func usedBy(records []record) (used int64) {
	counted := make(map[location]bool)
	for _, r := range records {
		used += r.adds(counted)
	}
	return used
}

// adds returns the number of bytes of the contents of a change that are not in counted, and adds them to it.
func (r record) adds(counted map[location]bool) (used int64) {
	for side, b := range [...]Blob{r.Before, r.After} {
		if at := r.at[side]; !at.isZero() && !counted[at] {
			counted[at] = true
			used += b.Size
		}
	}
	return used
}

// sweepPacks removes the packs that no change refers to. If changes are lost, it sets aside the packs that no living
// process may be writing.
func (s *section) sweepPacks(kept []record, lost bool) error {
	used := make(map[string]bool)
	for _, r := range kept {
		used[r.at[0].Pack], used[r.at[1].Pack] = true, true
	}
	remove := os.Remove
	if lost {
		remove = func(path string) error {
			aside := filepath.Join(s.dir, asideName)
			if owner, _, _ := strings.Cut(filepath.Base(path), "."); s.owner.alive(owner) {
				return nil
			}
			return errors.Join(os.MkdirAll(aside, ownerDir), os.Rename(path, filepath.Join(aside, filepath.Base(path))))
		}
	}
	return s.packs.sweep(used, remove)
}

// sweepAside removes what was set aside so long ago that the changes it belonged to would be forgotten.
func (s *section) sweepAside() error {
	return statedir.SweepDir(filepath.Join(s.dir, asideName), statedir.Limits{Age: s.cfg.MaxAge}, statedir.All)
}

// settle determines how changes ended whose owner died, and reports whether there were any. The next change of the
// same file shows what this one left, or, if there is none, the file does. A file that cannot be examined now stays
// open.
func (s *section) settle(records []record) bool {
	settled := false
	next := make(map[string]Node) // what the next change of a path found there
	for i := range slices.Backward(records) {
		r := &records[i]
		if r.State == Pending && !s.owner.alive(r.owner) {
			found, known := next[r.Path]
			if state, found, err := s.cfg.outcome(r.Change, found, known); err != nil {
				s.cfg.Log.Warn("a file that a killed host was changing cannot be looked at", "file", r.Path,
					"error", err)
				s.owner.setTorn(r.ID)
			} else {
				if r.State, settled = state, true; state == Unknown && r.isHalfUndone(found) {
					r.State = Done
				}
				s.cfg.Log.Info("a change that a killed host left open was settled", "file", r.Path, "change", r.ID,
					"state", r.State)
			}
		}
		next[r.Path] = r.before()
	}
	return settled
}

var errTorn = errors.New("it was written in place and may be torn; the next start makes it whole")

// outcome determines how a change ended by the node found after it, or by the file now, and returns that node.
func (c *Config) outcome(change Change, found Node, known bool) (State, Node, error) {
	if !known {
		if c.Torn != nil && c.Torn(change.Path) { // asked before the look: it may be made whole meanwhile
			return "", found, errTorn
		}
		var err error
		if found, err = NodeAt(change.Path); err != nil {
			return "", found, err
		}
	}
	switch {
	case found.same(change.after()):
		return Done, found, nil
	case found.same(change.before()):
		return Failed, found, nil
	}
	return Unknown, found, nil
}

// isHalfUndone reports whether a node is an intermediate step of an undo: absent, or one of the contents with the
// mode of the other. It is treated as restored: nothing is lost by that, and the undo can be undone.
func (r *record) isHalfUndone(found Node) bool {
	if len(r.UndoOf) == 0 || !found.IsAbsent() && (found.Mode.Type() != r.AfterMode.Type() || found.Blob != r.Before &&
		found.Blob != r.After) {
		return false
	}
	if found.Blob != r.After {
		r.at[1] = r.at[0]
	}
	if found.IsAbsent() {
		r.at[1] = location{}
	}
	r.After, r.AfterMode, r.Deleted = found.Blob, found.Mode, found.IsAbsent()
	return true
}
