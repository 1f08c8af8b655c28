package search

import (
	"bytes"
	"slices"
	"time"
	"unicode/utf8"

	"github.com/toolhost/toolhost/builtin/internal/search/index"
	"github.com/toolhost/toolhost/builtin/internal/search/pattern"
	"github.com/toolhost/toolhost/builtin/internal/search/walk"
	"github.com/toolhost/toolhost/builtin/internal/text"
)

// contents holds the index of the contents of a tree's files: trigrams of all, and as many texts as the memory limit
// allows. All users of the tree share it. A file that is hidden from a user is left out of that user's listings
// (listing.chooses), and is not read for the index on that user's behalf. The tree's mu guards it.
type contents struct {
	disabled bool // nothing is kept
	// age counts how often the contents were emptied. What was read at an older age is not added.
	age      uint64
	filters  []*filter // most recently used first
	segments []*index.Segment
	size     int64 // bytes of segments
	corpus   int64 // bytes of the texts in them
	ids      uint32
	adds     int           // how often a file was added to the index
	full     bool          // the memory limit of the index is reached
	wake     chan struct{} // receives when a filter becomes due
	progress *progress
}

// filter is the tree without what one set of rules hides.
type filter struct {
	some   bool // there are rules that hide something
	tag    string
	hidden func(real string, dir bool) bool
	built  uint64 // the age for which its files have been indexed
	due    bool   // there is something to add to the index
	failed int    // files that could not be indexed
}

// maxFilters is how many sets of rules are remembered of one tree: of the principals
// that use a host concurrently, and of settings that have changed.
const maxFilters = 8

// fileState is the known state of a file. It is immutable.
type fileState struct {
	version uint32 // of the entry when the file was examined
	age     uint64 // of the contents
	stamp   walk.Stamp
	at      int64 // when it was examined, in nanoseconds since 1970
	content content
	text    []byte // of contentText, as it is on disk; nil: not kept
	indexed bool   // in the index with this content
	nul     bool   // the decoded text holds a NUL byte
	letters bool   // see pattern.FoldPartners
	foreign bool   // not valid UTF-8
	wide    bool   // in UTF-16 or UTF-32 without a byte-order mark
}

// content is the result of reading a file.
type content uint8

const (
	contentUnread content = iota
	contentText
	contentBinary   // see worker.read
	contentTooLarge // likewise
)

func newContents(disabled bool) contents {
	return contents{disabled: disabled, age: 1, wake: make(chan struct{}, 1), progress: &progress{now: Listing}}
}

// admit returns the age of the contents if a query of the scope may use them, otherwise 0, and whether the query may
// add to them.
func (c *contents) admit(s *Scope) (age uint64, stores bool) {
	if c.disabled || s.Hidden != nil && s.HiddenTag == "" {
		return 0, false
	}
	f := c.filter(s)
	if f.built != c.age {
		c.want(f) // the indexer reads the files: if this query copied what it reads, it would be slower
	}
	return c.age, f.built == c.age
}

// filter finds the filter of a scope, or makes it.
func (c *contents) filter(s *Scope) *filter {
	some := s.Hidden != nil
	i := slices.IndexFunc(c.filters, func(f *filter) bool { return f.some == some && f.tag == s.HiddenTag })
	f := &filter{some: some, tag: s.HiddenTag}
	if i >= 0 {
		f = c.filters[i]
		c.filters = slices.Delete(c.filters, i, i+1)
	}
	f.hidden = s.Hidden
	c.filters = slices.Insert(c.filters, 0, f)
	c.filters = c.filters[:min(len(c.filters), maxFilters)]
	return f
}

// want asks the indexer to index the files of a filter.
func (c *contents) want(f *filter) {
	if f.due {
		return
	}
	f.due = true
	c.progress.set(Indexing)
	c.wakeUp()
}

// wakeUp lets the indexer look for what is due.
func (c *contents) wakeUp() {
	select {
	case c.wake <- struct{}{}:
	default:
	}
}

// reset drops the index.
func (c *contents) reset() {
	c.age++
	c.segments, c.size, c.corpus, c.ids, c.adds, c.full = nil, 0, 0, 0, 0, false
}

// covers reports whether the content of a file, or that it has none to search, is known.
func (c *contents) covers(k *fileState) bool {
	return k != nil && k.age == c.age && (k.indexed || k.content > contentText)
}

// sure reports whether events announce all changes of a file.
func (k *fileState) sure(e *dirent) bool { return e.node.watched.Watch() != 0 && k.stamp.Links <= 1 }

// racy reports whether the file may have changed after it was examined without
// a change of its times.
func (k *fileState) racy() bool { return racy(k.stamp, k.at) }

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

// currentState returns what is known of a file if it is still valid, else nil.
func currentState(t *tree, root *walk.Root, e *dirent, age uint64) *fileState {
	k := e.state.Load()
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
func (k *fileState) same(o *fileState) bool { return o != nil && k.at == o.at && k.stamp == o.stamp }

// describe notes what a search needs to know of a text that was read.
func (k *fileState) describe(raw []byte) (decoded []byte) {
	decoded = pattern.Decode(raw)
	k.content = contentText
	k.nul = bytes.IndexByte(decoded, 0) >= 0
	k.wide = k.nul && !text.IsBinary(raw)
	k.letters = pattern.FoldPartners(decoded)
	k.foreign = !utf8.Valid(decoded)
	return decoded
}

// refresh notes the state of an open file that is about to be read.
func (k *fileState) refresh(h walk.Handle) bool {
	k.at = time.Now().UnixNano() // before: the file may change in between
	info, err := h.Stat()
	if err != nil || info.Kind != walk.File {
		return false
	}
	k.stamp = info.Stamp
	return true
}

// few limits which texts count as used: those of files that the index selected, if it selected at most 1/few of the
// tree's files. Texts that every query reads are worth no more than others.
const few = 4

// maxStale is how many changed files are read in each query before they are indexed again.
const maxStale = 200

// fit reports whether the texts of files can all be kept. If not, a query that reads them
// repeatedly would copy as much as it keeps, and evict what others use.
func (l *listing) fit(files []file) bool {
	room := l.tree.engine.texts.maxTexts
	for _, f := range files {
		if k := f.entry.state.Load(); k != nil && k.content == contentText {
			if room -= k.stamp.Size; room < 0 {
				return false
			}
		}
	}
	return true
}

// storeText keeps the text of a file that was read in a query. It evicts less used texts only if the texts of all the
// files that the index selected can be kept, and the index has selected this file before.
func (l *listing) storeText(e *dirent, k *fileState, raw []byte) {
	c, n := l.tree.engine.texts, int64(len(raw))
	if !c.makeRoom(n, false) {
		if !l.chosen {
			return
		}
		again := e.uses.Load() > 0
		e.use()
		if !again || !l.fits || !c.makeRoom(n, true) {
			return
		}
	}
	kept := *k
	kept.describe(raw)
	kept.text = append([]byte{}, raw...)
	l.tree.keep(e, &kept)
}
