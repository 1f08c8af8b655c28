package journal

import (
	"errors"
	"os"
	"path/filepath"
)

// recordAll is record that forgets older changes to make room on a full disk, except those with the IDs in but.
func (s *section) recordAll(j *Journal, c Change, changes []PathChange, but []string) (full bool, err error) {
	record := func() error {
		if err := os.MkdirAll(s.dir, ownerDir); err != nil {
			return err
		}
		return s.locked(func() (err error) {
			full, err = s.record(c, changes)
			return err
		})
	}
	err = record()
	size := int64(0)
	for _, p := range changes {
		size += p.Before.Size + p.After.Size
	}
	for isFull(err) && j.worthwhile(size) && j.Shrink(but...) {
		err = record()
	}
	return full, err
}

// record is Record under the lock. It reports whether enough has been added to tidy the journal.
func (s *section) record(c Change, changes []PathChange) (full bool, err error) {
	number, end := s.packs.number, s.packs.end
	var records []record
	for i, p := range changes {
		r := record{Change: c, owner: s.owner.name}
		r.Path, r.Before, r.After, r.BeforeMode, r.AfterMode = filepath.Clean(p.Path), p.Before.Blob, p.After.Blob,
			p.Before.Mode, p.After.Mode
		r.From, r.To, r.Links = p.From, p.To, p.Links
		r.Created, r.Deleted, r.Lost, r.at[1] = p.Before.IsAbsent(), p.After.IsAbsent(), p.Lost, p.at
		if p.Before.isUnread() {
			r.BeforeStamp = p.Before.Stamp
		}
		if p.After.isUnread() {
			r.AfterStamp = p.After.Stamp
		}
		if err = s.keep(&r, p); err != nil {
			s.packs.rollback(number, end)
			return false, err
		}
		changes[i].Lost = r.Lost
		records = append(records, r)
	}
	return s.add(records, number, end)
}

// keep stores the contents of a change: first that from before, where the last change will have put it.
func (s *section) keep(r *record, p PathChange) (err error) {
	if err = s.keepBefore(r, p); err == nil && p.Now != nil && !r.After.IsZero() && r.After.Size <= s.cfg.MaxFile {
		r.at[1], err = s.packs.put(r.After, p.Now)
	}
	return err
}

// keepBefore stores the content from before at a path. Content that cannot be read is not kept; errors are those of
// the journal.
func (s *section) keepBefore(r *record, p PathChange) (err error) {
	if r.Lost != "" || r.Before.IsZero() {
		return nil
	}
	if r.Lost = s.cfg.notKept(r.before()); r.Lost != "" {
		return nil
	}
	if r.State == Done { // an undo that keeps nothing would have no way back
		if err := s.cfg.roomFor(r.Before.Size); err != nil {
			r.Lost = err.Error()
			return nil
		}
	}
	content, err := p.Content()
	if err == nil && !p.known && BlobOf(content) != r.Before {
		err = errors.New("the copy is not what was there")
	}
	if err != nil {
		r.Lost = err.Error()
		return nil
	}
	r.at[0], err = s.packs.put(r.Before, [][]byte{content})
	return err
}

// add adds the line of an entry. number and end are those of the packs from before its contents were put. It reports
// whether enough has been added to tidy the journal. Callers hold the lock.
func (s *section) add(records []record, number int, end int64) (full bool, err error) {
	line, err := encode(records)
	if err == nil {
		err = s.append(line)
	}
	if err != nil {
		s.packs.rollback(number, end)
		return false, err
	}
	s.packs.close()
	s.since += len(records)
	full = s.since >= max(tidyAfter, s.kept/tidyPart) || s.packs.grown > 0 &&
		s.packs.grown >= s.cfg.limit(s.packs.grown)/tidyShare
	if full { // the changes until the journal is tidied are not to tidy it again
		s.since, s.packs.grown = 0, 0
	}
	return full, nil
}
