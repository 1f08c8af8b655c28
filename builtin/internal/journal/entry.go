package journal

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
)

// An Entry is the change of one file that has begun. The caller ends it with Done or Failed; the next process settles an
// entry that was not ended. A nil Entry is a change that could not be journalled and is made anyway: to end it does
// nothing.
type Entry struct {
	all    *Announced // nil if nothing is journalled
	change Change
	ended  atomic.Bool
}

// Begin sections a change before it is made. The caller writes the file only after Begin has returned, and holds the
// lock of the file from before it reads the file until the change has ended. before is the content of the file, nil
// if it does not exist; after is the new content, in any number of pieces. If c.Deleted is set, the change removes
// the file, and after is not used. Begin records the fields Principal, Scope, Tool, Path, UndoOf and the modes of c,
// and Before if the caller knows the Blob of before; it fills in the others. The content of a link is its target. For
// a directory before is nil.
//
// After an error nothing is journalled. The caller may make the change anyway, and then reports
// that it cannot be undone.
func (j *Journal) Begin(c Change, before []byte, after ...[]byte) (*Entry, error) {
	if j.cfg.Dir == "" {
		return &Entry{}, nil
	}
	if err := c.check(); err != nil {
		return nil, err
	}
	c.Path, c.UndoOf, c.After, c.UndoneBy = filepath.Clean(c.Path), slices.Clone(c.UndoOf), Blob{}, ""
	if before == nil {
		c.Before = Blob{}
	} else if c.Before.IsZero() || c.Before.Size != int64(len(before)) {
		c.Before = BlobOf(before)
	}
	p := PathChange{Path: c.Path, Content: func() ([]byte, error) { return before, nil }, known: true}
	if !c.Deleted && !c.AfterMode.IsDir() {
		c.After, p.Now = BlobOf(after...), append([][]byte{}, after...)
	}
	p.Before, p.After = c.before(), c.after()
	c.Created = p.Before.IsAbsent()
	all, err := announce(j, &c)
	if err == nil {
		err = all.add(c, []PathChange{p}, nil)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", c.Path, err)
	}
	return &Entry{all: all, change: c}, nil
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
	case e.all == nil:
		return errors.New("no history is kept")
	case e.all.Lost(e.change.Path) != "":
		return errors.New(e.all.Lost(e.change.Path))
	}
	return nil
}

// Done records that the change was made. After an error the next start determines that from the file.
func (e *Entry) Done() error { return e.end(true) }

// Failed records that the change was not made: the file is unchanged. Errors are as for [Entry.Done].
func (e *Entry) Failed() error { return e.end(false) }

// end records how the change ended. Only the first call has an effect.
func (e *Entry) end(done bool) error {
	if e == nil || e.all == nil || e.ended.Swap(true) {
		return nil
	}
	if !done {
		e.all.Failed(e.change.Path)
	}
	if err := e.all.End(); err != nil {
		return fmt.Errorf("the end of the change of %s could not be journalled: %w", e.change.Path, err)
	}
	return nil
}
