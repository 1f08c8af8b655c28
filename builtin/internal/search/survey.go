package search

import (
	"math/bits"
	"slices"

	"toolhost/builtin/internal/search/index"
	"toolhost/builtin/internal/search/match"
	"toolhost/builtin/internal/search/pattern"
)

// survey says of which files in a snapshot the index alone decides whether they are
// searched, so that a query need not look at all of them. It needs the tree's mu.
type survey struct {
	age, changes uint64 // the tree's when it was made
	adds         int    // likewise
	numbers      []int32
	// dates are when the files were changed, by their numbers; 0: the index alone does not
	// decide. They are immutable: queries hold them.
	dates []int64
	rest  []int32 // the numbers of the other files
	stale int     // how many files are not in the index as they are
}

// survey returns that of a snapshot. It needs mu.
func (t *keptTree) survey(s *snapshot) *survey {
	v := s.survey
	if v == nil || v.age != t.age || v.adds != t.adds {
		s.survey = t.surveyAll(s)
	} else if changed, all := t.recent.after(v.changes); !all || len(changed) > 0 && !v.update(changed, t.changes) {
		s.survey = t.surveyAll(s)
	}
	return s.survey
}

// update notes that files have changed. False: they are many, and some may be in the
// index again.
func (v *survey) update(changed []*dirent, changes uint64) bool {
	v.changes, v.dates = changes, slices.Clone(v.dates)
	for _, e := range changed {
		if int(e.id) >= len(v.numbers) || v.numbers[e.id] == 0 {
			continue
		}
		i := v.numbers[e.id] - 1
		v.numbers[e.id], v.dates[i] = 0, 0
		v.rest = append(v.rest, i)
		v.stale++
	}
	return v.stale <= maxStale
}

func (t *keptTree) surveyAll(s *snapshot) *survey {
	v := &survey{age: t.age, changes: t.changes, adds: t.adds, numbers: make([]int32, t.ids+1), dates: make([]int64, len(s.files))}
	for i, f := range s.files {
		k := f.kept.known.Load()
		switch {
		case !t.indexed(k) || k.version != f.kept.version.Load():
			v.stale++
			v.rest = append(v.rest, int32(i))
		case k.content != contentText || k.nul || k.letters || !k.sure(f.kept):
			v.rest = append(v.rest, int32(i))
		default:
			v.numbers[f.kept.id] = int32(i) + 1
			v.dates[i] = max(k.stamp.Change, 1)
		}
	}
	return v
}

// indexed reports whether a file's content, or that it has none to search, is known.
func (t *keptTree) indexed(k *known) bool {
	return k != nil && k.age == t.age && (k.indexed || k.content > contentText)
}

// narrowed is a listing without the files in which the index says that no line
// matches.
type narrowed struct {
	listing *listing
	pattern *pattern.Pattern
	folds   bool // see match.FoldsBeyond
	scans   bool // see match.ScansAll
	age     uint64
	adds    int
	may     index.Set
	selects bool     // the index leaves files out: those not in may
	chosen  []uint64 // set of the numbers of files
	words   int      // of chosen that have been looked at
	dates   []int64  // see survey
	begun   bool     // files were taken, newest first
	last    aged     // the oldest of these
}

// narrow asks the index. Nil: it leaves nothing out, and that is no listing of which
// the newest files are wanted first.
func (t *keptTree) narrow(l *listing, p *pattern.Pattern, newest bool) *narrowed {
	q := required(p)
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.age != l.stocked || t.segments == nil {
		return nil
	}
	v := t.survey(l.snapshot)
	if of := t.view(&l.scope); v.stale > maxStale+of.left && !t.full {
		t.want(of)
	}
	if !q.Selects() && !newest {
		return nil
	}
	r := t.selected(l, p, q)
	if r != nil {
		r.dates = v.dates
		r.choose(v)
	}
	return r
}

// required is what the index is asked for a pattern.
func required(p *pattern.Pattern) *index.Query {
	var q index.Query
	for _, set := range p.Required {
		q.Require(set.Texts)
	}
	for _, run := range p.Runs {
		q.RequireRun(run)
	}
	return &q
}

// selected asks the index; nil: it cannot be read. It needs mu.
func (t *keptTree) selected(l *listing, p *pattern.Pattern, q *index.Query) *narrowed {
	r := &narrowed{
		listing: l, pattern: p, folds: match.FoldsBeyond(p), scans: match.ScansAll(p), age: t.age, adds: t.adds, selects: q.Selects(),
	}
	for _, s := range t.segments {
		if q.Select(s, &r.may); s.Broken() {
			t.empty()
			return nil
		}
	}
	return r
}

// choose notes the numbers of the files that may match.
func (r *narrowed) choose(v *survey) {
	r.chosen = make([]uint64, len(v.dates)/64+1)
	if !r.selects {
		for i := range v.dates {
			r.chosen[i/64] |= 1 << (i % 64)
		}
		return
	}
	for id := range r.may.All() {
		if int(id) < len(v.numbers) && v.numbers[id] > 0 {
			i := v.numbers[id] - 1
			r.chosen[i/64] |= 1 << (i % 64)
		}
	}
	for _, i := range v.rest {
		r.chosen[i/64] |= 1 << (i % 64)
	}
}

// next returns some more of the files, in path order: about so many, all if that is 0,
// none when there are no more.
func (r *narrowed) next(most int) []file {
	l, t := r.listing, r.listing.kept
	files := l.snapshot.files
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.age != r.age || t.adds != r.adds { // what the index says now is of other contents
		rest := files[min(r.words*64, len(files)):]
		r.words = len(r.chosen)
		return rest
	}
	out := make([]file, 0, r.count(most))
	for ; r.words < len(r.chosen) && (most == 0 || len(out) < most); r.words++ {
		out = r.appendWord(out, r.words, r.chosen[r.words])
	}
	return out
}

// count is how many files next returns, or more.
func (r *narrowed) count(most int) (n int) {
	for i := r.words; i < len(r.chosen) && (most == 0 || n < most); i++ {
		n += bits.OnesCount64(r.chosen[i])
	}
	return n
}

// appendWord appends the files in one word of a set of their numbers.
func (r *narrowed) appendWord(out []file, i int, word uint64) []file {
	for ; word != 0; word &= word - 1 {
		f := r.listing.snapshot.files[i*64+bits.TrailingZeros64(word)]
		if r.wants(&f) {
			out = append(out, f)
		}
	}
	return out
}

// wants reports whether a file is to be searched, or told of. It needs the tree's mu.
func (r *narrowed) wants(f *file) bool {
	k := f.kept.known.Load()
	if !r.listing.kept.indexed(k) {
		return true
	}
	if r.selects && k.content == contentText && !r.may.Has(f.kept.id) && !(r.folds && k.letters) {
		f.absent = k
	}
	told := r.pattern.Lines && r.scans && k.nul // to be counted as binary
	return f.absent == nil || told || k.version != f.kept.version.Load() || !k.sure(f.kept)
}
