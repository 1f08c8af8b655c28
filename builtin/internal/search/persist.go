package search

import (
	"context"
	"errors"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"toolhost/builtin/internal/search/disk"
	"toolhost/builtin/internal/search/index"
	"toolhost/builtin/internal/search/walk"
)

// An index outlives the process in one file for each root. Of a file that has
// been indexed it says what the file system said of it then, and of a directory
// with it what names it had. That is believed again only where the file system says
// the same, to the nanosecond and the inode, and only if it was said long enough
// after the last change for a later one to show (racy). What is hidden from
// whoever searched last, and what is no longer there, is not written.

// diskFormat changes whenever what is written, or what it means, does: also what
// counts as binary or as text.
const diskFormat = 4<<16 | index.Format

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

// row is what is written of an entry.
type row struct {
	name string
	kind walk.Kind
	known
	id uint32
}

// some reports whether something is known of what is in a file.
func (r *row) some() bool { return r.content != contentUnread }

// folder is what is written of one directory: all its entries as they were when
// the file system said that of it, or without that only files of which something is known.
type folder struct {
	rel   string
	look  walk.Look
	rows  []row  // by name
	same  []*row // see compare
	sames int    // how many of them are there
}

// partly leaves only what needs no look.
func (f *folder) partly() {
	f.look = walk.Look{}
	f.rows = slices.DeleteFunc(f.rows, func(r row) bool { return !r.some() })
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
	dirty := t.sees && t.segments != nil && t.elsewhere == nil && !t.dead.Load() && len(t.views) > 0 &&
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
	f := folder{rel: n.rel, look: n.look}
	for _, e := range n.entries {
		r := row{name: e.name, kind: e.kind}
		k := e.known.Load()
		if k != nil && n.local && k.age == t.age && (k.indexed || k.content > contentText) && k.stamp.Device == t.id.Device && !k.racy() {
			r.known, r.id = *k, e.id
		}
		f.rows = append(f.rows, r)
	}
	if !n.listed || !n.local || n.err != nil || n.look.Device != t.id.Device || racy(n.look.Stamp, n.look.At) {
		f.partly()
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
		all := len(f.rows)
		f.rows = slices.DeleteFunc(f.rows, func(r row) bool { return hidden(real(f.rel+r.name), r.kind == walk.Dir) })
		if len(f.rows) < all {
			f.partly()
		}
		out = append(out, f)
	}
	return out
}

// sections puts what is written into a form: a table of files, then two sections
// for each segment. Where every text that was ever indexed is written they are written as
// they are: to leave texts out takes longer than all the rest, and as much memory again.
func (t *keptTree) sections(o outline, folders []folder, segments []*index.Segment) [][]byte {
	var there index.Set
	for _, f := range folders {
		for _, r := range f.rows {
			if r.id > 0 {
				there.Add(r.id)
			}
		}
	}
	out := [][]byte{encodeTable(o, folders)}
	for _, s := range segments {
		if there.Len() < int(o.ids) {
			s = s.Only(&there)
		}
		arrays, postings := s.Append(nil)
		out = append(out, arrays, postings)
	}
	return out
}

// earlier is what an earlier process has saved of a tree's files.
type earlier struct {
	outline
	folders map[string][]byte // see decodeTable
	device  uint64            // of the root, now
	spare   sync.Pool         // of *folder
}

// recall loads what an earlier process has saved, unless it is of no use: what it says of a
// file is known when that is listed. It needs the ID of the root.
func (t *keptTree) recall() bool {
	e := t.engine
	if e.config.MaxMemory < 0 || !t.sees {
		return false
	}
	f, err := e.disk.Load(t.path, diskFormat, e.config.MaxMemory)
	if err != nil {
		return false
	}
	was := &earlier{device: t.id.Device}
	segments, err := was.load(f)
	if err != nil || was.maxFile != e.config.MaxFile || was.inode != t.id.Inode {
		f.Close()
		return false
	}
	t.earlier, t.elsewhere = was, f
	t.segments, t.corpus, t.adds, t.ids = segments, was.corpus, was.adds, was.ids
	t.saved = saved{age: t.age, adds: t.adds}
	return true
}

// load reads the table, and opens the segments: what is in them stays where it is.
func (was *earlier) load(f *disk.File) (segments []*index.Segment, err error) {
	if f.Len()%2 == 0 { // a table, and two sections for each segment
		return nil, errTable
	}
	table, err := f.Section(0)
	if err != nil {
		return nil, err
	}
	if was.outline, was.folders, err = decodeTable(table); err != nil {
		return nil, err
	}
	for i := 1; i < f.Len(); i += 2 {
		part := func(section int) index.Part {
			return func(from, to int64) ([]byte, error) { return f.Part(section, from, to) }
		}
		s, err := index.Open(f.Size(i), f.Size(i+1), was.ids, part(i), part(i+1))
		if err != nil {
			return nil, err
		}
		segments = append(segments, s)
	}
	return segments, nil
}

// folder returns what was known of a directory. Its watch, if it has one, is from before
// that is compared.
func (was *earlier) folder(n *node) *folder {
	blob := was.folders[n.rel]
	if len(blob) == 0 {
		return nil
	}
	f, ok := was.spare.Get().(*folder)
	if !ok {
		f = new(folder)
	}
	if !f.decode(blob, was.ids) {
		return nil
	}
	f.look.Device = was.device
	return f
}

// done takes back a folder that is not asked any more.
func (was *earlier) done(f *folder) { was.spare.Put(f) }

// recall appends the entries of a directory, if it still is what it was.
func (f *folder) recall(to []walk.Entry, now walk.Look) ([]walk.Entry, bool) {
	if f == nil || f.look.At == 0 || f.look.Stamp != now.Stamp || racy(f.look.Stamp, f.look.At) {
		return to, false
	}
	for _, r := range f.rows {
		to = append(to, walk.Entry{Name: r.name, Kind: r.kind})
	}
	return to, true
}

// compare looks which of the files in a directory are what they were, and notes
// what was known of them in same, nil for the others.
func (f *folder) compare(dir *walk.Root, listed []walk.Entry) {
	f.same, f.sames = slices.Grow(f.same[:0], len(listed))[:len(listed)], 0
	clear(f.same)
	for i, e := range listed {
		if e.Kind != walk.File {
			continue
		}
		r := f.find(i, e.Name)
		if r == nil || !r.some() {
			continue
		}
		r.stamp.Device = f.look.Device
		if r.racy() {
			continue
		}
		if info, err := dir.Stat(e.Name); err == nil && info.Kind == walk.File && info.Stamp == r.stamp {
			f.same[i] = r
			f.sames++
		}
	}
}

// find returns what was known of an entry, which may be the row of that number.
func (f *folder) find(i int, name string) *row {
	if i < len(f.rows) && f.rows[i].name == name {
		return &f.rows[i]
	}
	i, ok := slices.BinarySearchFunc(f.rows, name, func(r row, name string) int { return strings.Compare(r.name, name) })
	if !ok {
		return nil
	}
	return &f.rows[i]
}

// fetch reads an index that was loaded, while no query runs: one that came first has read
// what it needed.
func (t *keptTree) fetch(ctx context.Context, g *gate) {
	t.mu.Lock()
	f, segments := t.elsewhere, slices.Clone(t.segments)
	t.mu.Unlock()
	if f == nil {
		return
	}
	size := int64(0)
	var err error
	for i, s := range segments {
		if g.pause(ctx) != nil {
			return
		}
		if segments[i], err = fetched(s, f, 1+2*i); err != nil {
			break
		}
		size += int64(s.Size())
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.elsewhere != f {
		return
	}
	if err != nil || !t.engine.kept.grow(size) {
		t.empty()
		return
	}
	t.segments, t.size = segments, size
	t.letGo()
}

// fetched reads a segment from two sections.
func fetched(s *index.Segment, f *disk.File, section int) (*index.Segment, error) {
	arrays, err := f.Section(section)
	if err != nil {
		return nil, err
	}
	postings, err := f.Section(section + 1)
	if err != nil {
		return nil, err
	}
	return s.With(arrays, postings)
}

// letGo closes the file that postings were in.
func (t *keptTree) letGo() {
	if t.elsewhere != nil {
		t.elsewhere.Close()
		t.elsewhere = nil
	}
}
