package search

import (
	"bytes"
	"slices"
	"time"

	"toolhost/builtin/internal/search/disk"
	"toolhost/builtin/internal/search/index"
	"toolhost/builtin/internal/search/match"
	"toolhost/builtin/internal/search/walk"
)

// stock is what is kept of the contents of a tree's files: trigrams of all, and
// as much of themselves as the budget allows. A file is in it once, for all who
// search the tree; what is hidden from one of them is left out when that one
// asks (listing.chooses), and is not read for the index on its behalf.
// Everything needs the tree's mu.
type stock struct {
	// age counts how often the stock was emptied; what was read for an older
	// one is not added.
	age      uint64
	views    []*view // most recently used first
	segments []*index.Segment
	size     int64 // bytes of segments
	corpus   int64 // bytes of the texts in them
	ids      uint32
	adds     int           // files added to the index, each as often as it was
	full     bool          // the budget of the index is spent
	wake     chan struct{} // told when a view becomes due
	progress *progress
	saved    saved
	// elsewhere is the file that the postings of the segments are in, and not yet in
	// memory; nil: there is none.
	elsewhere *disk.File
}

// view is the tree as rules about what is hidden leave it.
type view struct {
	some   bool // there are such rules
	tag    string
	hidden func(real string, dir bool) bool
	built  uint64 // the age for which the view's files have been indexed
	due    bool   // there is something to add to the index
	left   int    // files that could not be indexed when that was last done
}

// maxViews is how many sets of rules are remembered of one tree: of the
// principals who use a host at the same time, and of settings that have changed.
const maxViews = 8

// known is what is known of a file. It is immutable.
type known struct {
	version uint32 // of the entry when the file was looked at
	age     uint64 // of the stock
	stamp   walk.Stamp
	at      int64 // when it was looked at, in nanoseconds since 1970
	content content
	text    []byte // of contentText, as it is on disk; nil: not kept
	indexed bool   // in the index with this content
	nul     bool   // the decoded text holds a NUL byte
	letters bool   // see match.Partners
}

// content is what became of reading a file.
type content uint8

const (
	contentUnread content = iota
	contentText
	contentBinary   // see worker.read
	contentTooLarge // likewise
)

func newStock() stock {
	return stock{age: 1, wake: make(chan struct{}, 1), progress: &progress{now: Listing}}
}

// admit returns the age of the stock if it may be used for a scope, and whether
// the query is to add to it.
func (t *keptTree) admit(s *Scope) (age uint64, learns bool) {
	if t.engine.config.MaxMemory < 0 || s.Hidden != nil && s.HiddenTag == "" {
		return 0, false
	}
	v := t.view(s)
	if v.built != t.age {
		t.want(v) // which costs queries nothing, as copying what they read would
	}
	return t.age, v.built == t.age
}

// view finds the view that a scope names, or makes it.
func (t *keptTree) view(s *Scope) *view {
	some := s.Hidden != nil
	i := slices.IndexFunc(t.views, func(v *view) bool { return v.some == some && v.tag == s.HiddenTag })
	v := &view{some: some, tag: s.HiddenTag}
	if i >= 0 {
		v = t.views[i]
		t.views = slices.Delete(t.views, i, i+1)
	}
	v.hidden = s.Hidden
	t.views = slices.Insert(t.views, 0, v)
	t.views = t.views[:min(len(t.views), maxViews)]
	return v
}

func (t *keptTree) want(v *view) {
	if v.due {
		return
	}
	v.due = true
	t.progress.set(Indexing)
	t.wakeUp()
}

// wakeUp lets the indexer look what is due.
func (t *keptTree) wakeUp() {
	select {
	case t.wake <- struct{}{}:
	default:
	}
}

// empty drops all contents.
func (t *keptTree) empty() {
	t.engine.kept.grow(-t.size)
	t.letGo()
	t.age++
	t.segments, t.size, t.corpus, t.ids, t.adds, t.full = nil, 0, 0, 0, 0, false
	t.earlier = nil // it speaks of that index
	t.clear(t.top)
}

func (t *keptTree) clear(n *node) {
	for _, e := range n.entries {
		if e.sub != nil {
			t.clear(e.sub)
		}
		e.id = 0
		t.learn(e, nil)
	}
}

// learn replaces what is known of a file.
func (t *keptTree) learn(e *dirent, k *known) {
	c := t.engine.kept
	if k != nil && k.text != nil {
		c.add(int64(len(k.text)))
	}
	if old := e.known.Swap(k); old != nil {
		c.add(-int64(len(old.text)))
	}
	if k != nil && k.text != nil {
		c.enter(e)
	}
}

// keep is learn for what was found outside of the lock, for a stock of that age.
func (t *keptTree) keep(e *dirent, k *known) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.age == k.age && !t.dead.Load() && !e.node.gone {
		t.learn(e, k)
	}
}

// sure reports whether events tell of all changes of a file.
func (k *known) sure(e *dirent) bool { return e.node.watch.Load() != 0 && k.stamp.Links <= 1 }

// racy reports whether the file may have changed after it was looked at without
// a change of its times.
func (k *known) racy() bool { return racy(k.stamp, k.at) }

func racy(s walk.Stamp, at int64) bool {
	window := int64(racyWindow)
	if s.Change%int64(time.Second) == 0 {
		window = int64(coarseWindow)
	}
	return at-max(s.Change, s.Status) < window
}

const (
	// racyWindow is above the granularity of the clocks of Linux's file systems,
	// a tick of at most 10 ms.
	racyWindow = 20 * time.Millisecond
	// coarseWindow is for file systems that count whole seconds, or two (FAT).
	coarseWindow = 2100 * time.Millisecond
)

// current returns what is known of a file if it still holds, else nil.
func (t *keptTree) current(root *walk.Root, e *dirent, age uint64) *known {
	k := e.known.Load()
	if k == nil || k.age != age {
		return nil
	}
	v := e.version.Load()
	if k.version == v && k.sure(e) {
		return k
	}
	if k.racy() {
		return nil
	}
	info, err := root.Stat(e.path)
	if err != nil || info.Kind != walk.File || info.Stamp != k.stamp {
		return nil
	}
	again := *k
	again.version = v
	t.keep(e, &again)
	return &again
}

// same reports whether two records are of the same look at a file.
func (k *known) same(o *known) bool { return o != nil && k.at == o.at && k.stamp == o.stamp }

// describe says of a file that was read what a search will ask.
func (k *known) describe(raw []byte) (text []byte) {
	text = match.Decode(raw)
	k.content = contentText
	k.nul = bytes.IndexByte(text, 0) >= 0
	k.letters = match.Partners(text)
	return text
}

// few is what part of a tree's files an index may leave over for them to count as
// used: contents that every query goes through are not worth more than others.
const few = 4

// maxStale is how many files that have changed are read in each query before
// they are indexed again.
const maxStale = 200

// look notes the state of an open file that is about to be read.
func (k *known) look(h walk.Handle) bool {
	k.at = time.Now().UnixNano() // before: the file may change in between
	info, err := h.Stat()
	if err != nil || info.Kind != walk.File {
		return false
	}
	k.stamp = info.Stamp
	return true
}

// fit reports whether the texts of files can all be kept. If they cannot, a query that goes through them again and again
// would copy as much as it keeps, and leave nothing of what others use.
func (l *listing) fit(files []file) bool {
	room := l.kept.engine.kept.forTexts()
	for _, f := range files {
		if k := f.kept.known.Load(); k != nil && k.content == contentText {
			if room -= k.stamp.Size; room < 0 {
				return false
			}
		}
	}
	return true
}

// remember keeps the content of a file that was read in a query, and a copy of what was
// seen of it. It takes the place of what has been used less only if the index chose it,
// not for the first time, and with no more than can be kept.
func (l *listing) remember(e *dirent, k *known, raw []byte) {
	c, n := l.kept.engine.kept, int64(len(raw))
	if !c.room(n, false) {
		if !l.chosen {
			return
		}
		again := e.uses.Load() > 0
		e.use()
		if !again || !l.fits || !c.room(n, true) {
			return
		}
	}
	kept := *k
	kept.describe(raw)
	kept.text = append([]byte{}, raw...)
	l.kept.keep(e, &kept)
}
