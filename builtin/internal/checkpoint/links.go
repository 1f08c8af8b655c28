package checkpoint

import (
	"slices"

	"github.com/toolhost/toolhost/builtin/internal/search/walk"
)

// links are the names of the files that have several. A name that a file has lost is kept as false while commands
// run: what they changed is told with the names from before.
type links struct {
	names map[walk.ID]map[string]bool
	lost  bool // some are false
}

func idOf(e *entry) walk.ID { return walk.ID{Device: e.stamp.Device, Inode: e.stamp.Inode} }

// hasNames reports whether an entry is a file with several names.
func hasNames(e *entry) bool {
	return e != nil && e.state.Kind == File && e.stamp.Links > 1 && e.stamp.Inode != 0
}

// put notes that a path is a name of the file of e, and no longer of that of was.
func (l *links) put(path string, was, e *entry, marked bool) {
	if hasNames(was) && !(hasNames(e) && idOf(was) == idOf(e)) {
		l.gone(path, was, marked)
	}
	if !hasNames(e) {
		return
	}
	if l.names == nil {
		l.names = map[walk.ID]map[string]bool{}
	}
	if l.names[idOf(e)] == nil {
		l.names[idOf(e)] = map[string]bool{}
	}
	l.names[idOf(e)][path] = true
}

// gone notes that a path is not a name of the file of e any more.
func (l *links) gone(path string, e *entry, marked bool) {
	names := l.names[idOf(e)]
	switch {
	case !names[path]:
	case marked:
		names[path], l.lost = false, true
	default:
		if delete(names, path); len(names) == 0 {
			delete(l.names, idOf(e))
		}
	}
}

// others returns the other names of the file of e, with those that it has lost if lost is set.
func (l *links) others(path string, e *entry, lost bool) (names []string) {
	if !hasNames(e) {
		return nil
	}
	for name, is := range l.names[idOf(e)] {
		if name != path && (is || lost) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// forget forgets the names that were lost.
func (l *links) forget() {
	if !l.lost {
		return
	}
	for id, names := range l.names {
		for name, is := range names {
			if !is {
				delete(names, name)
			}
		}
		if len(names) == 0 {
			delete(l.names, id)
		}
	}
	l.lost = false
}

// relinked reports whether a file has become another one while it or the other has several names.
func relinked(was, e *entry) bool {
	return was != nil && was.state.Kind == File && e.state.Kind == File && idOf(was) != idOf(e) &&
		(hasNames(was) || hasNames(e))
}

// sameLinks reports whether a path has the same other names as before the change.
func (t *Tracker) sameLinks(c Change) bool {
	d, name := t.place(c.Path)
	if d == nil || d.entries[name] == nil {
		return len(c.Links) == 0
	}
	return slices.Equal(c.Links, t.links.others(c.Path, d.entries[name], false))
}
