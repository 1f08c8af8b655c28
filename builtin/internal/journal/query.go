package journal

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/toolhost/toolhost/builtin/internal/text"
)

const (
	// contextLines is how many unchanged lines a diff shows around a change, and diffLines how many lines it has at most.
	contextLines = 3
	diffLines    = 2000
	// minPrefix is the least length of a prefix that identifies a change, if it is unique.
	minPrefix = 4
)

// A Filter selects changes to list. A zero field does not filter, except that Principal must be set.
type Filter struct {
	Principal string    // whose changes, or [AllPrincipals]
	Path      string    // of this file, or of those below this directory
	Scope     string    // made in this scope
	Since     time.Time // begun at this time or later
	Limit     int       // of at most so many entries
}

// List returns changes, newest first. Damaged lines of the journal are skipped.
func (j *Journal) List(f Filter) ([]Change, error) {
	all, err := j.newest(f.Principal, func(x index) bool {
		found, last := 0, ""
		for _, r := range x.records {
			if r.ID != last && matches(r.Change, f.Path, f.Scope, f.Since) {
				found, last = found+1, r.ID
			}
		}
		return f.Limit > 0 && found >= f.Limit
	})
	if err != nil {
		return nil, fmt.Errorf("the history cannot be read: %w", err)
	}
	var some []Change
	entries, last := 0, ""
	for _, r := range slices.Backward(all) {
		if !matches(r.Change, f.Path, f.Scope, f.Since) {
			continue
		}
		if r.ID != last {
			if last = r.ID; f.Limit > 0 && entries == f.Limit {
				break
			}
			entries++
		}
		some = append(some, r.Change)
	}
	return some, nil
}

func matches(c Change, path, scope string, since time.Time) bool {
	return (path == "" || isWithin(c.Path, path)) && (scope == "" || c.Scope == scope) && !c.Time.Before(since)
}

// isWithin reports whether path is root or below it.
func isWithin(path, root string) bool {
	root = filepath.Clean(root)
	rest, ok := strings.CutPrefix(path, root)
	return ok && (rest == "" || strings.HasSuffix(root, string(filepath.Separator)) || rest[0] == filepath.Separator)
}

// Show returns the changes of an entry of a principal, or of [AllPrincipals], and the diff of each. A prefix of an ID
// is enough if it is unique.
func (j *Journal) Show(principal, id string) ([]Change, []string, error) {
	all, err := j.records(principal)
	if err != nil {
		return nil, nil, fmt.Errorf("the history cannot be read: %w", err)
	}
	found, err := find(all, id)
	if err != nil {
		return nil, nil, err
	}
	kept := placesOf(all)
	var changes []Change
	var diffs []string
	for _, r := range found {
		diff := fmt.Sprintf("(what was there before is not kept: %s)\n", r.Lost)
		if r.Lost == "" {
			if diff, err = j.diff(kept, r.Principal, r.Path, r.before(), r.after()); err != nil {
				return nil, nil, err
			}
		}
		changes, diffs = append(changes, r.Change), append(diffs, diff)
	}
	return changes, diffs, nil
}

// find returns the changes of the entry with an ID, or with a unique prefix of one.
func find(all []record, id string) ([]record, error) {
	var found []record
	entries := 0
	for _, r := range all {
		if r.ID != id && (len(id) < minPrefix || !strings.HasPrefix(r.ID, id)) {
			continue
		}
		if len(found) == 0 || found[len(found)-1].ID != r.ID {
			entries++
		}
		found = append(found, r)
	}
	switch entries {
	case 0:
		return nil, fmt.Errorf("%q: %w", id, ErrUnknown)
	case 1:
		return found, nil
	}
	return nil, fmt.Errorf("%q is the prefix of %d changes: give a longer prefix of the ID", id, entries)
}

// Content returns a content of a principal, or of [AllPrincipals]. Errors are ErrNotKept and ErrDamaged, or come from
// the file system.
func (j *Journal) Content(principal string, b Blob) ([]byte, error) {
	all, err := j.records(principal)
	if err != nil {
		return nil, err
	}
	kept := placesOf(all)
	damaged := fmt.Errorf("%s: %w", b, ErrNotKept)
	for at := range kept {
		if at.Blob != b {
			continue
		}
		content, err := kept.content(j, at.principal, b)
		if err == nil || !errors.Is(err, ErrNotKept) {
			damaged = err
		}
		if err == nil {
			return content, nil
		}
	}
	return nil, damaged
}

// content is Content of one principal.
func (p places) content(j *Journal, principal string, b Blob) ([]byte, error) {
	return j.section(sectionName(principal)).content(b, p[place{principal, b}])
}

// Preview returns the diff from what a file holds to what an undo restores.
func (j *Journal) Preview(f Step) (string, error) {
	return j.diff(f.kept, f.from, f.Path, f.Expect, f.Restore)
}

// diff returns the unified diff between two nodes of a path, with a line for what a diff of contents does not show.
// If there can be no diff, because a content is binary or is not kept, it says so.
func (j *Journal) diff(kept places, principal, path string, before, after Node) (string, error) {
	note := ""
	switch {
	case before.Mode != after.Mode && before.Mode != 0 && after.Mode != 0:
		note = fmt.Sprintf("(mode %v, before %v)\n", after.Mode&^NoMode, before.Mode&^NoMode)
	case before.Mode.IsDir() || after.Mode.IsDir():
		note = "(directory)\n"
	case before.isUnread() || after.isUnread():
		note = "(not shown: it was too large to be read, or is no regular file)\n"
	}
	if before.Blob == after.Blob {
		return note, nil
	}
	var sides [2]string
	for i, n := range [...]Node{before, after} {
		if n.Blob.IsZero() {
			continue
		}
		raw, err := kept.content(j, principal, n.Blob)
		if errors.Is(err, ErrNotKept) && n.Size <= j.cfg.MaxFile {
			raw, err = ContentAt(path, n) // what a command left
		}
		if errors.Is(err, ErrNotKept) || errors.Is(err, ErrDamaged) {
			return note + fmt.Sprintf("(no diff: %v)\n", err), nil
		}
		if err != nil {
			return "", err
		}
		if text.IsBinary(raw) {
			return note + fmt.Sprintf("(no diff: binary content, from %s to %s)\n", before.Blob, after.Blob), nil
		}
		sides[i] = text.Decode(raw).String()
	}
	diff, _ := text.Diff(path, sides[0], sides[1], contextLines, diffLines)
	if diff == "" && !before.Blob.IsZero() && !after.Blob.IsZero() {
		diff = "(only the encoding or the byte-order mark differs)\n"
	}
	return note + diff, nil
}
