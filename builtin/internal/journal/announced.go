package journal

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/toolhost/toolhost/builtin/internal/search/walk"
)

// An Announced is a change of several files that has begun: one entry, with one ID, for all of them. End ends it. The
// next process settles an entry that was not ended, each file by its content.
type Announced struct {
	ID    string
	store *Journal
	parts []*announcedPart
	files map[string]announcedFile // by path
}

// An announcedPart is the part of an entry that belongs to one principal.
type announcedPart struct {
	section *section
	changes []PathChange
	failed  []int
	full    bool // the section must be tidied
}

// An announcedFile is one of the changes of a part.
type announcedFile struct {
	part *announcedPart
	n    int
}

// BeginAll records a change of several files before it is made; it keeps their contents. It records the fields
// Principal, Scope, Tool and Command of c. After an error nothing is journalled.
func BeginAll(j *Journal, c Change, changes []PathChange) (*Announced, error) {
	if j.cfg.Dir == "" || len(changes) == 0 {
		return &Announced{}, nil
	}
	e, err := announce(j, &c)
	if err != nil {
		return nil, err
	}
	return e, e.add(c, changes, nil)
}

// BeginUndo is BeginAll for an undo, whose parts belong to the principals of the files.
func BeginUndo(j *Journal, c Change, files []FileUndo) (*Announced, error) {
	e, err := announce(j, &c)
	if err != nil {
		return nil, err
	}
	files = slices.SortedStableFunc(slices.Values(files),
		func(a, b FileUndo) int { return strings.Compare(a.Principal, b.Principal) })
	var undone []string
	linked := linkedNow(files)
	for _, f := range files {
		undone = append(undone, f.Changes...)
	}
	for i := 0; i < len(files); {
		own := c
		own.Principal = files[i].Principal
		var changes []PathChange
		for ; i < len(files) && files[i].Principal == own.Principal; i++ {
			own.UndoOf = append(own.UndoOf, files[i].Changes...)
			change := files[i].change()
			change.Links = linked(change.Path)
			changes = append(changes, change)
		}
		slices.Sort(own.UndoOf)
		own.UndoOf = slices.Compact(own.UndoOf)
		if err := e.add(own, changes, undone); err != nil {
			return nil, err
		}
	}
	return e, nil
}

// announce begins an entry without files.
func announce(j *Journal, c *Change) (*Announced, error) {
	c.ID, c.Time, c.State, c.Command = shortID(), time.Now().UTC().Round(0), Pending, shortened(c.Command)
	e := &Announced{ID: c.ID, store: j, files: map[string]announcedFile{}}
	if err := j.owners.begin(c.ID, j.cfg.Sync); err != nil {
		return nil, errors.Join(err, j.owners.end(c.ID))
	}
	return e, nil
}

// add records the part of one principal. Changes with the IDs in but are not forgotten for it. After an error the
// entry has ended.
func (e *Announced) add(c Change, changes []PathChange, but []string) (err error) {
	part := &announcedPart{section: e.store.section(sectionName(c.Principal)), changes: changes}
	for n, p := range changes {
		e.files[p.Path] = announcedFile{part, n}
	}
	if part.full, err = part.section.recordAll(e.store, c, changes, but); err != nil {
		return errors.Join(fmt.Errorf("the change could not be journalled: %w", err), e.fail())
	}
	e.parts = append(e.parts, part)
	return nil
}

// linkedNow returns a function for the other names of a file now, among those that an undo restores.
func linkedNow(files []FileUndo) func(path string) []string {
	names, ids := map[walk.ID][]string{}, map[string]walk.ID{}
	add := func(path string) {
		info, err := walk.Lstat(path)
		if id := (walk.ID{Device: info.Device, Inode: info.Inode}); err == nil && info.Kind == walk.File &&
			info.Links > 1 && ids[path] != id {
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
	p := PathChange{Path: f.Path, Before: f.Expect, After: f.Restore,
		Content: func() ([]byte, error) { return ContentAt(f.Path, f.Expect) }}
	if at := f.kept[place{f.Principal, f.Restore.Blob}]; len(at) > 0 {
		p.at = at[0]
	}
	return p
}

// fail ends an entry whose change was not begun.
func (e *Announced) fail() error {
	for path := range e.files {
		e.Failed(path)
	}
	return e.End()
}

// Failed marks a file as not changed. End records it.
func (e *Announced) Failed(path string) {
	if f := e.files[path]; f.part != nil {
		f.part.failed = append(f.part.failed, f.n)
	}
}

// Lost returns the reason why the present content of a file is not kept, "" if it is.
func (e *Announced) Lost(path string) string {
	if f := e.files[path]; f.part != nil {
		return f.part.changes[f.n].Lost
	}
	return ""
}

// End records how the change ended.
func (e *Announced) End() (err error) {
	if e.store == nil {
		return nil
	}
	for _, p := range e.parts {
		if len(p.failed) > 0 {
			line, encodeErr := entryLine{ID: e.ID, State: Failed, Only: p.failed}.encode()
			err = errors.Join(err, encodeErr, p.section.locked(func() error { return p.section.append(line) }))
		}
		if p.full {
			e.store.tidyLater(p.section)
		}
	}
	if err != nil { // it stays open: the next process looks at each file
		return err
	}
	return e.store.owners.end(e.ID)
}

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
