package search

import (
	"cmp"
	"slices"
)

// byMtime is a file by its number, with the time of its last change in nanoseconds
// since 1970.
type byMtime struct {
	date   int64
	number int32
}

// compare orders the newest first, and files of the same time by path.
func (f byMtime) compare(o byMtime) int {
	return cmp.Or(cmp.Compare(o.date, f.date), cmp.Compare(f.number, o.number))
}

// newestFiles collects the newest of many files: limit of them, or all if limit is 0.
type newestFiles struct {
	limit int
	files []byMtime
	worst byMtime // the last that is kept
	full  bool    // worst is set
}

func (n *newestFiles) add(f byMtime) {
	if n.full && f.compare(n.worst) > 0 {
		return
	}
	if n.files = append(n.files, f); n.limit > 0 && len(n.files) == 2*n.limit {
		n.sorted()
	}
}

// sorted drops the files beyond the limit and returns the others, the newest first.
func (n *newestFiles) sorted() []byMtime {
	slices.SortFunc(n.files, byMtime.compare)
	if n.limit > 0 && len(n.files) >= n.limit {
		n.files = n.files[:n.limit]
		n.worst, n.full = n.files[n.limit-1], true
	}
	return n.files
}
