package ignore

import "sync/atomic"

// A Budget bounds what the ignore files of one tree take in memory together, in bytes: a repository can have any number of
// them, and a short line can stand for long patterns. What finds no room is left out, as if it were not there. A nil Budget
// bounds nothing.
type Budget struct {
	left  atomic.Int64
	short atomic.Bool
}

// NewBudget returns room for so many bytes.
func NewBudget(bytes int64) *Budget {
	r := &Budget{}
	r.left.Store(bytes)
	return r
}

// Take takes n bytes of the room; false when there are not so many.
func (r *Budget) Take(n int64) bool {
	if r == nil || r.left.Add(-n) >= 0 {
		return true
	}
	r.left.Add(n)
	r.short.Store(true)
	return false
}

// Short reports whether something has found no room.
func (r *Budget) Short() bool { return r != nil && r.short.Load() }

// Give gives n bytes back.
func (r *Budget) Give(n int64) {
	if r != nil {
		r.left.Add(n)
	}
}

// Left is how many bytes of the room are left.
func (r *Budget) Left() int64 { return r.left.Load() }
