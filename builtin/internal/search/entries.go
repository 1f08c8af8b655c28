package search

import (
	"slices"
	"strings"

	"toolhost/builtin/internal/search/walk"
)

// read lists a directory and, if it can, watches it from before on.
func (t *keptTree) read(root *walk.Root, n *node, buf *walk.Buffer) {
	before, id := n.watch.Load(), n.id
	listed, was := t.enumerate(root, n, buf)
	if was != nil {
		defer t.earlier.done(was)
	}
	moved := n.id != id
	first := !n.listed
	fresh := first || moved || n.watch.Load() == 0
	if !first {
		n.entries = t.merge(n, listed, moved, n.watch.Load() != before)
	} else {
		n.entries = t.addAll(n, listed, was)
	}
	slices.SortFunc(n.entries, func(a, b *dirent) int { return strings.Compare(a.name, b.name) })
	n.listed = true
	if fresh && t.sees && t.ready.Load() {
		t.linksOf(root, n, first)
	}
	t.rule(root, n, first)
	t.shared.Lock()
	if n.watch.Load() == 0 {
		t.blind[n] = true
	} else {
		delete(t.blind, n)
	}
	t.shared.Unlock()
}

// enumerate watches a directory and asks for its entries; for those that are as an
// earlier process has left them, also for what that knew of them.
func (t *keptTree) enumerate(root *walk.Root, n *node, buf *walk.Buffer) (listed []walk.Entry, was *folder) {
	buf.Opened = func(fd int) {
		n.id, n.local = buf.ID, buf.Local
		t.watch(n, fd)
	}
	if e := t.earlier; e != nil && !n.listed {
		f := e.folder(n)
		buf.Recall = func(to []walk.Entry) ([]walk.Entry, bool) { return f.recall(to, buf.Look) }
		buf.Listed = func(dir *walk.Root, listed []walk.Entry) {
			if f != nil {
				f.compare(dir, listed)
				was = f
			}
		}
	}
	listed, err := root.List(strings.TrimSuffix(n.rel, "/"), buf)
	buf.Opened, buf.Recall, buf.Listed = nil, nil, nil
	before := n.err
	if n.err, n.look = nil, buf.Look; err != nil {
		n.fail(t, err)
	}
	if (before == nil) != (n.err == nil) { // which an answer tells, also where no name has changed
		t.shared.Lock()
		t.changed(n)
		t.shared.Unlock()
	}
	return listed, was
}

// merge returns the entries of a directory that is listed again.
func (t *keptTree) merge(n *node, listed []walk.Entry, moved, unwatched bool) []*dirent {
	entries := make([]*dirent, 0, len(listed))
	for _, e := range listed {
		i, ok := n.find(e.Name)
		if ok && n.entries[i].kind == e.Kind && !(moved && e.Kind == walk.Dir) {
			if unwatched { // there was a time when no event told of it
				n.entries[i].version.Add(1)
			}
			entries = append(entries, n.entries[i])
			n.entries[i] = &dirent{name: e.Name} // taken
			continue
		}
		entries = append(entries, t.add(n, e.Name, e.Kind))
	}
	for _, e := range n.entries {
		if e.node != nil {
			t.remove(e)
		}
	}
	return entries
}

// add makes an entry.
func (t *keptTree) add(n *node, name string, kind walk.Kind) *dirent {
	e := new(dirent)
	e.fill(n, t.base+n.rel+name, len(t.base), kind)
	t.shared.Lock()
	defer t.shared.Unlock()
	t.changed(n)
	if kind != walk.Dir {
		t.files++
	}
	return e
}

// addAll makes the entries of a directory that is listed for the first time, all of
// them in a few pieces of memory.
func (t *keptTree) addAll(n *node, listed []walk.Entry, was *folder) []*dirent {
	size, files := 0, 0
	for _, l := range listed {
		size += len(t.base) + len(n.rel) + len(l.Name)
	}
	var paths strings.Builder
	paths.Grow(size)
	all, out := make([]dirent, len(listed)), make([]*dirent, len(listed))
	var same []*row
	var records []known
	if was != nil {
		same, records = was.same, make([]known, 0, was.sames)
	}
	for i, l := range listed {
		from := paths.Len()
		paths.WriteString(t.base)
		paths.WriteString(n.rel)
		paths.WriteString(l.Name)
		out[i] = &all[i]
		out[i].fill(n, paths.String()[from:], len(t.base), l.Kind)
		if l.Kind != walk.Dir {
			files++
		}
		if same != nil && same[i] != nil {
			records = append(records, same[i].known)
			k := &records[len(records)-1]
			k.age = t.age
			out[i].id = same[i].id
			out[i].known.Store(k)
		}
	}
	t.shared.Lock()
	defer t.shared.Unlock()
	t.changed(n)
	t.files += files
	return out
}

// fill makes it an entry of a directory, by its real path, of which so many bytes lead to
// the root.
func (e *dirent) fill(n *node, real string, top int, kind walk.Kind) {
	path := real[top:]
	e.real, e.path, e.name, e.node, e.kind = real, path, path[len(n.rel):], n, kind
	if kind == walk.Dir {
		e.sub = &node{rel: path + "/", up: n}
	}
	if n.chain != nil {
		e.ignored = n.ignores(e)
	}
}

// remove takes an entry out.
func (t *keptTree) remove(e *dirent) {
	t.shared.Lock()
	defer t.shared.Unlock()
	t.changed(e.node)
	if e.sub != nil {
		t.dropped = append(t.dropped, e.sub)
	} else {
		t.drop(e)
	}
}
