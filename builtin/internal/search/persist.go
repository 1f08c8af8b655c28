package search

import (
	"context"
	"errors"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/toolhost/toolhost/builtin/internal/search/index"
	"github.com/toolhost/toolhost/builtin/internal/search/walk"
)

// An index is saved in one file for each root. It holds the stamp of each indexed file,
// and the stamp and the names of each directory. They are used again only where the
// file system reports the same stamp, to the nanosecond and the inode, and only if it was
// taken long enough after the last change for a later one to show (racy). What is hidden
// from the last user, and what no longer exists, is not written.

// diskFormat changes whenever what is written, or what it means, does: also what
// counts as binary or as text.
const diskFormat = 4<<16 | index.Format

const (
	// saveDelay is how long after the index was last changed it is saved.
	saveDelay = 10 * time.Second
	// closeSave bounds how long saving may keep an engine from closing.
	closeSave = 2 * time.Second
	// changedPart is what part of a tree's files must have been indexed since the
	// index was saved for it to be saved again. The next process reads those.
	changedPart = 50
	// maxIDs bounds the numbers of texts that are believed: a set of them takes
	// an eighth of that in bytes.
	maxIDs = 1 << 26
)

// lastSave is the state of an index when it was last saved or loaded.
type lastSave struct {
	age  uint64
	adds int
	err  error
}

// fileRec is what is written of an entry.
type fileRec struct {
	name string
	kind walk.Kind
	fileState
	id uint32
}

// some reports whether the content of the file was read.
func (r *fileRec) some() bool { return r.content != contentUnread }

// dirRec is what is written of one directory: all its entries at the time of look, or
// without look only the files that were read.
type dirRec struct {
	rel   string
	look  walk.Look
	rows  []fileRec  // by name
	same  []*fileRec // see compare
	sames int        // how many of them are there
}

// partly removes what is of no use without look.
func (f *dirRec) partly() {
	f.look = walk.Look{}
	f.rows = slices.DeleteFunc(f.rows, func(r fileRec) bool { return !r.some() })
}

// save writes the index, if enough in it is new.
func save(ctx context.Context, t *tree) {
	if t.engine.disk == nil {
		return
	}
	c := &t.contents
	var o header
	var dirs []dirRec
	var hidden func(string, bool) bool
	var segments []*index.Segment
	t.mu.Lock()
	dirty := t.local && c.segments != nil && c.file == nil && !t.dead.Load() && len(c.filters) > 0 &&
		(c.lastSave.age != c.age || c.adds-c.lastSave.adds > max(maxStale, t.files/changedPart))
	if dirty {
		o = header{t.engine.config.MaxFile, t.id.Inode, c.adds, c.corpus, c.ids}
		dirs, segments, hidden = records(t, nil, t.top), c.segments, c.filters[0].hidden
	}
	state := lastSave{age: c.age, adds: c.adds}
	t.mu.Unlock()
	if !dirty {
		return
	}
	state.err = t.engine.disk.Save(ctx, t.path, diskFormat, sections(o, visible(dirs, t.path, hidden), segments))
	if errors.Is(state.err, index.ErrBusy) || ctx.Err() != nil {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	c.lastSave = state
}

// records lists what is known of the files below a directory. It needs mu.
func records(t *tree, out []dirRec, n *node) []dirRec {
	d := dirRec{rel: n.rel, look: n.look}
	for _, e := range n.entries {
		r := fileRec{name: e.name, kind: e.kind}
		if k := e.state.Load(); n.local && t.contents.covers(k) && k.stamp.Device == t.id.Device && !k.racy() {
			r.fileState, r.id = *k, e.id
		}
		d.rows = append(d.rows, r)
	}
	if !n.listed || !n.local || n.err != nil || n.look.Device != t.id.Device || racy(n.look.Stamp, n.look.At) {
		d.partly()
	}
	out = append(out, d)
	for _, e := range n.entries {
		if e.sub != nil {
			out = records(t, out, e.sub)
		}
	}
	return out
}

// visible leaves out what is hidden.
func visible(dirs []dirRec, root string, hidden func(string, bool) bool) []dirRec {
	if hidden == nil {
		return dirs
	}
	real := func(rel string) string { return filepath.Join(root, filepath.FromSlash(rel)) }
	out, shut := dirs[:0], ""
	for _, f := range dirs {
		if shut != "" && strings.HasPrefix(f.rel, shut) {
			continue
		}
		if f.rel != "" && hidden(real(f.rel), true) {
			shut = f.rel
			continue
		}
		all := len(f.rows)
		f.rows = slices.DeleteFunc(f.rows, func(r fileRec) bool { return hidden(real(f.rel+r.name), r.kind == walk.Dir) })
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
func sections(o header, dirs []dirRec, segments []*index.Segment) [][]byte {
	var there index.Set
	for _, f := range dirs {
		for _, r := range f.rows {
			if r.id > 0 {
				there.Add(r.id)
			}
		}
	}
	out := [][]byte{encodeRecords(o, dirs)}
	for _, s := range segments {
		if there.Len() < int(o.ids) {
			s = s.Only(&there)
		}
		arrays, postings := s.Append(nil)
		out = append(out, arrays, postings)
	}
	return out
}

// savedIndex is the index of a tree's files that an earlier process saved.
type savedIndex struct {
	header
	dirs   map[string][]byte // see decodeRecords
	device uint64            // of the root, now
	spare  sync.Pool         // of *dirRec
}

// loadSaved loads what an earlier process has saved, if that can be used. The records
// of a file are applied when the file is listed. It needs mu, and the ID of the root.
func loadSaved(t *tree) bool {
	e := t.engine
	if e.config.MaxMemory < 0 || !t.local {
		return false
	}
	f, err := e.disk.Load(t.path, diskFormat, e.config.MaxMemory)
	if err != nil {
		return false
	}
	was := &savedIndex{device: t.id.Device}
	segments, err := was.load(f)
	if err != nil || was.maxFile != e.config.MaxFile || was.inode != t.id.Inode {
		f.Close()
		return false
	}
	t.saved = was
	c := &t.contents
	c.file, c.segments, c.corpus, c.adds, c.ids = f, segments, was.corpus, was.adds, was.ids
	c.lastSave = lastSave{age: c.age, adds: c.adds}
	return true
}

// load reads the table, and opens the segments: what is in them stays where it is.
func (was *savedIndex) load(f *index.File) (segments []*index.Segment, err error) {
	if f.Len()%2 == 0 { // a table, and two sections for each segment
		return nil, errRecords
	}
	table, err := f.Section(0)
	if err != nil {
		return nil, err
	}
	if was.header, was.dirs, err = decodeRecords(table); err != nil {
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

// dirRec returns what was known of a directory. Its watch, if it has one, is from before
// that is compared.
func (was *savedIndex) dirRec(n *node) *dirRec {
	blob := was.dirs[n.rel]
	if len(blob) == 0 {
		return nil
	}
	f, ok := was.spare.Get().(*dirRec)
	if !ok {
		f = new(dirRec)
	}
	if !f.decode(blob, was.ids) {
		return nil
	}
	f.look.Device = was.device
	return f
}

// recycle takes back a dirRec that is no longer used.
func (was *savedIndex) recycle(f *dirRec) { was.spare.Put(f) }

// recall appends the entries of a directory, if it still is what it was.
func (f *dirRec) recall(to []walk.Entry, now walk.Look) ([]walk.Entry, bool) {
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
func (f *dirRec) compare(dir *walk.Root, listed []walk.Entry) {
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

// find returns what was known of an entry, which may be the fileRec of that number.
func (f *dirRec) find(i int, name string) *fileRec {
	if i < len(f.rows) && f.rows[i].name == name {
		return &f.rows[i]
	}
	i, ok := slices.BinarySearchFunc(f.rows, name, func(r fileRec, name string) int { return strings.Compare(r.name, name) })
	if !ok {
		return nil
	}
	return &f.rows[i]
}

// loadPostings reads the postings of a saved index into memory, while no query runs. Queries
// that come first read the parts that they need.
func loadPostings(ctx context.Context, t *tree, g *backgroundGate) {
	t.mu.Lock()
	f, segments := t.contents.file, slices.Clone(t.contents.segments)
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
		if segments[i], err = loadSegment(s, f, 1+2*i); err != nil {
			break
		}
		size += int64(s.Size())
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.contents.file != f {
		return
	}
	if err != nil || !t.engine.texts.grow(size) {
		t.empty()
		return
	}
	t.contents.segments, t.contents.size = segments, size
	t.contents.closeFile()
}

// loadSegment reads a segment from two sections.
func loadSegment(s *index.Segment, f *index.File, section int) (*index.Segment, error) {
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
