package guard

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/toolhost/toolhost/guard/internal/realpath"
	"github.com/toolhost/toolhost/guard/internal/rules"
)

const (
	// maxScan bounds the directory entries that are scanned for other names of a file. Beyond it
	// the names count as unknown. 500,000 entries take about a second.
	maxScan = 500_000
	// maxOutside is the same bound for each directory outside.
	maxOutside = 50_000
	// age is how long the result of a walk is valid for searches, which do not check the times of
	// each file.
	age = time.Minute
	// grain is the shortest time between a change and a walk that tells their order: the coarsest
	// tick of the kernel clock that file times are taken from.
	grain = 10 * time.Millisecond
)

// A linkIndex finds the names of files by walking, and caches them. It is safe for concurrent use.
type linkIndex struct {
	// Inside are the directories whose names are counted. None lies in another.
	Inside []string
	// Outside returns files and directories elsewhere that rules name.
	Outside func() []string
	// Rules returns the rules that deny reading and writing a file by its slashed name, nil for
	// none.
	Rules func(name string) (read, edit *rules.Rule)
	// MostOutside bounds the directory entries that are scanned in each directory of Outside. Zero
	// means maxOutside.
	MostOutside int

	mu      sync.Mutex
	last    atomic.Pointer[linkNames]
	renewal atomic.Bool // a renewal is under way
}

// linkNames is the result of one walk.
type linkNames struct {
	Complete bool // everything inside was seen
	Outside  bool // everything outside was seen too
	// Inside counts the names that a file with several has inside.
	Inside map[realpath.ID]int
	Reads  map[realpath.ID]*rules.Rule // files that a rule denies to read under one of their names
	Edits  map[realpath.ID]*rules.Rule // files that a rule denies to write under one of their names
	// Aliases are slashed names of files in Reads that no rule denies.
	Aliases map[string]bool

	at   time.Time              // start of the walk
	open map[string]realpath.ID // while walking: names that no rule denies to read
	left int
}

// recent returns names that are at most a minute old. It renews names that are half as old in the
// background, so that in a busy host no search waits for a walk.
func (x *linkIndex) recent() *linkNames {
	n := x.last.Load()
	if n == nil {
		return x.walk(time.Now().Add(-age))
	}
	old := time.Since(n.at)
	if old > age {
		return x.walk(time.Now().Add(-age))
	}
	if old > age/2 && x.renewal.CompareAndSwap(false, true) {
		go func() {
			defer x.renewal.Store(false)
			x.walk(time.Now().Add(-age / 2))
		}()
	}
	return n
}

// after returns names from a walk that began after the time changed.
func (x *linkIndex) after(changed time.Time) *linkNames { return x.walk(changed.Add(grain)) }

// walk walks for names, unless the result of a walk that began after since is cached.
func (x *linkIndex) walk(since time.Time) *linkNames {
	x.mu.Lock()
	defer x.mu.Unlock()
	if n := x.last.Load(); n != nil && n.at.After(since) {
		return n
	}
	n := &linkNames{
		at: time.Now(), Inside: map[realpath.ID]int{}, Aliases: map[string]bool{},
		Reads: map[realpath.ID]*rules.Rule{}, Edits: map[realpath.ID]*rules.Rule{}, open: map[string]realpath.ID{},
	}
	n.left = maxScan
	for _, dir := range x.Inside {
		n.walk(dir, func(name string, id realpath.ID) {
			n.Inside[id]++
			n.record(x, name, id)
		})
	}
	n.Complete, n.Outside = n.left >= 0, true
	for _, dir := range x.Outside() {
		if n.left = maxOutside; x.MostOutside > 0 {
			n.left = x.MostOutside
		}
		n.walk(dir, func(name string, id realpath.ID) { n.record(x, name, id) })
		n.Outside = n.Outside && n.left >= 0
	}
	for name, id := range n.open {
		if n.Reads[id] != nil {
			n.Aliases[name] = true
		}
	}
	n.open = nil
	x.last.Store(n)
	return n
}

// record records the rules on one name of a file.
func (n *linkNames) record(x *linkIndex, name string, id realpath.ID) {
	read, edit := x.Rules(name)
	if read != nil {
		n.Reads[id] = read
	} else {
		n.open[name] = id
	}
	if edit != nil {
		n.Edits[id] = edit
	}
}
