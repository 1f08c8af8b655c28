package journal

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"time"
)

// maxCommand is how much of a command line the journal keeps, in bytes.
const maxCommand = 4 << 10

// A Call is the journal's record of a command.
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

// A PathChange is the change of one path.
type PathChange struct {
	Path          string // absolute
	Before, After Node
	Lost          string // why what stood there before cannot be restored; "" if it can
	Content       func() ([]byte, error)
	Now           [][]byte  // the content of After in pieces, if it is to be kept; nil: it is not
	From, To      time.Time // of [Change]
	Links         []string  // of [Change]

	at    location // where the content of After is kept, if it is
	known bool     // Content returns what Before describes, and need not be checked
}

// An Entry is what one call changes, under one ID. It is on disk before the first file changes, and until the caller
// ends it with End, or Settle for a command. The next process settles an entry that was not ended. A nil Entry is a
// change that could not be journalled and is made anyway.
type Entry struct {
	journal *Journal // nil if nothing is journalled
	Running          // its ID, and of a command what was announced
	taken   string   // from this file of a killed host
	parts   []*entryPart
	ended   atomic.Bool
}

// An entryPart is the part of an entry that belongs to one principal.
type entryPart struct {
	section *section
	changes []PathChange
	full    bool // the section must be tidied
}

// Begin announces the change of one file. The caller writes the file only after Begin has returned, and holds the
// lock of the file from before it reads the file until the change has ended. before is the content of the file, nil
// if it does not exist; after is the new content, in any number of pieces. If c.Deleted is set, the change removes
// the file, and after is not used. Begin records the fields Principal, Scope, Tool, Path, UndoOf, Made and the modes
// of c, and Before if the caller knows the Blob of before. Links are other names of the file, which change with it. The
// content of a link is its target. For a directory before is nil.
//
// After an error nothing is journalled. The caller may make the change anyway, and then reports that it cannot be
// undone.
func (j *Journal) Begin(c Change, before []byte, after ...[]byte) (*Entry, error) {
	if j.cfg.Dir == "" {
		return &Entry{}, nil
	}
	if !filepath.IsAbs(c.Path) {
		return nil, fmt.Errorf("a change of %q cannot be journalled: the path must be absolute", c.Path)
	}
	p := PathChange{Path: filepath.Clean(c.Path), Before: Node{Mode: c.BeforeMode}, known: true,
		Content: func() ([]byte, error) { return before, nil }}
	switch {
	case before == nil:
	case c.Before.Size == int64(len(before)) && !c.Before.IsZero():
		p.Before.Blob = c.Before
	default:
		p.Before.Blob = BlobOf(before)
	}
	if !c.Deleted {
		p.After.Mode = c.AfterMode
	}
	if !c.Deleted && !c.AfterMode.IsDir() {
		p.After.Blob, p.Now = BlobOf(after...), append([][]byte{}, after...)
	}
	e, err := j.announce(&c)
	if err == nil {
		err = e.add(c, withNames(p, c.Links), nil)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", c.Path, err)
	}
	return e, nil
}

// BeginSteps announces an undo, a rewind, or the application of a copy, and keeps the contents that it replaces. Its
// parts belong to the principals of the steps. It records the fields Scope, Tool and Command of c. After an error
// nothing is journalled.
func (j *Journal) BeginSteps(c Change, files []Step) (*Entry, error) {
	if j.cfg.Dir == "" || len(files) == 0 {
		return &Entry{}, nil
	}
	e, err := j.announce(&c)
	if err != nil {
		return nil, err
	}
	files = slices.SortedStableFunc(slices.Values(files),
		func(a, b Step) int { return strings.Compare(a.Principal, b.Principal) })
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

// Announce announces a command, whose changes are not known before its end. The entry can be settled after an error
// too: then nothing is known of the command if this process is killed.
func (j *Journal) Announce(r Running) (*Entry, error) {
	r.ID, r.PID, r.Begun, r.Command = shortID(), os.Getpid(), r.Begun.UTC().Round(0), shortened(r.Command)
	e := &Entry{Running: r}
	if j.cfg.Dir == "" {
		return e, nil
	}
	e.journal = j
	about, err := json.Marshal(r)
	if err == nil {
		err = j.owner.begin(r.ID, about)
	}
	return e, err
}

// announce begins an entry without files.
func (j *Journal) announce(c *Change) (*Entry, error) {
	c.ID, c.Time, c.State, c.Command = shortID(), time.Now().UTC().Round(0), Pending, shortened(c.Command)
	return &Entry{Running: Running{ID: c.ID}, journal: j}, j.owner.begin(c.ID, nil)
}

// shortened is the part of a command line that the journal keeps.
func shortened(command string) string {
	return strings.ToValidUTF8(command[:min(len(command), maxCommand)], "\uFFFD")
}

// add journals the part of one principal. Old changes may be forgotten to make room for it, but not those with the IDs
// in but. After an error the entry has ended.
func (e *Entry) add(c Change, changes []PathChange, but []string) (err error) {
	part := &entryPart{e.journal.section(sectionName(c.Principal)), changes, false}
	if c.Principal == "" || strings.ContainsRune(c.Principal, 0) {
		err = fmt.Errorf("a change by the principal %q cannot be journalled", c.Principal)
	} else if part.full, err = part.section.recordAll(e.journal, c, changes, but); err != nil {
		err = fmt.Errorf("the change could not be journalled: %w", err)
	}
	if err != nil {
		return errors.Join(err, e.Abort())
	}
	e.parts = append(e.parts, part)
	return nil
}

// change returns the change that restores a file.
func (f Step) change() PathChange {
	p := PathChange{Path: f.Path, Before: f.Expect, After: f.Restore,
		Content: func() ([]byte, error) { return ContentAt(f.Path, f.Expect) }}
	if f.Restore.IsFile() && f.Restore.Mode == 0 && f.Expect.IsFile() && f.Restore.Blob != f.Expect.Blob {
		p.Before.Mode = 0 // all names of the file get the content, and do so again when this is undone
	}
	if at := f.kept[place{f.Principal, f.Restore.Blob}]; len(at) > 0 {
		p.at = at[0]
	}
	if f.Staged != "" && f.Restore.Mode.Type() == fs.ModeSymlink {
		target, _ := os.Readlink(f.Staged) // an error shows when it is restored
		p.Now = [][]byte{[]byte(target)}
	}
	return p
}

// After identifies the content that a change of one file leaves; it is zero if that was not journalled.
func (e *Entry) After() Blob {
	if e == nil || len(e.parts) == 0 {
		return Blob{}
	}
	return e.parts[0].changes[0].After.Blob
}

// Lost returns why the present contents of files are not kept, by path; those of the others are.
func (e *Entry) Lost() map[string]string {
	lost := map[string]string{}
	for _, p := range e.parts {
		for _, c := range p.changes {
			if c.Lost != "" {
				lost[c.Path] = c.Lost
			}
		}
	}
	return lost
}

// Undoable returns why the change of one file cannot be undone, or nil if it can be.
func (e *Entry) Undoable() error {
	switch {
	case e == nil:
		return errors.New("it could not be journalled")
	case e.journal == nil:
		return errors.New("no history is kept")
	}
	for _, why := range e.Lost() {
		return errors.New(why)
	}
	return nil
}

// End records that the change was made, except in the files that are named: they are as they were. After an error the
// next process looks at each file. Only the first call has an effect.
func (e *Entry) End(unchanged ...string) error { return e.end(unchanged, len(unchanged) > 0) }

// Abort records that nothing was changed. Errors are as for End.
func (e *Entry) Abort() error { return e.end(nil, true) }

// end ends an entry. If failed is set, the named files were not changed, or without names none of its files.
func (e *Entry) end(files []string, failed bool) (err error) {
	if e == nil || e.journal == nil || e.ended.Swap(true) {
		return nil
	}
	named := make(map[string]bool, len(files))
	for _, path := range files {
		named[path] = true
	}
	for _, p := range e.parts {
		line := entryLine{ID: e.ID, State: Failed}
		for n, c := range p.changes {
			if failed && (len(files) == 0 || named[c.Path]) {
				line.Only = append(line.Only, n)
			}
		}
		if len(line.Only) > 0 {
			raw, encodeErr := line.encode()
			err = errors.Join(err, encodeErr, p.section.locked(func() error { return p.section.append(raw) }))
		}
		if p.full {
			e.journal.tidyLater(p.section)
		}
	}
	if err == nil {
		err = e.journal.owner.end(e.ID)
	}
	if err != nil {
		return fmt.Errorf("the end of change %s could not be journalled: %w", e.ID, err)
	}
	return nil
}

// Settle ends the entry of a command. It records the changes that were seen while the command ran, and returns those
// that are its own: see [Journal.own]. The content from before is kept; of the content now only the hash is recorded.
// After an error an entry that was taken over has not ended.
func (e *Entry) Settle(call Call, changes []PathChange) (own []PathChange, err error) {
	if e.journal == nil {
		return changes, nil
	}
	if own, err = e.record(call, changes); e.taken == "" || err == nil {
		err = errors.Join(err, e.end(nil, false))
	}
	if e.taken != "" && err == nil {
		e.journal.tidied(e.journal.sweepRooms())
	}
	return own, err
}

// record is Settle, and does not end the entry.
func (e *Entry) record(call Call, changes []PathChange) ([]PathChange, error) {
	if e.taken != "" {
		all, err := e.journal.records(e.Principal)
		recorded := slices.ContainsFunc(all, func(r record) bool { return r.ID == e.ID }) // and its host killed then
		if err != nil || recorded {
			return nil, err
		}
	}
	r := e.Running
	c := Change{ID: r.ID, Principal: r.Principal, Scope: r.Scope, Tool: r.Tool, Time: r.Begun, Open: r.Open,
		State: Done, Call: call}
	c.Command, c.Lasting, c.Ended = r.Command, r.Lasting, time.Now().UTC().Round(0)
	changes, err := e.journal.own(&c, r.Roots, changes)
	if err != nil || len(changes) == 0 {
		return changes, err
	}
	part := &entryPart{e.journal.section(sectionName(c.Principal)), changes, false}
	part.full, err = part.section.recordAll(e.journal, c, changes, nil)
	e.parts = append(e.parts, part)
	return changes, err
}
