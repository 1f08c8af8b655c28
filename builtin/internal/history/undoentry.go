package history

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/toolhost/toolhost/builtin/internal/search/walk"
)

// An UndoEntry is an undo that has begun: one entry, with one ID, for all of its files. End ends it. The next process settles an
// entry that was not ended, each file by its content.
type UndoEntry struct {
	ID    string
	store *Store
	parts []*undoPart
	files map[string]undoFile // by path
}

// An undoPart is the part of an undo that belongs to one principal.
type undoPart struct {
	journal *journal
	changes []PathChange
	failed  []int
	full    bool // the journal must be tidied
}

// An undoFile is one of the changes of a part.
type undoFile struct {
	part *undoPart
	n    int
}

// BeginUndo journals an undo of files before it is made; it reads and keeps their contents. It records the fields Scope, Tool and
// Command of c. After an error nothing is journalled.
func BeginUndo(s *Store, c Change, files []FileUndo) (*UndoEntry, error) {
	c.ID, c.Time, c.State, c.Command = shortID(), time.Now().UTC().Round(0), Pending, shortened(c.Command)
	e := &UndoEntry{ID: c.ID, store: s, files: make(map[string]undoFile, len(files))}
	if err := s.owners.begin(c.ID, s.cfg.Sync); err != nil {
		return nil, errors.Join(err, s.owners.end(c.ID))
	}
	files = slices.SortedStableFunc(slices.Values(files), func(a, b FileUndo) int { return strings.Compare(a.Principal, b.Principal) })
	var undone []string
	linked := linkedNow(files)
	for _, f := range files {
		undone = append(undone, f.Changes...)
	}
	for i := 0; i < len(files); {
		part := &undoPart{journal: s.journal(journalName(files[i].Principal))}
		own := c
		own.Principal = files[i].Principal
		for ; i < len(files) && files[i].Principal == own.Principal; i++ {
			own.UndoOf = append(own.UndoOf, files[i].Changes...)
			e.files[files[i].Path] = undoFile{part, len(part.changes)}
			change := files[i].change()
			change.Links = linked(change.Path)
			part.changes = append(part.changes, change)
		}
		slices.Sort(own.UndoOf)
		own.UndoOf = slices.Compact(own.UndoOf)
		var err error
		if part.full, err = part.journal.recordAll(s, own, part.changes, undone); err != nil {
			return nil, errors.Join(fmt.Errorf("the undo could not be journalled: %w", err), e.fail())
		}
		e.parts = append(e.parts, part)
	}
	return e, nil
}

// linkedNow returns a function for the other names of a file now, among those that an undo restores.
func linkedNow(files []FileUndo) func(path string) []string {
	names, ids := map[walk.ID][]string{}, map[string]walk.ID{}
	add := func(path string) {
		info, err := walk.Lstat(path)
		if id := (walk.ID{Device: info.Device, Inode: info.Inode}); err == nil && info.Kind == walk.File && info.Links > 1 && ids[path] != id {
			names[id], ids[path] = append(names[id], path), id
		}
	}
	for _, f := range files {
		add(f.Path)
		for _, name := range f.Links {
			add(name)
		}
	}
	return func(path string) []string {
		return slices.DeleteFunc(slices.Clone(names[ids[path]]), func(name string) bool { return name == path })
	}
}

// change returns the change that restores a file.
func (f FileUndo) change() PathChange {
	p := PathChange{Path: f.Path, Before: f.Expect, After: f.Restore, Content: func() ([]byte, error) { return ContentAt(f.Path, f.Expect) }}
	if at := f.kept[place{f.Principal, f.Restore.Blob}]; len(at) > 0 {
		p.at = at[0]
	}
	return p
}

// fail ends an undo that has done nothing.
func (e *UndoEntry) fail() error {
	for path := range e.files {
		e.Failed(path)
	}
	return e.End()
}

// Failed marks a file as not changed. End records it.
func (e *UndoEntry) Failed(path string) {
	if f := e.files[path]; f.part != nil {
		f.part.failed = append(f.part.failed, f.n)
	}
}

// Lost returns the reason why the present content of a file is not kept, "" if it is.
func (e *UndoEntry) Lost(path string) string {
	if f := e.files[path]; f.part != nil {
		return f.part.changes[f.n].Lost
	}
	return ""
}

// End records how the undo ended.
func (e *UndoEntry) End() (err error) {
	for _, p := range e.parts {
		if len(p.failed) > 0 {
			line, encodeErr := entryLine{ID: e.ID, State: Failed, Only: p.failed}.encode()
			err = errors.Join(err, encodeErr, p.journal.locked(func() error { return p.journal.append(line) }))
		}
		if p.full {
			e.store.tidyLater(p.journal)
		}
	}
	if err != nil { // it stays open: the next process looks at each file
		return err
	}
	return e.store.owners.end(e.ID)
}

// recordAll is record that forgets older changes to make room on a full disk, except those with the IDs in but.
func (j *journal) recordAll(s *Store, c Change, changes []PathChange, but []string) (full bool, err error) {
	record := func() error {
		if err := os.MkdirAll(j.dir, ownerDir); err != nil {
			return err
		}
		return j.locked(func() (err error) {
			full, err = j.record(c, changes)
			return err
		})
	}
	err = record()
	for isFull(err) && s.Shrink(but...) {
		err = record()
	}
	return full, err
}
