package search

import (
	"context"
	"maps"
	"slices"
	"strings"

	"github.com/toolhost/toolhost/builtin/internal/search/ignore"
	"github.com/toolhost/toolhost/builtin/internal/search/walk"
)

// sync brings all that is listed up to date: every change that was finished before
// the call is known after it. It needs mu. It reports false when the tree is
// unusable, or ctx has ended.
func (t *tree) sync(ctx context.Context, root *walk.Root, workers int) bool {
	if t.dead.Load() || root.ID() != t.id {
		t.dead.Store(true)
		return false
	}
	if t.feed.Read(t.event) {
		t.invalidate(t.top)
		t.log.add(nil)
	}
	if t.dead.Load() {
		return false
	}
	if t.linked || t.mounts.Changed() {
		t.linked = false
		t.invalidate(t.top)
	}
	if t.checkParents() {
		t.rechain(t.top)
	}
	for n := range t.polled {
		if rules, _ := ignore.ReadFiles(root, t.path, n.rel, n.ignoreEntries(), t.room); n.setRules(rules, t.room) {
			t.rechain(n)
		}
	}
	nodes := slices.AppendSeq(make([]*node, 0, len(t.dirtyNodes)+len(t.unwatched)), maps.Keys(t.dirtyNodes))
	for n := range t.unwatched {
		if !t.dirtyNodes[n] {
			nodes = append(nodes, n)
		}
	}
	if len(nodes) > 0 {
		t.log.add(nil)
		t.refreshAll(ctx, root, nodes, workers)
	}
	return ctx.Err() == nil && !t.dead.Load()
}

// parentRules are the ignore rules from outside of a tree. They are few, and not watched.
type parentRules struct {
	global []byte
	dirs   []ancestor
}

// chain returns the rules that apply to the root.
func (p *parentRules) chain() *ignore.Chain {
	chain := ignore.NewChain(&ignore.DirRules{Git: ignore.Parse(p.global, nil)})
	room := ignore.NewBudget(ignore.MaxTree)
	for _, a := range p.dirs {
		chain = chain.Push(a.rules.Parse(0, a.above, room))
	}
	return chain
}

// checkParents reads the ignore files outside of the tree. It reports whether the rules
// of the tree have to be chained again.
func (t *tree) checkParents() bool {
	global := t.engine.global()
	same := string(global) == string(t.parents.global) && t.top.chain != nil
	if same && allHold(t.path, t.parents.dirs) {
		return false
	}
	dirs := ancestors(t.path, t.parents.dirs)
	same = same && slices.EqualFunc(dirs, t.parents.dirs,
		func(a, b ancestor) bool { return a.above == b.above && a.rules.Equal(b.rules) })
	t.parents = parentRules{global, dirs}
	return !same
}

// rechain decides again what is ignored in a directory and below.
func (t *tree) rechain(n *node) {
	n.chain = n.parentChain(&t.parents).Push(n.level)
	for _, e := range n.entries {
		e.ignored = n.ignores(e)
		if e.sub != nil {
			t.rechain(e.sub)
		}
	}
	t.namesChanged(n)
}

// parentChain returns the rules of the directories above a directory.
func (n *node) parentChain(p *parentRules) *ignore.Chain {
	if n.up == nil {
		return p.chain()
	}
	return n.up.chain
}

func (n *node) ignores(e *dirent) bool {
	return n.chain.Match(e.path, e.kind == walk.Dir) == ignore.Ignored
}

// ignoreEntries are the entries of a directory that ignore.ReadFiles reads.
func (n *node) ignoreEntries() []walk.Entry {
	var out []walk.Entry
	for _, name := range ignore.FileNames {
		if i, ok := n.find(name); ok {
			out = append(out, walk.Entry{Name: name, Kind: n.entries[i].kind})
		}
	}
	return out
}

// refreshAll looks at directories again and then puts the tree in order.
func (t *tree) refreshAll(ctx context.Context, root *walk.Root, nodes []*node, workers int) {
	buffers := make([]*walk.Buffer, workers)
	if len(nodes) < fewNodes {
		workers = 1
	}
	walk.Parallel(ctx, workers, nil, func(w int, n *node) []*node {
		if n == nil {
			return nodes
		}
		if buffers[w] == nil {
			buffers[w] = new(walk.Buffer)
		}
		t.refresh(root, n, buffers[w])
		return nil
	})
	t.applyPending()
}

// fewNodes is up to how many directories one worker examines alone: starting a second one takes longer.
const fewNodes = 8

// applyPending does what must not be done while workers look at directories.
func (t *tree) applyPending() {
	for _, n := range t.dropped {
		t.forget(n)
	}
	for _, n := range t.ruled {
		if !n.gone {
			t.rechain(n)
		}
	}
	t.dropped, t.ruled = nil, nil
	if t.files > t.engine.config.MaxKept {
		t.tooLarge.Store(true)
		t.dead.Store(true)
	}
}

// refresh looks at a directory: at all of it, or at the entries that have changed.
func (t *tree) refresh(root *walk.Root, n *node, buf *walk.Buffer) {
	if !n.listed || n.dirty || n.watched.Watch() == 0 || len(n.changed) > manyNames || !t.refreshEntries(root, n) {
		t.read(root, n, buf)
	}
	n.changed, n.dirty = nil, false
	t.shared.Lock()
	defer t.shared.Unlock()
	delete(t.dirtyNodes, n)
}

// manyNames is the number of changed names above which the whole directory is listed: a listing takes about 20 µs,
// looking at one name about 1 µs.
const manyNames = 32

// refreshEntries looks at the names that have changed. It reports false when the directory
// has to be listed.
func (t *tree) refreshEntries(root *walk.Root, n *node) bool {
	if len(n.changed) == 0 {
		return true
	}
	dir, err := root.Sub(n.open())
	if err != nil {
		return false
	}
	defer dir.Close()
	entries := slices.Clone(n.entries)
	rules := false
	for name := range n.changed {
		rules = rules || ignore.IsFile(name)
		info, err := dir.Stat(name)
		if err != nil && !walk.IsGone(err) {
			return false
		}
		i, found := findEntry(entries, name)
		if found && (err != nil || entries[i].kind != info.Kind) {
			t.remove(entries[i])
			entries = slices.Delete(entries, i, i+1)
			found = false
		}
		if err != nil {
			continue
		}
		if !found {
			entries = slices.Insert(entries, i, t.add(n, []walk.Entry{{Name: name, Kind: info.Kind}})...)
		}
		t.noteLinks(entries[i], info)
	}
	n.entries = entries
	if rules {
		t.readRules(root, n, false)
	}
	return true
}

// open is the directory's path as package walk takes it.
func (n *node) open() string {
	if n.rel == "" {
		return "."
	}
	return strings.TrimSuffix(n.rel, "/")
}

// noteLinks records that a file has a name that was not known before. If the file had a single name when it was
// examined, no event announces changes that are made under the new name.
func (t *tree) noteLinks(e *dirent, info walk.Info) {
	if info.Kind != walk.File || info.Links < 2 || e.inode == info.Inode {
		return
	}
	e.inode = info.Inode
	t.shared.Lock()
	defer t.shared.Unlock()
	t.linked = true
}

// findLinks calls noteLinks for the files of a directory; if first is set, only for those of which nothing is known.
func (t *tree) findLinks(root *walk.Root, n *node, first bool) {
	unknown := func(e *dirent) bool { return e.kind == walk.File && !(first && e.state.Load() != nil) }
	if !slices.ContainsFunc(n.entries, unknown) {
		return
	}
	dir, err := root.Sub(n.open())
	if err != nil {
		return
	}
	defer dir.Close()
	for _, e := range n.entries {
		if !unknown(e) {
			continue
		}
		if info, err := dir.Stat(e.name); err == nil {
			t.noteLinks(e, info)
		}
	}
}

// setRules replaces the ignore files of a directory by those that were read just now,
// and reports whether they differ.
func (n *node) setRules(rules ignore.Files, room *ignore.Budget) bool {
	if rules.Equal(n.rules) {
		room.Give(rules.Size()) // the same contents are accounted for already
		return false
	}
	n.dropRules(room)
	if n.rules = rules; rules.Some() {
		n.level = rules.Parse(len(n.rel), "", room)
	}
	return true
}

// dropRules gives back the memory of a directory's ignore files.
func (n *node) dropRules(room *ignore.Budget) {
	room.Give(n.rules.Size() + n.level.Size())
	n.rules, n.level = ignore.Files{}, nil
}

// readRules reads the ignore files of a directory; first says that nothing below it has
// been listed.
func (t *tree) readRules(root *walk.Root, n *node, first bool) {
	rules, polled := ignore.ReadFiles(root, t.path, n.rel, n.ignoreEntries(), t.room)
	changed := n.setRules(rules, t.room)
	if first { // the chains of the directories above are complete
		n.chain = n.parentChain(&t.parents).Push(n.level)
		for _, e := range n.entries {
			e.ignored = n.ignores(e)
		}
	}
	t.shared.Lock()
	defer t.shared.Unlock()
	if polled {
		t.polled[n] = true
	} else {
		delete(t.polled, n)
	}
	if !first && changed {
		t.ruled = append(t.ruled, n)
	}
}
