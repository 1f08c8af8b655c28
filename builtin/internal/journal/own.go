package journal

import (
	"cmp"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// announceTime bounds how much older the time of an entry is than its line in the index: in between it waits for locks.
const announceTime = time.Minute

// OpenEntries returns the IDs of the entries that have begun and not ended, in this process and others.
func (j *Journal) OpenEntries() []string {
	if j.cfg.Dir == "" {
		return nil
	}
	return slices.Collect(maps.Keys(j.owner.open()))
}

// from and to bound the time in which a change was made. For Edit and Write both are the time of the entry.
func (c Change) from() time.Time {
	if c.From.IsZero() {
		return c.Time
	}
	return c.From
}

func (c Change) to() time.Time {
	switch {
	case !c.To.IsZero():
		return c.To
	case !c.Ended.IsZero():
		return c.Ended
	}
	return c.Time
}

// isObserved reports whether a change was seen while a command ran, and not made by the host.
func (c Change) isObserved() bool { return !c.Ended.IsZero() }

// own returns which of the changes that were seen while a command ran are its own. What another call announced is
// that call's: an Edit or Write, an undo, and for a lasting command also the commands that ran meanwhile. It sets
// Overlaps of c.
func (j *Journal) own(c *Change, roots []string, changes []PathChange) ([]PathChange, error) {
	seen := map[string]bool{}
	for _, p := range changes {
		seen[filepath.Clean(p.Path)] = true
	}
	back, err := j.changedBack(c, roots, seen)
	if err != nil {
		return nil, err
	}
	for _, p := range back {
		seen[p.Path] = true
	}
	if len(seen) == 0 {
		return nil, nil
	}
	recent, err := j.recorded(c.Time.Add(-announceTime))
	if err != nil {
		return nil, err
	}
	announced := map[string][]record{}
	for _, r := range recent {
		switch {
		case r.ID == c.ID || !seen[r.Path] || r.State != Done && r.State != Pending ||
			r.from().After(c.Ended) || r.Lasting:
		case r.from().Before(c.Time) && !r.isObserved() && !slices.Contains(c.Open, r.ID): // it was made before
		case r.isObserved() && !c.Lasting:
			if !r.Ended.Before(c.Time) && !slices.Contains(c.Overlaps, r.ID) {
				c.Overlaps = append(c.Overlaps, r.ID)
			}
		case r.isObserved() && r.Time.Before(c.Time): // it ran before, or was not part of this one
		default:
			announced[r.Path] = append(announced[r.Path], r)
		}
	}
	if err := j.addRunning(c, slices.Concat(changes, back)); err != nil {
		return nil, err
	}
	var own []PathChange
	others := map[string]bool{}
	for _, p := range changes {
		some := j.split(p, announced[filepath.Clean(p.Path)], c)
		if own = append(own, some...); len(some) == 0 {
			others[filepath.Clean(p.Path)] = true
		}
	}
	return withoutDirs(append(own, back...), others), nil
}

// changedBack returns the changes of files that the host wrote while a command ran, and that hold again what they held
// before: the command was not seen to change them.
func (j *Journal) changedBack(c *Change, roots []string, seen map[string]bool) (back []PathChange, err error) {
	sections, err := j.of(AllPrincipals)
	if err != nil || !slices.ContainsFunc(sections, func(s *section) bool { return s.writtenSince(c.Time) }) {
		return nil, err
	}
	recent, err := j.recorded(c.Time)
	if err != nil {
		return nil, err
	}
	last := map[string]record{}
	for _, r := range recent {
		within := slices.ContainsFunc(roots, func(root string) bool { return isWithin(r.Path, root) })
		if within && !seen[r.Path] && r.State == Done && !r.isObserved() && !r.from().Before(c.Time) &&
			!r.from().After(c.Ended) && !r.from().Before(last[r.Path].from()) {
			last[r.Path] = r
		}
	}
	for path, r := range last {
		if now, err := NodeAt(path); err == nil && !now.isUnread() && !now.same(r.after()) && now.same(r.before()) {
			back = append(back, PathChange{Path: path, Before: withMode(r.after(), now), After: now, From: r.to().Add(1),
				Content: func() ([]byte, error) {
					return j.section(sectionName(r.Principal)).content(r.After, r.at[1:])
				}})
		}
	}
	return back, nil
}

// recorded returns the changes that were recorded since a time, and some of those before. Few are read if it is recent.
func (j *Journal) recorded(since time.Time) ([]record, error) {
	return j.newest(AllPrincipals, func(x index) bool {
		return len(x.records) > 0 && x.records[0].recorded().Before(since)
	})
}

// addRunning adds the other commands that run and may have made the changes.
func (j *Journal) addRunning(c *Change, changes []PathChange) error {
	return j.eachRunning(false, func(_ string, r Running, _ bool) {
		if r.ID == c.ID || r.Lasting || c.Lasting || !slices.ContainsFunc(r.Roots, func(root string) bool {
			return slices.ContainsFunc(changes, func(p PathChange) bool { return isWithin(p.Path, root) })
		}) {
			return
		}
		c.Overlaps = append(c.Overlaps, r.ID)
	})
}

// split returns the parts of a change that none of the announced changes of the path made.
func (j *Journal) split(p PathChange, announced []record, c *Change) []PathChange {
	slices.SortStableFunc(announced, func(a, b record) int { return a.to().Compare(b.to()) })
	for len(announced) > 0 { // those that were announced, but made only after the command's files were read
		last := announced[len(announced)-1]
		if last.after().same(p.After) || last.State == Done && !last.before().same(p.After) {
			break
		}
		announced = announced[:len(announced)-1]
		p.To = last.from().Add(-1)
	}
	part := p
	var parts []PathChange
	end := func(now Node, at time.Time) {
		if !part.Before.same(now) {
			part.After, part.To, part.at, part.Now = now, at, location{}, nil
			parts = append(parts, part)
		}
	}
	matched := false
	var made time.Time // when the last announced change was made
	for _, r := range announced {
		before, after := withMode(r.before(), part.Before), withMode(r.after(), part.Before)
		if r.from().Before(c.Time) && !before.same(part.Before) || before.same(after) {
			continue // it was made just before the command began
		}
		if !matched || !r.from().Before(made) { // else the two commands overlapped
			end(before, r.from().Add(-1))
		}
		part = PathChange{Path: p.Path, Before: after, From: r.to().Add(1), To: p.To, Content: func() ([]byte, error) {
			return j.section(sectionName(r.Principal)).content(r.After, r.at[1:])
		}}
		matched, made = true, r.to()
	}
	if !matched {
		return []PathChange{p}
	}
	if !part.Before.same(p.After) {
		part.After, part.at, part.Now = p.After, p.at, p.Now
		parts = append(parts, part)
	}
	return parts
}

// withMode is a node with the mode that a file had before, if it does not tell its own.
func withMode(n, before Node) Node {
	if n.Mode == 0 && !n.IsAbsent() && before.IsFile() {
		n.Mode = before.Mode
	}
	return n
}

// withoutDirs leaves out new directories that hold changes of others and nothing else of the command.
func withoutDirs(own []PathChange, others map[string]bool) []PathChange {
	if len(others) == 0 {
		return own
	}
	needed := map[string]bool{} // directories that hold something of the command
	foreign := map[string]bool{}
	mark := func(path string, in map[string]bool) {
		for dir := filepath.Dir(path); !in[dir] && dir != filepath.Dir(dir); dir = filepath.Dir(dir) {
			in[dir] = true
		}
	}
	for path := range others {
		mark(path, foreign)
	}
	var kept []PathChange
	slices.SortStableFunc(own, func(a, b PathChange) int { return cmp.Compare(depth(b.Path), depth(a.Path)) })
	for _, p := range own {
		path := filepath.Clean(p.Path)
		if p.Before.IsAbsent() && p.After.Mode.IsDir() && foreign[path] && !needed[path] {
			continue
		}
		mark(path, needed)
		kept = append(kept, p)
	}
	slices.SortStableFunc(kept, func(a, b PathChange) int { return strings.Compare(a.Path, b.Path) })
	return kept
}

func depth(path string) int { return strings.Count(path, string(filepath.Separator)) }

// recorded is when the entry of a change was written.
func (c Change) recorded() time.Time {
	if c.isObserved() {
		return c.Ended
	}
	return c.Time
}

// sharing describes the other commands that may have made one of the changes, because they ran at the same time. They
// are not among the changes to undo.
func sharing(changes, all []record) (loses []string) {
	for _, r := range changes {
		for _, o := range all {
			switch {
			case o.Path != r.Path || o.State == Failed || o.UndoneBy != "" || !r.overlaps(o):
			case slices.ContainsFunc(changes, func(c record) bool { return c.ID == o.ID }):
			default:
				loses = append(loses, "it changed while "+r.ID+" and "+o.ID+
					" ran at the same time, and either may have done that: undo both")
			}
		}
	}
	return slices.Compact(loses)
}

// overlaps reports whether two commands ran at the same time when a path changed, so that either may have made the
// change. If one of them left the path as it was, it may have changed it before the other one looked.
func (r record) overlaps(o record) bool {
	if !slices.Contains(r.Overlaps, o.ID) && !slices.Contains(o.Overlaps, r.ID) {
		return false
	}
	return r.before().same(r.after()) || o.before().same(o.after()) ||
		!r.after().same(o.before()) && !o.after().same(r.before())
}
