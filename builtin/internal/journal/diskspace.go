package journal

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"time"
)

// freeShare is the largest part of the disk that the history takes, of the space that would be free without it:
// 1/freeShare.
const freeShare = 4

// limit returns how many bytes the contents of a section may take; used is what they take now.
func (c *Config) limit(used int64) int64 {
	free, _, ok := sizeOf(c.Dir)
	if !ok {
		return c.Quota
	}
	return min(c.Quota, (free+used)/freeShare)
}

// Shrink forgets the older half of the ended changes of the principal with the largest history, whatever their age,
// and the files that were set aside. It keeps changes that are being undone, and those with one of the IDs. It is for
// a full disk, and reports whether it has forgotten anything.
func (j *Journal) Shrink(but ...string) bool {
	sections, err := j.of(AllPrincipals)
	slices.SortStableFunc(sections, func(a, b *section) int { return int(min(1, max(-1, b.packs.size()-a.packs.size()))) })
	shrunk := false
	for _, s := range sections {
		if !shrunk {
			var one error
			shrunk, one = s.shrink(but)
			err = errors.Join(err, one)
		}
	}
	j.tidied(err)
	return shrunk
}

// Fills reports whether an error says that a disk is full, and the history is on that disk too: dir is a directory on
// the disk, or "" for the disk of the history.
func (j *Journal) Fills(dir string, err error) bool {
	return j.cfg.Dir != "" && isFull(err) && (dir == "" || sameDisk(dir, j.cfg.Dir))
}

// shrink is Shrink of one section. Packs go first: a full disk has no room for another index either.
func (s *section) shrink(but []string) (shrunk bool, err error) {
	err = s.locked(func() error {
		x, err := s.load()
		if err != nil {
			return err
		}
		needed := needed(x.records, but)
		ended := 0
		for _, r := range x.records {
			if !needed[r.ID] {
				ended++
			}
		}
		if ended == 0 {
			return os.RemoveAll(filepath.Join(s.dir, asideName))
		}
		before := s.packs.size()
		drop := (ended + 1) / 2
		kept := slices.DeleteFunc(slices.Clone(x.records), func(r record) bool {
			if needed[r.ID] {
				return false
			}
			drop--
			return drop >= 0
		})
		s.cfg.Log.Warn("the disk is full: older changes were forgotten", "changes", len(x.records)-len(kept),
			"directory", s.dir)
		err = s.reduce(kept)
		shrunk = err == nil || s.packs.size() < before
		return err
	})
	return shrunk, err
}

// needed returns the IDs of the changes that are being made or undone, and the others.
func needed(records []record, others []string) map[string]bool {
	ids := map[string]bool{}
	for _, r := range records {
		if r.State == Pending {
			others = append(append(others, r.ID), r.UndoOf...)
		}
	}
	for _, id := range others {
		ids[id] = true
	}
	return ids
}

// reduce forgets all changes but those that are kept, and removes the files that were set aside.
func (s *section) reduce(kept []record) error {
	return errors.Join(os.RemoveAll(filepath.Join(s.dir, asideName)), s.sweepPacks(kept, false),
		s.replaceIndex(kept, nil))
}

// Purge forgets the changes of all principals that began before a time and have ended, with their contents. It
// returns the number of their calls.
func Purge(j *Journal, before time.Time) (calls int, err error) {
	sections, err := j.of(AllPrincipals)
	for _, s := range sections {
		err = errors.Join(err, s.locked(func() error {
			x, err := s.load()
			if err != nil {
				return err
			}
			gone := map[string]bool{}
			kept := slices.DeleteFunc(x.records, func(r record) bool {
				forget := r.State != Pending && r.Time.Before(before)
				if forget {
					gone[r.ID] = true
				}
				return forget
			})
			calls += len(gone)
			s.packs.packed = nil
			return s.reduce(kept)
		}))
	}
	return calls, err
}

// Bounds of the disk for what is kept of commands: minFree bytes of it stay free, of a small disk a share.
const (
	minFree      = 1 << 30
	minFreeShare = 20 // a twentieth
)

// HasRoom returns an error unless enough of the disk of the journal stays free with size bytes more.
func (j *Journal) HasRoom(size int64) error { return j.cfg.roomFor(size) }

func (c *Config) roomFor(size int64) error {
	free, all, ok := sizeOf(c.Dir)
	if ok && free-size < min(minFree, all/minFreeShare) {
		return errors.New("the disk is nearly full")
	}
	return nil
}

// worthwhile reports whether other changes may be forgotten to make room for size bytes.
func (j *Journal) worthwhile(size int64) bool {
	sections, _ := j.of(AllPrincipals)
	used := int64(0)
	for _, s := range sections {
		used += s.packs.size()
	}
	return size <= j.cfg.limit(used)
}

// A Holding is the share of the history that belongs to one principal.
type Holding struct {
	Principal string // "" if it is not known
	Bytes     int64  // of contents
	Limit     int64  // of Bytes, with the space that is free now
	Changes   int
	Damaged   bool   // the index is not as it was written
	Aside     string // the directory of what was damaged and was set aside, "" if nothing was
}

// Holdings returns the shares of all principals, the largest first.
func (j *Journal) Holdings() ([]Holding, error) {
	sections, err := j.of(AllPrincipals)
	var all []Holding
	for _, s := range sections {
		x, one := s.load()
		err = errors.Join(err, one)
		h := Holding{Bytes: s.packs.size(), Changes: len(x.records), Damaged: s.isDamaged()}
		h.Limit = j.cfg.limit(h.Bytes)
		if aside := filepath.Join(s.dir, asideName); !isEmpty(aside) {
			h.Aside = aside
		}
		if len(x.records) > 0 {
			h.Principal = x.records[0].Principal
		}
		all = append(all, h)
	}
	slices.SortStableFunc(all, func(a, b Holding) int { return int(min(1, max(-1, b.Bytes-a.Bytes))) })
	return all, err
}

// isEmpty reports whether a directory is empty or does not exist.
func isEmpty(dir string) bool {
	entries, _ := os.ReadDir(dir)
	return len(entries) == 0
}
