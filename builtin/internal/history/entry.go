package history

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"time"
)

// An Entry is a change that has begun. The caller ends it with Done or Failed; the next process settles an entry that
// was not ended. A nil Entry is a change that could not be journalled and is made anyway: to end it does nothing.
type Entry struct {
	store   *Store   // nil if nothing is journalled
	journal *journal // of the principal
	change  Change
	lost    bool // what was there before is not kept
	full    bool // the journal must be tidied
	ended   atomic.Bool
}

// Begin journals a change before it is made. The caller writes the file only after Begin has returned, and holds the
// lock of the file from before it reads the file until the change has ended. before is the content of the file, nil
// if it does not exist; after is the new content, in any number of pieces. If c.Deleted is set, the change removes
// the file, and after is not used. Begin records the fields Principal, Scope, Tool, Path, UndoOf and the modes of c,
// and Before if the caller knows the Blob of before; it fills in the others. The content of a link is its target. For
// a directory before is nil.
//
// After an error nothing is journalled. The caller may make the change anyway, and then reports
// that it cannot be undone.
func (s *Store) Begin(c Change, before []byte, after ...[]byte) (*Entry, error) {
	if s.cfg.Dir == "" {
		return &Entry{}, nil
	}
	if err := c.check(); err != nil {
		return nil, err
	}
	c.Path, c.Created, c.UndoOf = filepath.Clean(c.Path), before == nil && c.BeforeMode == 0, slices.Clone(c.UndoOf)
	c.ID, c.Time, c.State, c.After, c.UndoneBy = shortID(), time.Now().UTC().Round(0), Pending, Blob{}, ""
	if before == nil {
		c.Before = Blob{}
	} else if c.Before.IsZero() || c.Before.Size != int64(len(before)) {
		c.Before = BlobOf(before)
	}
	if !c.Deleted && !c.AfterMode.IsDir() {
		c.After = BlobOf(after...)
	}
	e := &Entry{store: s, journal: s.journal(journalName(c.Principal)), change: c, lost: !c.Created && c.Before.Size > s.cfg.MaxFile}
	err := e.begin(before, after)
	for isFull(err) && s.worthwhile(c.Before.Size+c.After.Size) && s.Shrink() {
		err = e.begin(before, after)
	}
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

// begin records the entry with its owner, and writes it to the journal.
func (e *Entry) begin(before []byte, after [][]byte) error {
	j, id := e.journal, e.change.ID
	if err := os.MkdirAll(j.dir, ownerDir); err != nil {
		return err
	}
	if err := j.owners.begin(id, j.cfg.Sync); err != nil {
		return errors.Join(err, j.owners.end(id))
	}
	err := j.locked(func() (err error) {
		e.full, err = j.commit(record{Change: e.change, owner: j.owners.name}, before, after)
		return err
	})
	if err != nil {
		return errors.Join(err, j.owners.end(id))
	}
	return nil
}

// commit stores the contents of a change and adds the line that refers to them. It reports whether enough has been
// added to tidy the journal. Callers hold the lock.
func (j *journal) commit(r record, before []byte, after [][]byte) (full bool, err error) {
	number, end := j.packs.number, j.packs.end
	for i, c := range []struct {
		blob    Blob
		content [][]byte
	}{{r.Before, [][]byte{before}}, {r.After, after}} { // the old content first, where the change before will have put it
		if err == nil && !c.blob.IsZero() && c.blob.Size <= j.cfg.MaxFile {
			r.at[i], err = j.packs.put(c.blob, c.content, j.cfg.Sync)
		}
	}
	if err != nil {
		j.packs.rollback(number, end)
		return false, err
	}
	return j.add([]record{r}, number, end)
}

// add adds the line of an entry. number and end are those of the packs from before its contents were put. It is like
// commit.
func (j *journal) add(records []record, number int, end int64) (full bool, err error) {
	line, err := encode(records)
	if err == nil {
		err = j.append(line)
	}
	if err != nil {
		j.packs.rollback(number, end)
		return false, err
	}
	j.packs.close()
	j.since += len(records)
	return j.since >= max(tidyAfter, j.kept/tidyPart) || j.packs.grown > 0 && j.packs.grown >= j.cfg.limit(j.packs.grown)/tidyShare, nil
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

// Done records that the change was made. After an error the next start determines that from the file.
func (e *Entry) Done() error { return e.end(nil) }

// Failed records that the change was not made: the file is unchanged. Errors are as for [Entry.Done].
func (e *Entry) Failed() error {
	return e.end(func() error {
		line, err := entryLine{ID: e.change.ID, State: Failed}.encode()
		if err != nil {
			return err
		}
		return e.journal.append(line)
	})
}

// end records how the change ended: write writes that to the index; nil means done. Only the first call has an effect.
func (e *Entry) end(write func() error) (err error) {
	if e == nil || e.store == nil || e.ended.Swap(true) {
		return nil
	}
	if write != nil {
		err = e.journal.locked(write)
	}
	if err == nil { // else it stays open
		err = e.journal.owners.end(e.change.ID)
	}
	if e.full {
		e.store.tidyLater(e.journal)
	}
	if err != nil {
		return fmt.Errorf("the end of the change of %s could not be journalled: %w", e.change.Path, err)
	}
	return nil
}
