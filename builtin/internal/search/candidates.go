package search

import (
	"math/bits"
	"slices"

	"github.com/toolhost/toolhost/builtin/internal/search/index"
	"github.com/toolhost/toolhost/builtin/internal/search/pattern"
)

// candidates summarises in arrays what is known of the files of a snapshot, so that a query that asks the index, or
// for the newest files, does not follow a pointer to each file. The tree's mu guards it.
type candidates struct {
	age, changes uint64 // age and changes of the tree when this was made or updated
	adds         int    // adds of the tree's contents at that time
	// numbers maps the id in the index to the number of the file in the snapshot, plus
	// one, for files about which the index alone decides.
	numbers []int32
	rest    []int32 // the numbers of the other files
	stale   int     // files whose indexed content is not their content
	// dates are the times of the last change of the files, 0 where it is not known.
	// Queries hold the slice, so it is replaced and not modified.
	dates []int64
}

// current returns the candidates as they are now. It needs the tree's mu.
func (s *snapshot) current(t *tree) *candidates {
	c := s.candidates
	if c != nil && c.age == t.contents.age && c.adds == t.contents.adds {
		if changed, all := t.log.after(c.changes); all && c.update(s.files, changed, t.log.count) {
			return c
		}
	}
	s.candidates = newCandidates(t, s)
	return s.candidates
}

func newCandidates(t *tree, s *snapshot) *candidates {
	c := &candidates{age: t.contents.age, changes: t.log.count, adds: t.contents.adds,
		numbers: make([]int32, t.contents.ids+1), dates: make([]int64, len(s.files))}
	for i, f := range s.files {
		k := f.entry.state.Load()
		current := t.contents.covers(k) && k.version == f.entry.version.Load()
		sure := k != nil && k.age == t.contents.age && k.version == f.entry.version.Load() && k.sure(f.entry)
		if sure {
			c.dates[i] = max(k.stamp.Change, 1)
		}
		if !current {
			c.stale++
		}
		if !current || !sure || k.content != contentText || k.nul || k.letters || k.foreign {
			c.rest = append(c.rest, int32(i))
			continue
		}
		c.numbers[f.entry.id] = int32(i) + 1
	}
	return c
}

// update notes that files have changed. It reports false when there are so many
// of them that some may have been indexed again.
func (c *candidates) update(files []file, changed []*dirent, changes uint64) bool {
	c.changes = changes
	if len(changed) > 0 {
		c.dates = slices.Clone(c.dates)
	}
	for _, e := range changed {
		i, ok := slices.BinarySearchFunc(files, e.path,
			func(f file, path string) int { return comparePaths(f.rel(), path) })
		if !ok {
			continue
		}
		c.dates[i] = 0
		if int(e.id) < len(c.numbers) && c.numbers[e.id] == int32(i)+1 {
			c.numbers[e.id] = 0
			c.rest = append(c.rest, int32(i))
			c.stale++
		}
	}
	return c.stale <= maxStale
}

// candidateIter yields the files of a listing that may match, some at a time.
type candidateIter struct {
	listing *listing
	pattern *pattern.Pattern
	folds   bool // see match.FoldsBeyond
	foreign bool // see namesForeign
	scans   bool // see match.ScansAll
	age     uint64
	adds    int
	may     index.Set
	selects bool // the index excludes files: those not in may

	left  []uint64 // bit set of the numbers of the files that are still to be yielded
	dates []int64  // see candidates
	last  byMtime  // the oldest file of the last batch of the newest ones
}

// narrow asks the index. It returns nil when the index excludes nothing, unless the
// newest files are wanted first. With foreign it does not exclude files that are not in UTF-8.
func (l *listing) narrow(p *pattern.Pattern, foreign, newest bool) *candidateIter {
	t := l.tree
	q := required(p)
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.contents.age != l.age || t.contents.segments == nil {
		return nil
	}
	c := l.snapshot.current(t)
	if of := t.contents.filter(&l.scope); c.stale > maxStale+of.failed && !t.contents.full {
		t.contents.want(of)
	}
	if !q.Selects() && !newest {
		return nil
	}
	it := selectCandidates(l, p, q, foreign)
	it.dates, it.left = c.dates, c.matching(it)
	return it
}

// required is what the index is asked for a pattern.
func required(p *pattern.Pattern) *index.Query {
	var q index.Query
	for _, set := range p.Required {
		q.Require(set.Texts)
	}
	for _, run := range p.ByteRuns {
		q.RequireRun(run)
	}
	return &q
}

// selectCandidates asks the index. It needs mu.
func selectCandidates(l *listing, p *pattern.Pattern, q *index.Query, foreign bool) *candidateIter {
	t := l.tree
	it := &candidateIter{
		listing: l, pattern: p, folds: pattern.FoldsBeyond(p), foreign: foreign, scans: pattern.ScansAll(p),
		age: t.contents.age, adds: t.contents.adds, selects: q.Selects(),
	}
	for _, s := range t.contents.segments {
		q.Select(s, &it.may)
	}
	return it
}

// matching returns the set of the files that may match.
func (c *candidates) matching(it *candidateIter) []uint64 {
	set := make([]uint64, len(c.dates)/64+1)
	add := func(i int32) { set[i/64] |= 1 << (i % 64) }
	if !it.selects {
		for i := range c.dates {
			add(int32(i))
		}
		return set
	}
	for id := range it.may.All() {
		if int(id) < len(c.numbers) && c.numbers[id] > 0 {
			add(c.numbers[id] - 1)
		}
	}
	for _, i := range c.rest {
		add(i)
	}
	return set
}

// next returns about limit of the remaining files, or all of them if limit is 0: in path order, or the newest ones.
// It returns none when no file remains.
func (it *candidateIter) next(limit int, newest bool) (out []file) {
	t := it.listing.tree
	t.mu.Lock()
	defer t.mu.Unlock()
	for n := it.count(0); n > 0 && len(out) == 0; n = it.count(0) {
		batch := it.left
		fresh := t.contents.age == it.age && t.contents.adds == it.adds // else the ids are of other contents: search all
		switch {
		case fresh && newest:
			batch = it.takeNewest(limit)
		case fresh && limit > 0:
			batch = it.left[:it.count(limit)]
		}
		out = make([]file, 0, min(n, max(limit, 64)))
		for i, word := range batch {
			for set := word; set != 0; set &= set - 1 {
				f := it.listing.snapshot.files[i*64+bits.TrailingZeros64(set)]
				if !fresh || it.wants(&f) {
					out = append(out, f)
				}
			}
			it.left[i] &^= word
		}
	}
	return out
}

// count returns how many words of the set hold the next limit files. If limit is 0, it returns how many files are
// left.
func (it *candidateIter) count(limit int) (n int) {
	for i, word := range it.left {
		if n += bits.OnesCount64(word); limit > 0 && n >= limit {
			return i + 1
		}
	}
	if limit > 0 {
		return len(it.left)
	}
	return n
}

// takeNewest returns the set of the newest files that are left, and of all whose time
// is not known.
func (it *candidateIter) takeNewest(limit int) []uint64 {
	batch := make([]uint64, len(it.left))
	top := newestFiles{limit: limit}
	for w, word := range it.left {
		for ; word != 0; word &= word - 1 {
			i := w*64 + bits.TrailingZeros64(word)
			if it.dates[i] == 0 {
				batch[w] |= word & -word
			} else {
				top.add(byMtime{it.dates[i], int32(i)})
			}
		}
	}
	for _, f := range top.sorted() {
		batch[f.number/64] |= 1 << (f.number % 64)
		it.last = f
	}
	return batch
}

// wants reports whether a file must be searched or counted. It needs the tree's mu.
func (it *candidateIter) wants(f *file) bool {
	k := f.entry.state.Load()
	if !it.listing.tree.contents.covers(k) {
		return true
	}
	odd := it.folds && k.letters || it.foreign && k.foreign || k.wide
	if it.selects && k.content == contentText && !it.may.Has(f.entry.id) && !odd {
		f.excluded = k
	}
	counted := it.pattern.Lines && it.scans && k.nul // counted as binary
	return f.excluded == nil || counted || k.version != f.entry.version.Load() || !k.sure(f.entry)
}
