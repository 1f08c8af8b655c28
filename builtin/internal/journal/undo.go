package journal

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"time"
)

// A Selection selects changes to undo: those of IDs, or those that match all other fields that are set. Principal and
// at least one other field must be set.
type Selection struct {
	Principal string    // whose changes, or [AllPrincipals]
	IDs       []string  // these; the beginning of an ID does if it is the only such
	Path      string    // of this file, or of those below this directory
	Scope     string    // made in this scope
	Since     time.Time // begun at this time or later, undos included: files become what they were then
	Before    string    // the ID of a call: made by it or later, as with Since
	Last      int       // the last so many that are neither undone nor undos

	// Force also undoes changes if that loses others: Step.Loses lists them.
	Force bool
	// DryRun only plans: nothing is restored.
	DryRun bool
	// Diffs requests the diffs of the contents, in a dry run.
	Diffs bool
}

// IsRewind reports whether all changes since a time are selected.
func (sel Selection) IsRewind() bool { return sel.Before != "" || !sel.Since.IsZero() }

// An Undo is a plan to undo changes.
type Undo struct {
	Files   []Step    // in the order of restoring
	Refused []Refusal // files that cannot be restored
	// HeadMoved are the IDs of the calls that changed the commit that git has checked out.
	HeadMoved []string
}

// A Step is what an undo, a rewind or the application of a copy does at one path. The caller verifies under the lock
// of the file that it is as in Expect, after it has announced all steps, and makes it what Restore says. If Expect and
// Restore are equal nothing changes there, but the step is journalled, so that the changes count as undone.
type Step struct {
	Principal string // whose change is the newest, in whose name the undo is journalled
	Path      string
	Expect    Node     // what is there now
	Restore   Node     // what stood there before the changes
	Changes   []string // IDs, newest first
	Loses     string   // what else is lost; "" unless forced
	Gone      string   // why no undo brings back what is there now, though that is what the changes made; "" if one does
	Forced    bool     // Selection.Force
	// Links are other names of the file before the changes. Exact says that it is to lose those that it has since.
	Links []string
	Exact bool
	Names []string  // other names of the file that stands there now, as far as the caller knows them
	Begun time.Time // when the oldest of the changes may have been made
	Made  int       // how many directories above the file were made for it, and go with it if they are empty
	SetID bool      // Restore lacks set-id bits that the file had, see setID

	Staged string // the file or link that has the content of Restore; "": the journal has it

	kept places // where contents are
	from string // the principal whose change is the oldest: what was there before is kept for that one
}

// A Refusal is a file that is not restored.
type Refusal struct {
	Path   string
	Why    string
	Forced bool // Selection.Force would restore it
}

// PlanUndo plans the undo of changes, newest first; several changes of a file become one. A file is refused if it is
// not as the newest of them left it, if there are other changes between them, or if its old content is not kept.
func (j *Journal) PlanUndo(sel Selection) (*Undo, error) {
	if j.cfg.Dir == "" {
		return nil, errors.New("no history is kept, so nothing can be undone")
	}
	j.recover() // another host may have been killed since this one started
	all, err := j.records(sel.Principal)
	if err != nil {
		return nil, fmt.Errorf("the history cannot be read: %w", err)
	}
	chosen, err := sel.choose(all)
	if err != nil {
		return nil, err
	}
	sorted := func(some []record) []record {
		return slices.SortedStableFunc(slices.Values(some), func(a, b record) int { return a.to().Compare(b.to()) })
	}
	all, chosen = sorted(all), sorted(chosen)
	var order []string
	changes := make(map[string][]record) // by path
	for _, r := range slices.Backward(chosen) {
		if changes[r.Path] == nil {
			order = append(order, r.Path)
		}
		changes[r.Path] = append(changes[r.Path], r)
	}
	u := new(Undo)
	for _, r := range chosen {
		if r.HeadMoved && !slices.Contains(u.HeadMoved, r.ID) {
			u.HeadMoved = append(u.HeadMoved, r.ID)
		}
	}
	kept := placesOf(all)
	for _, path := range order {
		if err := j.planFile(u, changes[path], all, kept, sel.Force); err != nil {
			return nil, err
		}
	}
	slices.SortStableFunc(u.Files, InOrder)
	part(u.Files)
	return u, nil
}

// InOrder compares steps by the order in which they are made: first removals, a directory after its content; then
// directories, parents first.
func InOrder(a, b Step) int {
	rank := func(f Step) int {
		switch {
		case f.Restore.IsAbsent():
			return 0
		case f.Restore.Mode.IsDir():
			return 1
		}
		return 2
	}
	if d := cmp.Compare(rank(a), rank(b)); d != 0 {
		return d
	}
	switch rank(a) {
	case 0:
		return strings.Compare(b.Path, a.Path)
	case 1:
		return strings.Compare(a.Path, b.Path)
	}
	return 0
}

// choose returns the changes to undo, oldest first.
func (sel Selection) choose(all []record) ([]record, error) {
	filtered := sel.Path != "" || sel.Scope != "" || sel.IsRewind() || sel.Last != 0
	switch {
	case len(sel.IDs) > 0 && filtered:
		return nil, errors.New("give the IDs of changes, or say which to undo by other means, not both")
	case len(sel.IDs) > 0:
		return chooseIDs(all, sel.IDs)
	case !filtered || sel.Last < 0:
		return nil, errors.New("no changes to undo were named")
	}
	if sel.Before != "" {
		first, err := find(all, sel.Before)
		if err != nil {
			return nil, err
		}
		if !slices.ContainsFunc(first, func(r record) bool { return sel.Path == "" || isWithin(r.Path, sel.Path) }) {
			return nil, fmt.Errorf("call %s changed nothing in %s, but %s: run this there, or name that path",
				sel.Before, sel.Path, first[0].Path)
		}
		sel.Since = first[0].Time
	}
	var some []record
	within := make(map[string]bool)
	for _, r := range all {
		if r.State != Failed && matches(r.Change, sel.Path, sel.Scope, sel.Since) {
			some = append(some, r)
			within[r.ID] = true
		}
	}
	// A change that an undo outside the selection has undone is not undone again. If that undo is selected too, both
	// cancel out.
	some = slices.DeleteFunc(some, func(r record) bool {
		return r.UndoneBy != "" && !within[r.UndoneBy] || sel.Last > 0 && (r.UndoneBy != "" || len(r.UndoOf) > 0)
	})
	if sel.Last > 0 {
		some = lastEntries(some, sel.Last)
	}
	return some, nil
}

// lastEntries returns the changes of the last n entries.
func lastEntries(all []record, n int) []record {
	from := len(all)
	for from > 0 && n >= 0 {
		if from == len(all) || all[from-1].ID != all[from].ID {
			if n--; n < 0 {
				break
			}
		}
		from--
	}
	return all[from:]
}

// chooseIDs returns the changes of these IDs, oldest first.
func chooseIDs(all []record, ids []string) ([]record, error) {
	within := make(map[string]bool)
	for _, id := range ids {
		found, err := find(all, id)
		if err != nil {
			return nil, err
		}
		within[found[0].ID] = true
	}
	var some []record
	var undone error // why nothing is left of an entry
	for _, r := range all {
		if !within[r.ID] {
			continue
		}
		switch {
		case r.State == Failed:
			undone = fmt.Errorf("change %s of %s was not made: there is nothing to undo", r.ID, r.Path)
		case r.UndoneBy != "" && !within[r.UndoneBy]:
			undone = fmt.Errorf("change %s of %s has been undone by %s: undo that to have it back", r.ID,
				r.Path, r.UndoneBy)
		default:
			some = append(some, r)
		}
	}
	for id := range within {
		if undone != nil && !slices.ContainsFunc(some, func(r record) bool { return r.ID == id }) {
			return nil, undone
		}
	}
	return some, nil
}

// planFile adds the undo of one file to u. Its changes are given newest first.
func (j *Journal) planFile(u *Undo, changes, all []record, kept places, force bool) error {
	newest, oldest := changes[0], changes[0]
	for _, r := range changes[1:] {
		if !r.from().After(oldest.from()) { // of commands that overlapped, the one that began first
			oldest = r
		}
	}
	f := Step{Principal: newest.Principal, Path: newest.Path, Expect: newest.after(), Restore: oldest.before(),
		Forced: force, kept: kept, from: oldest.Principal, Links: oldest.Links, Made: oldest.Made, Begun: oldest.from()}
	if f.Restore.IsFile() && f.Restore.Mode == 0 {
		f.Restore.Mode = modeBefore(changes)
	}
	f.Exact = oldest.before().Mode != 0 // else it was written in place, under all names
	if kept := f.Restore.Mode &^ setID(f.Restore.Mode); kept != f.Restore.Mode {
		f.Restore.Mode, f.SetID = kept, true
	}
	pending := ""
	for _, r := range changes {
		f.Changes = append(f.Changes, r.ID)
		if r.State == Pending {
			pending = r.ID
		}
	}
	refuse := func(why string, forced bool) error {
		u.Refused = append(u.Refused, Refusal{Path: f.Path, Why: why, Forced: forced})
		return nil
	}
	if pending != "" {
		return refuse(fmt.Sprintf("change %s of it is being made: undo it once it has ended", pending), false)
	}
	if oldest.Lost != "" {
		return refuse(fmt.Sprintf("what stood there before change %s is not kept: %s", oldest.ID, oldest.Lost), false)
	}
	now, err := NodeAt(f.Path)
	if err == nil && oldest.before().Mode == 0 && now.IsFile() && now.Mode == f.Restore.Mode {
		f.Restore.Mode = 0 // so that all names of the file get the content, as with the edit
	}
	if err == nil && f.Restore.Mode&fs.ModeIrregular != 0 {
		return refuse(fmt.Sprintf("before change %s it was no regular file, or could not be read: that is not kept",
			oldest.ID), false)
	}
	if err == nil && now.Mode&fs.ModeIrregular != 0 && !now.same(f.Expect) || !now.IsFile() && !now.IsAbsent() &&
		newest.AfterMode|f.Restore.Mode == 0 {
		err = errOther
	}
	if err != nil {
		return refuse(fmt.Sprintf("it cannot be restored: %v", err), false)
	}
	if !now.same(f.Restore) { // else by hand, or the changes cancel out
		loses := append(between(changes, all), sharing(changes, all)...)
		if !now.same(f.Expect) {
			loses = append(loses, drift(newest, all))
		} else if newest.after().isUnread() {
			f.Gone = j.cfg.notKept(now)
		}
		f.Loses = strings.Join(loses, "; ")
	}
	if f.Loses != "" && !force {
		return refuse(f.Loses, true)
	}
	f.Expect = now
	if !now.same(f.Restore) && !f.Restore.IsZero() {
		if _, err := j.Restored(f); errors.Is(err, ErrNotKept) || errors.Is(err, ErrDamaged) {
			return refuse(fmt.Sprintf("what it held before change %s cannot be restored: %v", oldest.ID, err), false)
		} else if err != nil {
			return err
		}
	}
	u.Files = append(u.Files, f)
	return nil
}

// modeBefore returns the mode of a file before changes of which the oldest is an edit, which keeps the mode and does
// not tell it. They are given newest first. It is zero if none of them tells it.
func modeBefore(changes []record) fs.FileMode {
	for _, r := range slices.Backward(changes) {
		if before := r.before(); before.IsFile() && before.Mode != 0 {
			return before.Mode
		}
	}
	return 0
}

// setID returns the bits of a mode that an undo does not restore. They give a program the rights of the owner or the
// group of its file, and the history does not know whether a person set them. In a directory the set-group-ID bit says
// the group of new files.
func setID(mode fs.FileMode) fs.FileMode {
	if mode.IsDir() {
		return fs.ModeSetuid
	}
	return fs.ModeSetuid | fs.ModeSetgid
}

// notKept returns the reason why an undo does not keep a node; "" if it does.
func (c *Config) notKept(n Node) string {
	switch {
	case n.Mode&fs.ModeIrregular != 0:
		return "it is a pipe, a socket or a device"
	case n.Size > c.MaxFile:
		return fmt.Sprintf("it has more than the %d MiB that the history keeps of a file", c.MaxFile>>20)
	}
	return ""
}

// Restored returns the content of Restore, which must not be zero. Errors are those of [Journal.Content].
func (j *Journal) Restored(f Step) ([]byte, error) {
	return f.kept.content(j, f.from, f.Restore.Blob)
}

// between describes other changes of a file between some changes of it, which are given newest first.
func between(changes, all []record) []string {
	var loses []string
	for i, r := range changes {
		if r.State == Unknown {
			loses = append(loses, fmt.Sprintf("the host was killed during change %s, and what the file held then is unknown",
				r.ID))
		}
		if i == 0 || changes[i-1].before().same(r.after()) || changes[i-1].overlaps(r) {
			continue
		}
		newer := changes[i-1]
		if ids := others(all, r, newer.ID); len(ids) > 0 {
			loses = append(loses, fmt.Sprintf("between %s and %s it was also changed by %s", r.ID, newer.ID,
				strings.Join(ids, ", ")))
		} else {
			loses = append(loses, fmt.Sprintf("between %s and %s it was also changed by something outside the history",
				r.ID, newer.ID))
		}
	}
	return loses
}

// drift describes what happened to a file after the newest of the changes to undo.
func drift(newest record, all []record) string {
	if after := newest.after(); after.isUnread() && after.Stamp == "" {
		return fmt.Sprintf("what change %s left there was not read, so that it cannot be told whether that has changed since",
			newest.ID)
	}
	if ids := others(all, newest, ""); len(ids) > 0 {
		return fmt.Sprintf("it was changed after %s by %s: undo that too", newest.ID, strings.Join(ids, ", "))
	}
	return fmt.Sprintf("it was changed after %s by something outside the history", newest.ID)
}

// others returns the IDs of the changes of a file that are in effect, after one of them and up to another, or to the
// end if that is "".
func others(all []record, after record, until string) []string {
	var ids []string
	begun := false
	for _, r := range all {
		switch {
		case r.ID == after.ID:
			begun = true
		case begun && r.ID == until:
			return ids
		case begun && r.Path == after.Path && r.State != Failed && r.UndoneBy == "":
			ids = append(ids, r.ID)
		}
	}
	return ids
}
