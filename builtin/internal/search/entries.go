package search

import (
	"slices"
	"strings"

	"github.com/toolhost/toolhost/builtin/internal/search/walk"
)

// read lists a directory. If the directory can be watched, the watch starts before its entries are read.
func (t *tree) read(root *walk.Root, n *node, buf *walk.Buffer) {
	watch, id := n.watched.Watch(), n.id
	listed := t.enumerate(root, n, buf)
	moved := n.id != id
	first := !n.listed
	fresh := first || moved || n.watched.Watch() == 0
	if first {
		n.entries = t.add(n, listed)
	} else {
		n.entries = t.merge(n, listed, moved, n.watched.Watch() != watch)
	}
	slices.SortFunc(n.entries, func(a, b *dirent) int { return strings.Compare(a.name, b.name) })
	n.listed = true
	if fresh && t.local && t.ready.Load() {
		t.findLinks(root, n, first)
	}
	t.readRules(root, n, first)
}

// enumerate watches a directory and returns its entries.
func (t *tree) enumerate(root *walk.Root, n *node, buf *walk.Buffer) []walk.Entry {
	buf.Opened = func(fd int) {
		n.id, n.local = buf.ID, buf.Local
		if t.local && n.local {
			t.feed.Watch(&n.watched, n, fd)
		} else {
			t.feed.Unwatch(&n.watched)
		}
	}
	listed, err := root.List(strings.TrimSuffix(n.rel, "/"), buf)
	buf.Opened = nil
	before := n.err
	if n.err = nil; err != nil { // then the directory is not watched, and each query examines it
		t.feed.Unwatch(&n.watched)
		if !walk.IsGone(err) {
			n.err = err
		}
	}
	t.shared.Lock()
	defer t.shared.Unlock()
	if n.watched.Watch() == 0 {
		t.unwatched[n] = true
	} else {
		delete(t.unwatched, n)
	}
	if (before == nil) != (n.err == nil) { // a result reports the error, so it changes even when no name has changed
		t.namesChanged(n)
	}
	return listed
}

// merge returns the entries of a directory that was listed again. It keeps the known entries that are still there,
// and removes the others from the tree.
func (t *tree) merge(n *node, listed []walk.Entry, moved, unwatched bool) []*dirent {
	entries := make([]*dirent, 0, len(listed))
	for _, e := range listed {
		i, ok := n.find(e.Name)
		if ok && n.entries[i].kind == e.Kind && !(moved && e.Kind == walk.Dir) {
			if unwatched { // for some time no event announced its changes
				n.entries[i].version.Add(1)
			}
			entries = append(entries, n.entries[i])
			n.entries[i] = &dirent{name: e.Name} // marks the entry as kept
			continue
		}
		entries = append(entries, t.add(n, []walk.Entry{e})...)
	}
	for _, e := range n.entries {
		if e.node != nil {
			t.remove(e)
		}
	}
	return entries
}

// add makes entries of a directory, all of them in a few allocations.
func (t *tree) add(n *node, listed []walk.Entry) []*dirent {
	size, files := 0, 0
	for _, l := range listed {
		size += len(t.base) + len(n.rel) + len(l.Name)
	}
	var paths strings.Builder
	paths.Grow(size)
	all, out := make([]dirent, len(listed)), make([]*dirent, len(listed))
	for i, l := range listed {
		from := paths.Len()
		paths.WriteString(t.base)
		paths.WriteString(n.rel)
		paths.WriteString(l.Name)
		real := paths.String()[from:]
		e := &all[i]
		out[i] = e
		e.real, e.path, e.name, e.node, e.kind = real, real[len(t.base):], real[len(t.base)+len(n.rel):], n, l.Kind
		if l.Kind == walk.Dir {
			e.sub = &node{rel: e.path + "/", up: n}
		} else {
			files++
		}
		if n.chain != nil {
			e.ignored = n.ignores(e)
		}
	}
	t.shared.Lock()
	defer t.shared.Unlock()
	t.namesChanged(n)
	t.files += files
	return out
}

// remove removes an entry.
func (t *tree) remove(e *dirent) {
	t.shared.Lock()
	defer t.shared.Unlock()
	t.namesChanged(e.node)
	if e.sub != nil {
		t.dropped = append(t.dropped, e.sub)
	} else {
		t.forgetFile(e)
	}
}
