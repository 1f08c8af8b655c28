package search

import (
	"context"
	"errors"
	"io/fs"
	"slices"
	"strings"
	"time"

	"toolhost/builtin/internal/search/ignore"
	"toolhost/builtin/internal/search/walk"
)

// sync brings all that is listed up to date: every change that was finished
// before the call is known after it. It needs mu. False: the tree is of no use,
// or ctx has ended.
func (t *keptTree) sync(ctx context.Context, root *walk.Root, workers int) bool {
	if t.dead.Load() || root.ID() != t.id || t.drain() != nil || t.dead.Load() {
		t.dead.Store(true)
		return false
	}
	if t.mounts.Changed() {
		t.doubt(t.top)
	}
	t.around()
	t.reread(root)
	nodes := make([]*node, 0, len(t.waiting)+len(t.blind))
	for n := range t.waiting {
		nodes = append(nodes, n)
	}
	for n := range t.blind {
		if !t.waiting[n] {
			nodes = append(nodes, n)
		}
	}
	if len(nodes) > 0 {
		t.change(nil)
		t.renewAll(ctx, root, nodes, workers)
	}
	return ctx.Err() == nil && !t.dead.Load()
}

// around looks at the ignore files outside of the tree, which are few and not
// watched.
func (t *keptTree) around() {
	global := t.engine.global()
	if string(global) == string(t.global) && t.top.chain != nil && allHold(t.path, t.outer) {
		return
	}
	outer := ancestors(t.path, t.outer)
	same := string(global) == string(t.global) && slices.EqualFunc(outer, t.outer, func(a, b ancestor) bool {
		return a.above == b.above && a.rules.equal(b.rules)
	})
	t.global, t.outer = global, outer
	if same && t.top.chain != nil {
		return
	}
	t.rechain(t.top)
}

// outside is the chain of what stands above the tree.
func (t *keptTree) outside() *ignore.Chain {
	chain := ignore.NewChain(&ignore.Level{Git: ignore.Parse(t.global, nil)})
	room := ignore.NewRoom(maxRules)
	for _, a := range t.outer {
		chain = chain.Push(a.rules.level(0, a.above, room))
	}
	return chain
}

// rechain judges anew what is ignored in a directory and below.
func (t *keptTree) rechain(n *node) {
	chain := n.up.chainOr(t)
	n.chain = chain.Push(n.level)
	for _, e := range n.entries {
		e.ignored = n.ignores(e)
		if e.sub != nil {
			t.rechain(e.sub)
		}
	}
	t.changed(n)
}

func (n *node) chainOr(t *keptTree) *ignore.Chain {
	if n == nil {
		return t.outside()
	}
	return n.chain
}

func (n *node) ignores(e *dirent) bool {
	return n.chain.Match(e.path, e.kind == walk.Dir) == ignore.Ignored
}

// reread looks at the ignore files that no event tells of.
func (t *keptTree) reread(root *walk.Root) {
	for n := range t.silent {
		looks, settled := t.lookAtRules(root, n)
		if settled && slices.Equal(looks, n.looks) {
			continue
		}
		n.looks = nil
		if settled {
			n.looks = looks
		}
		if rules, _ := readRules(root, t.path, n.rel, n.ruleEntries(), t.room); t.takeRules(n, rules) {
			t.rechain(n)
		}
	}
}

// ruleLook is what the file system says of an ignore file. The zero value says that
// there is none.
type ruleLook struct {
	name string
	walk.Stamp
}

// lookAtRules looks at the ignore files of a directory without reading them. settled
// says that whatever changes in them shows in their looks.
func (t *keptTree) lookAtRules(root *walk.Root, n *node) (looks []ruleLook, settled bool) {
	settled = true
	for _, e := range n.ruleEntries() {
		name := e.Name
		if name == ".git" {
			name = ignore.Exclude
		}
		at := time.Now().UnixNano()
		info, err := root.Stat(n.rel + name)
		if errors.Is(err, fs.ErrNotExist) {
			looks = append(looks, ruleLook{name: name})
			continue
		}
		looks = append(looks, ruleLook{name, info.Stamp})
		settled = settled && err == nil && info.Kind == walk.File && n.local && info.Device == t.id.Device && !racy(info.Stamp, at)
	}
	return looks, settled
}

// ruleEntries are the entries of a directory that readRules asks for.
func (n *node) ruleEntries() []walk.Entry {
	var out []walk.Entry
	for _, name := range []string{ignore.RgIgnore, ignore.DotIgnore, ignore.GitIgnore, ".git", ".jj"} {
		if i, ok := n.find(name); ok {
			out = append(out, walk.Entry{Name: name, Kind: n.entries[i].kind})
		}
	}
	return out
}

// renewAll looks at directories again and then puts the tree in order.
func (t *keptTree) renewAll(ctx context.Context, root *walk.Root, nodes []*node, workers int) {
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
		t.renew(root, n, buffers[w])
		return nil
	})
	t.settle()
}

// fewNodes are looked at by one worker: starting a second one takes longer.
const fewNodes = 8

// settle does what must not be done while workers look at directories.
func (t *keptTree) settle() {
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

// renew looks at a directory: at all of it, or only at what has changed.
func (t *keptTree) renew(root *walk.Root, n *node, buf *walk.Buffer) {
	if !n.listed || n.doubted || n.watch.Load() == 0 || len(n.again) > manyNames || !t.look(root, n) {
		t.read(root, n, buf)
	}
	n.again, n.doubted = nil, false
	t.shared.Lock()
	delete(t.waiting, n)
	t.shared.Unlock()
}

// manyNames is from how many names on it is cheaper to list their directory
// than to ask for each: about 1 µs against 20 µs.
const manyNames = 32

// look asks for the names that have changed.
func (t *keptTree) look(root *walk.Root, n *node) bool {
	if len(n.again) == 0 {
		return true
	}
	dir, err := root.Sub(n.open())
	if err != nil {
		return false
	}
	defer dir.Close()
	entries := slices.Clone(n.entries)
	rules := false
	for name := range n.again {
		rules = rules || isRules(name)
		info, err := dir.Stat(name)
		if err != nil && !walk.IsGone(err) {
			return false
		}
		i, ok := slices.BinarySearchFunc(entries, name, func(e *dirent, name string) int { return strings.Compare(e.name, name) })
		switch {
		case err != nil && ok:
			t.remove(entries[i])
			entries = slices.Delete(entries, i, i+1)
		case err != nil:
		case !ok:
			entries = slices.Insert(entries, i, t.add(n, name, info.Kind))
			t.links(entries[i], info)
		case entries[i].kind != info.Kind:
			t.remove(entries[i])
			entries[i] = t.add(n, name, info.Kind)
			t.links(entries[i], info)
		default:
			t.links(entries[i], info)
		}
	}
	n.entries = entries
	if rules {
		t.rule(root, n, false)
	}
	return true
}

// open is the directory's path in the form that walk takes.
func (n *node) open() string {
	if n.rel == "" {
		return "."
	}
	return strings.TrimSuffix(n.rel, "/")
}

// fail remembers why a directory cannot be listed. It is not watched then, and
// so looked at again each time.
func (n *node) fail(t *keptTree, err error) {
	t.shared.Lock()
	defer t.shared.Unlock()
	t.unwatch(n)
	if !walk.IsGone(err) {
		n.err = err
	}
}

// links notes that a file has a name that was not known. Of a file that had one
// name only when it was looked at, changes under the new name are not told.
func (t *keptTree) links(e *dirent, info walk.Info) {
	if info.Kind != walk.File || info.Links < 2 || e.inode == info.Inode {
		return
	}
	e.inode = info.Inode
	t.shared.Lock()
	defer t.shared.Unlock()
	t.linked = true
}

// linksOf looks for such files in a directory; of those that were listed just now, among
// which nothing is known of.
func (t *keptTree) linksOf(root *walk.Root, n *node, first bool) {
	unknown := func(e *dirent) bool { return e.kind == walk.File && !(first && e.known.Load() != nil) }
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
			t.links(e, info)
		}
	}
}

// watch watches a directory that is open, if its file system tells of changes. A watch
// that is removed meanwhile, for another path of the directory, is told of by an event.
func (t *keptTree) watch(n *node, fd int) {
	w := int32(0)
	if t.sees && n.local && t.reserve(n) {
		if k, err := t.queue.Add(fd); err == nil {
			w = k
		}
	}
	t.shared.Lock()
	defer t.shared.Unlock()
	delete(t.adding, n)
	if w == n.watch.Load() {
		return
	}
	t.unwatch(n)
	if w == 0 {
		return
	}
	// The directory may be known by another path, under which it has not been
	// looked at since it moved, or which it has too (a bind mount).
	if other := t.watched[w]; other != nil {
		other.watch.Store(0)
		t.blind[other] = true
		t.change(nil)
	}
	n.watch.Store(w)
	t.watched[w] = n
}

// reserve reports whether a directory may be watched.
func (t *keptTree) reserve(n *node) bool {
	t.shared.Lock()
	defer t.shared.Unlock()
	if n.watch.Load() == 0 && len(t.watched)+len(t.adding) >= t.engine.config.MaxWatches {
		return false
	}
	t.adding[n] = true
	return true
}

// takeRules makes the ignore files of a directory those that were read just now. It reports whether they are others.
func (t *keptTree) takeRules(n *node, rules ruleFiles) bool {
	if rules.equal(n.rules) {
		t.room.Give(rules.size()) // which is taken already
		return false
	}
	t.leaveRules(n)
	if n.rules = rules; rules.some() {
		n.level = rules.level(len(n.rel), "", t.room)
	}
	return true
}

// leaveRules gives back the room of a directory's ignore files.
func (t *keptTree) leaveRules(n *node) {
	t.room.Give(n.rules.size() + n.level.Size())
	n.rules, n.level = ruleFiles{}, nil
}

// rule reads the ignore files of a directory; first says that nothing below it has been
// listed.
func (t *keptTree) rule(root *walk.Root, n *node, first bool) {
	rules, silent := readRules(root, t.path, n.rel, n.ruleEntries(), t.room)
	n.looks = nil
	other := t.takeRules(n, rules)
	if first { // what is above has its chain
		n.chain = n.up.chainOr(t).Push(n.level)
		for _, e := range n.entries {
			e.ignored = n.ignores(e)
		}
	}
	t.shared.Lock()
	defer t.shared.Unlock()
	if silent {
		t.silent[n] = true
	} else {
		delete(t.silent, n)
	}
	if !first && other {
		t.ruled = append(t.ruled, n)
	}
}
