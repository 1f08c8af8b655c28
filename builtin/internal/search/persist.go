package search

import (
	"context"
	"errors"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"toolhost/builtin/internal/search/disk"
	"toolhost/builtin/internal/search/index"
	"toolhost/builtin/internal/search/walk"
)

// An index outlives the process in one file for each root. Of a file that has
// been indexed it says what the file system said of it then. That is believed
// again only where the file system says the same, to the nanosecond and the
// inode, and only if it was said long enough after the file's last change for a
// later one to show (known.racy). What is hidden from whoever searched last, and
// what is no longer there, is not written.

// diskFormat changes whenever what is written, or what it means, does: also what
// counts as binary or as text.
const diskFormat = 2<<16 | index.Format

const (
	// saveDelay is how long after the index was last changed it is saved.
	saveDelay = 10 * time.Second
	// closeSave bounds how long saving may keep an engine from closing.
	closeSave = 2 * time.Second
	// changedPart is what part of a tree's files must have been indexed since the
	// index was saved for it to be saved again. The next process reads so many.
	changedPart = 50
	// maxIDs bounds the numbers of texts that are believed: a set of them takes
	// an eighth of that in bytes.
	maxIDs = 1 << 26
)

// saved is what an index was when it was last saved or loaded.
type saved struct {
	age  uint64
	adds int
	err  error
}

// row is what is written of a file.
type row struct {
	name string
	known
	id uint32
}

// folder is what is written of the files in one directory.
type folder struct {
	rel  string
	rows []row
}

// save writes the index, if enough in it is new.
func (t *keptTree) save(ctx context.Context) {
	d := t.engine.disk
	if d == nil {
		return
	}
	var o outline
	var folders []folder
	var hidden func(string, bool) bool
	var segments []*index.Segment
	t.mu.Lock()
	fresh := t.adds - t.saved.adds
	dirty := t.sees && t.segments != nil && !t.dead.Load() && len(t.views) > 0 &&
		(t.saved.age != t.age || fresh > max(maxStale, t.files/changedPart))
	if dirty {
		o = outline{t.engine.config.MaxFile, t.id.Inode, t.adds, t.corpus, t.ids}
		folders, segments, hidden = t.folders(nil, t.top), t.segments, t.views[0].hidden
	}
	state := saved{age: t.age, adds: t.adds}
	t.mu.Unlock()
	if !dirty {
		return
	}
	sections := t.sections(o, visible(folders, t.path, hidden), segments)
	state.err = d.Save(ctx, t.path, diskFormat, sections)
	if errors.Is(state.err, disk.ErrBusy) || ctx.Err() != nil {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.saved = state
}

// folders lists what is known of the files below a directory. It needs mu.
func (t *keptTree) folders(out []folder, n *node) []folder {
	f := folder{rel: n.rel}
	for _, e := range n.entries {
		if e.sub != nil {
			continue
		}
		k := e.known.Load()
		if k != nil && n.local && k.age == t.age && (k.indexed || k.content > contentText) && k.stamp.Device == t.id.Device && !k.racy() {
			f.rows = append(f.rows, row{e.name, *k, e.id})
		}
	}
	out = append(out, f)
	for _, e := range n.entries {
		if e.sub != nil {
			out = t.folders(out, e.sub)
		}
	}
	return out
}

// visible leaves out what is hidden.
func visible(folders []folder, root string, hidden func(string, bool) bool) []folder {
	if hidden == nil {
		return folders
	}
	real := func(rel string) string { return filepath.Join(root, filepath.FromSlash(rel)) }
	out, shut := folders[:0], ""
	for _, f := range folders {
		if shut != "" && strings.HasPrefix(f.rel, shut) {
			continue
		}
		if f.rel != "" && hidden(real(f.rel), true) {
			shut = f.rel
			continue
		}
		rows := f.rows[:0]
		for _, r := range f.rows {
			if !hidden(real(f.rel+r.name), false) {
				rows = append(rows, r)
			}
		}
		f.rows = rows
		out = append(out, f)
	}
	return out
}

// sections puts what is written into a form: a table of files, then two sections
// for each segment.
func (t *keptTree) sections(o outline, folders []folder, segments []*index.Segment) [][]byte {
	var there index.Set
	for _, f := range folders {
		for _, r := range f.rows {
			there.Add(r.id)
		}
	}
	out := [][]byte{encodeTable(o, folders)}
	for _, s := range segments {
		arrays, postings := s.Only(&there).Append(nil)
		out = append(out, arrays, postings)
	}
	return out
}

// earlier is what an earlier process has saved of a tree.
type earlier struct {
	outline
	folders map[string][]byte // see decodeTable
	device  uint64            // of the root, now
	index   chan loaded       // gets the index when that is read, once
}

type loaded struct {
	segments []*index.Segment
	size     int64
	err      error
}

// recall opens what an earlier process has saved, unless it is of no use, and begins
// to read the index. It needs the ID of the root.
func (t *keptTree) recall() *earlier {
	e := t.engine
	if e.config.MaxMemory < 0 || !t.sees {
		return nil
	}
	f, err := e.disk.Load(t.path, diskFormat, e.config.MaxMemory)
	if err != nil {
		return nil
	}
	was := &earlier{device: t.id.Device, index: make(chan loaded, 1)}
	table, err := was.table(f)
	if err == nil {
		was.outline, was.folders, err = decodeTable(table)
	}
	if err != nil || was.maxFile != e.config.MaxFile || was.inode != t.id.Inode {
		f.Close()
		return nil
	}
	go func() {
		defer f.Close()
		was.index <- was.read(f)
	}()
	return was
}

func (was *earlier) table(f *disk.File) ([]byte, error) {
	if f.Len()%2 == 0 { // a table, and two sections for each segment
		return nil, errTable
	}
	return f.Section(0)
}

func (was *earlier) read(f *disk.File) (l loaded) {
	for i := 1; i < f.Len(); i += 2 {
		arrays, err := f.Section(i)
		if err != nil {
			return loaded{err: err}
		}
		postings, err := f.Section(i + 1)
		if err != nil {
			return loaded{err: err}
		}
		s, err := index.Load(arrays, postings, was.ids)
		if err != nil {
			return loaded{err: err}
		}
		l.segments = append(l.segments, s)
		l.size += int64(s.Size())
	}
	return l
}

// compare looks which of the files in a directory are what they were, and returns
// what was known of them, nil for the others. Whoever calls it is told of changes
// from before on.
func (was *earlier) compare(dir *walk.Root, n *node, listed []walk.Entry) []*row {
	blob := was.folders[n.rel]
	if !n.local || len(blob) == 0 {
		return nil
	}
	rows := decodeRows(blob, was.ids)
	if len(rows) == 0 {
		return nil
	}
	out := make([]*row, len(listed))
	for i, e := range listed {
		if e.Kind != walk.File {
			continue
		}
		at, ok := slices.BinarySearchFunc(rows, e.Name, func(r row, name string) int { return strings.Compare(r.name, name) })
		if !ok {
			continue
		}
		r := &rows[at]
		r.stamp.Device = was.device
		if r.racy() {
			continue
		}
		if info, err := dir.Stat(e.Name); err == nil && info.Kind == walk.File && info.Stamp == r.stamp {
			out[i] = r
		}
	}
	return out
}

// load takes over the index that an earlier process has saved: what it says of the
// files is known since they were listed. It waits until the index is read.
func (t *keptTree) load(ctx context.Context) {
	t.mu.Lock()
	was := t.earlier
	t.earlier = nil
	t.mu.Unlock()
	if was == nil {
		return
	}
	l := <-was.index
	t.mu.Lock()
	defer t.mu.Unlock()
	if l.err != nil || ctx.Err() != nil || t.dead.Load() || t.segments != nil || !t.engine.kept.grow(l.size) {
		t.empty() // files count as known that are in no index
		return
	}
	t.segments, t.size, t.corpus, t.adds, t.ids = l.segments, l.size, was.corpus, was.adds, was.ids
	t.saved = saved{age: t.age, adds: t.adds}
}
