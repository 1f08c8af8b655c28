package search

import (
	"cmp"
	"math"
	"math/bits"
	"slices"
)

// aged is a file by its number, with the time of its last change in nanoseconds since
// 1970.
type aged struct {
	date   int64
	number int32
}

// compare orders the newest first, and those of the same time by path.
func (a aged) compare(b aged) int {
	return cmp.Or(cmp.Compare(b.date, a.date), cmp.Compare(a.number, b.number))
}

// behind reports whether a file comes after another in that order.
func (a aged) behind(b aged) bool { return a.date < b.date || a.date == b.date && a.number > b.number }

// oldest stands behind every file.
var oldest = aged{math.MinInt64, math.MaxInt32}

// nextNewest returns some more of the files, in path order: about so many of the newest,
// and at first all whose time is not known for sure. None when there are no more.
func (r *narrowed) nextNewest(most int) (out []file) {
	t := r.listing.kept
	t.mu.Lock()
	defer t.mu.Unlock()
	for len(out) == 0 && r.last != oldest {
		var set []uint64
		if t.age != r.age || t.adds != r.adds { // what the index says now is of other contents
			set = r.untaken()
			r.last = oldest
		} else {
			set = r.takeNewest(most)
		}
		for i, word := range set {
			out = r.appendWord(out, i, word)
		}
	}
	return out
}

// taken reports whether a file was taken as one of the newest.
func (r *narrowed) taken(i int32) bool {
	return r.begun && (r.dates[i] == 0 || aged{r.dates[i], i}.compare(r.last) <= 0)
}

// untaken is the set of all files that have not been taken.
func (r *narrowed) untaken() []uint64 {
	set := make([]uint64, len(r.chosen))
	for i := range r.dates {
		if !r.taken(int32(i)) {
			set[i/64] |= 1 << (i % 64)
		}
	}
	return set
}

// takeNewest takes files that were chosen, and returns the set of them.
func (r *narrowed) takeNewest(most int) []uint64 {
	set := make([]uint64, len(r.chosen))
	newest := make(agedHeap, 0, most)
	more := false
	for w, word := range r.chosen {
		for ; word != 0; word &= word - 1 {
			i := int32(w*64 + bits.TrailingZeros64(word))
			switch {
			case r.taken(i):
			case r.dates[i] == 0:
				set[w] |= word & -word
			default:
				more = more || len(newest) == most
				newest.add(aged{r.dates[i], i}, most)
			}
		}
	}
	for _, a := range newest {
		set[a.number/64] |= 1 << (a.number % 64)
	}
	r.begun, r.last = true, oldest
	if more {
		r.last = newest[0]
	}
	return set
}

// agedHeap holds the newest of many files, the oldest of them first.
type agedHeap []aged

// add takes a file, if it is among so many of the newest; 0: in any case, and in no order.
func (h *agedHeap) add(a aged, most int) {
	switch {
	case most == 0:
		*h = append(*h, a)
	case len(*h) < most:
		h.push(a)
	default:
		h.replace(a)
	}
}

func (h *agedHeap) push(a aged) {
	*h = append(*h, a)
	s := *h
	for i := len(s) - 1; i > 0; {
		up := (i - 1) / 2
		if s[up].compare(s[i]) >= 0 {
			return
		}
		s[up], s[i] = s[i], s[up]
		i = up
	}
}

// replace puts a file in the place of the oldest, if it is newer.
func (h agedHeap) replace(a aged) {
	if a.compare(h[0]) > 0 {
		return
	}
	h[0] = a
	for i := 0; ; {
		down := 2*i + 1
		if down >= len(h) {
			return
		}
		if down+1 < len(h) && h[down+1].compare(h[down]) > 0 {
			down++
		}
		if h[i].compare(h[down]) >= 0 {
			return
		}
		h[i], h[down] = h[down], h[i]
		i = down
	}
}

// countedFiles is up to how many files with a match are counted where one page of them
// is asked for.
const countedFiles = 1000

// most is up to how many files with a match are counted for the page.
func (p *page) most() int { return max(countedFiles, p.offset+p.limit) }

// newestFound reports whether the page has all its files, and more than are counted: all
// that is newer than the last that was taken has been searched.
func (p *page) newestFound(last aged) bool {
	if len(p.found) <= p.most() {
		return false
	}
	n := 0
	for _, e := range p.found {
		if e.aged.compare(last) <= 0 {
			n++
		}
	}
	return n >= p.offset+p.limit
}

// end is the number of the last file found that may be shown, and one.
func (p *page) end() int {
	if p.limit == 0 {
		return len(p.found)
	}
	return min(p.offset+p.limit, len(p.found))
}

// finishByTime fills the page with the newest files; equal times go by path.
func (p *page) finishByTime() {
	slices.SortFunc(p.found, func(a, b entry) int { return a.aged.compare(b.aged) })
	p.files = len(p.found)
	size := 0
	for _, e := range p.found[min(p.offset, len(p.found)):p.end()] {
		size += len(e.path) + 1
	}
	p.text.Grow(min(size, p.maxText))
	for _, e := range p.found[min(p.offset, len(p.found)):] {
		if p.limit > 0 && p.shown == p.limit || p.text.Len() > p.maxText {
			p.more = true
			break
		}
		p.shown++
		p.text.WriteString(e.path)
		p.text.WriteByte('\n')
	}
	if p.limit > 0 && p.files > p.most() {
		p.files, p.uncounted = p.most(), true
	}
	p.matches = p.files
}
