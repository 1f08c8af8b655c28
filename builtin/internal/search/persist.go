package search

import (
	"context"
	"errors"
	"path/filepath"
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
const diskFormat = 1<<16 | index.Format

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

// load takes over the index that an earlier process has saved, as far as the files
// are what they were.
func (t *keptTree) load(ctx context.Context, g *gate) {
	e := t.engine
	if e.config.MaxMemory < 0 || !t.sees {
		return
	}
	sections, err := e.disk.Load(t.path, diskFormat, e.config.MaxMemory)
	if err != nil || len(sections)%2 == 0 {
		return
	}
	o, folders, err := decodeTable(sections[0])
	if err != nil || o.maxFile != e.config.MaxFile || o.inode != t.id.Inode {
		return
	}
	var segments []*index.Segment
	size := int64(0)
	for i := 1; i < len(sections); i += 2 {
		s, err := index.Load(sections[i], sections[i+1], o.ids)
		if err != nil {
			return
		}
		segments = append(segments, s)
		size += int64(s.Size())
	}
	held := t.compare(ctx, g, folders)
	t.mu.Lock()
	defer t.mu.Unlock()
	if ctx.Err() != nil || t.dead.Load() || t.segments != nil || !e.kept.grow(size) {
		return
	}
	t.segments, t.size, t.corpus, t.adds, t.ids = segments, size, o.corpus, o.adds, o.ids
	t.saved = saved{age: t.age, adds: t.adds}
	for _, c := range held {
		if c.e.node.gone || c.e.known.Load() != nil {
			continue
		}
		c.e.id, c.k.age = c.id, t.age
		t.learn(c.e, c.k)
	}
}

// compared is a file that is as it was.
type compared struct {
	e  *dirent
	k  *known
	id uint32
}

// compare looks which files are what they were.
func (t *keptTree) compare(ctx context.Context, g *gate, folders []folder) []compared {
	root, err := walk.OpenRoot(t.path)
	if err != nil || root.ID() != t.id {
		return nil
	}
	defer root.Close()
	t.mu.Lock()
	nodes := map[string]*node{}
	t.nodes(nodes, t.top)
	pairs := make([][]compared, len(folders))
	for i, f := range folders {
		pairs[i] = t.pair(nodes[f.rel], f.rows)
	}
	t.mu.Unlock()
	workers := t.engine.config.Workers
	out := make([][]compared, workers)
	walk.Parallel(ctx, workers, -1, func(w, i int) []int {
		if i < 0 {
			return numbers(len(pairs))
		}
		if len(pairs[i]) > 0 && g.pause(ctx) == nil {
			out[w] = append(out[w], same(root, folders[i].rel, pairs[i])...)
		}
		return nil
	})
	var all []compared
	for _, o := range out {
		all = append(all, o...)
	}
	return all
}

func numbers(n int) []int {
	out := make([]int, n)
	for i := range out {
		out[i] = i
	}
	return out
}

// nodes finds the directories that are listed, by their paths.
func (t *keptTree) nodes(to map[string]*node, n *node) {
	to[n.rel] = n
	for _, e := range n.entries {
		if e.sub != nil && e.sub.listed {
			t.nodes(to, e.sub)
		}
	}
}

// pair finds the files that rows are of. It needs mu, for it reads the list; each
// version is read before the file is looked at.
func (t *keptTree) pair(n *node, rows []row) []compared {
	if n == nil || !n.local {
		return nil
	}
	var out []compared
	for _, r := range rows {
		i, ok := n.find(r.name)
		if !ok || n.entries[i].kind != walk.File {
			continue
		}
		k := r.known
		k.stamp.Device, k.version = t.id.Device, n.entries[i].version.Load()
		if !k.racy() {
			out = append(out, compared{n.entries[i], &k, r.id})
		}
	}
	return out
}

// same leaves those files of a directory that are as they were.
func same(root *walk.Root, rel string, files []compared) []compared {
	dir, err := root.Sub((&node{rel: rel}).open())
	if err != nil {
		return nil
	}
	defer dir.Close()
	out := files[:0]
	for _, c := range files {
		info, err := dir.Stat(c.e.name)
		if err == nil && info.Kind == walk.File && info.Stamp == c.k.stamp {
			out = append(out, c)
		}
	}
	return out
}
