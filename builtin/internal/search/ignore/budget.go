package ignore

import "sync/atomic"

// MaxTree is how many bytes the ignore files of one tree may take in memory, as text and parsed: some 100,000 rules.
const MaxTree = 32 << 20

// A Budget bounds the memory of all ignore files of one tree, in bytes: a repository can have any number of them, and
// a short line can stand for long patterns. What exceeds it is left out, as if it were not there. A nil Budget bounds
// nothing.
type Budget struct {
	left  atomic.Int64
	short atomic.Bool
}

// NewBudget returns a budget of that many bytes.
func NewBudget(bytes int64) *Budget {
	r := &Budget{}
	r.left.Store(bytes)
	return r
}

// Take takes n bytes. It reports false when fewer are left.
func (r *Budget) Take(n int64) bool {
	if r == nil || r.left.Add(-n) >= 0 {
		return true
	}
	r.left.Add(n)
	r.short.Store(true)
	return false
}

// Short reports whether a Take has failed.
func (r *Budget) Short() bool { return r != nil && r.short.Load() }

// Give gives n bytes back.
func (r *Budget) Give(n int64) {
	if r != nil {
		r.left.Add(n)
	}
}

// Left returns how many bytes are left.
func (r *Budget) Left() int64 { return r.left.Load() }
