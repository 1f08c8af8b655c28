package journal

import (
	"cmp"
	"errors"
	"path/filepath"
	"time"
)

// maxCommand is how much of a command line the history keeps, in bytes.
const maxCommand = 4 << 10

// A Call is the history's record of a command.
type Call struct {
	Command   string   `json:"command,omitempty"`    // the command line, of which the beginning is kept
	Ignored   int      `json:"ignored,omitempty"`    // files in ignored directories that changed, which are not kept
	Notes     []string `json:"notes,omitempty"`      // what was not covered
	HeadMoved bool     `json:"head_moved,omitempty"` // git had another commit checked out afterwards
	// Ended is when the changes of a command were looked at; zero for changes that the host made itself.
	Ended    time.Time `json:"ended,omitzero"`
	Overlaps []string  `json:"overlaps,omitempty"` // commands that ran at the same time and may have made the changes
	Lasting  bool      `json:"lasting,omitempty"`  // it was an agent program, whose calls have entries of their own
}

func (c Call) isZero() bool {
	return c.Command == "" && c.Ignored == 0 && len(c.Notes) == 0 && !c.HeadMoved && c.Ended.IsZero()
}

// A PathChange is the change of one path by a command.
type PathChange struct {
	Path          string // absolute
	Before, After Node
	Lost          string // why what stood there before cannot be restored; "" if it can
	Content       func() ([]byte, error)
	Now           [][]byte  // the content of After in pieces, if it is to be kept; nil: it is not
	From, To      time.Time // of [Change]
	Links         []string  // of [Change]

	at    location // where the content of After is kept, if it is
	known bool     // Content returns what Before says
}

// Record records the changes of a command as one entry, and returns those that are its own: see [Journal.own]. It
// records the fields Principal, Scope, Tool, Time and Call of c, and its ID if the change was announced. The content
// from before is kept; of the content now only the hash is recorded.
func (j *Journal) Record(c Change, changes []PathChange) ([]PathChange, error) {
	if j.cfg.Dir == "" || len(changes) == 0 {
		return changes, nil
	}
	if c.Principal == "" {
		return changes, errors.New("a change without a principal cannot be journalled")
	}
	c.ID, c.Time, c.State, c.Command = cmp.Or(c.ID, shortID()), c.Time.UTC().Round(0), Done, shortened(c.Command)
	c.Ended = time.Now().UTC().Round(0)
	changes, err := j.own(&c, changes)
	if err != nil || len(changes) == 0 {
		return changes, err
	}
	s := j.section(sectionName(c.Principal))
	full, err := s.recordAll(j, c, changes, nil)
	if full {
		j.tidyLater(s)
	}
	return changes, err
}

// record is Record under the lock. It reports whether enough has been added to tidy the journal.
func (s *section) record(c Change, changes []PathChange) (full bool, err error) {
	number, end := s.packs.number, s.packs.end
	var records []record
	for i, p := range changes {
		r := record{Change: c, owner: s.owners.name}
		r.Path, r.Before, r.After, r.BeforeMode, r.AfterMode = filepath.Clean(p.Path), p.Before.Blob, p.After.Blob, p.Before.Mode, p.After.Mode
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
		r.at[1], err = s.packs.put(r.After, p.Now, s.cfg.Sync)
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
	r.at[0], err = s.packs.put(r.Before, [][]byte{content}, s.cfg.Sync)
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
	return s.since >= max(tidyAfter, s.kept/tidyPart) || s.packs.grown > 0 &&
		s.packs.grown >= s.cfg.limit(s.packs.grown)/tidyShare, nil
}
