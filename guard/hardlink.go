package guard

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/toolhost/toolhost/guard/internal/realpath"
	"github.com/toolhost/toolhost/guard/internal/rules"
)

const (
	// maxScan bounds how many directory entries are looked at for the other
	// names of a file; beyond it the names count as unknown. 500,000 entries take
	// about a second.
	maxScan = 500_000
	// maxOutside bounds it for each directory outside.
	maxOutside = 50_000
	// age is how long a walk answers for searches, which do not look at each
	// file's own times.
	age = time.Minute
	// grain is how far apart a change and a walk must lie to be distinguished:
	// the coarsest tick of the kernel clock that file times are taken from.
	grain = 10 * time.Millisecond
)

// An linkIndex finds out by walking what names files have, and remembers it. It is safe for
// concurrent use.
type linkIndex struct {
	// Inside are the directories whose names are counted, none in another.
	Inside []string
	// Outside returns files and directories elsewhere that rules speak of.
	Outside func() []string
	// Rules returns the rules that keep a file from being read and written by its slashed
	// name, nil for none.
	Rules func(name string) (read, edit *rules.Rule)
	// MostOutside bounds the directory entries that are looked at in each directory of
	// Outside. Zero: as many as are usual.
	MostOutside int

	mu      sync.Mutex
	last    atomic.Pointer[linkNames]
	renewal atomic.Bool // one is under way
}

// linkNames are what one walk found.
type linkNames struct {
	Complete bool // everything inside was seen
	Outside  bool // and everything outside
	// Inside counts the names that a file with several has inside.
	Inside map[realpath.ID]int
	Reads  map[realpath.ID]*rules.Rule // files one name of which may not be read
	Edits  map[realpath.ID]*rules.Rule // files one name of which may not be written
	// Aliases are slashed names, which no rule is on, of files in Reads.
	Aliases map[string]bool

	at   time.Time              // when the walk began
	open map[string]realpath.ID // while walking: names that no rule keeps from being read
	left int
}

// recent returns names not older than a minute. What is half as old is renewed in the background
// the call, so that in a host in use no search waits for it.
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

// after returns names that were looked for after a file changed.
func (x *linkIndex) after(changed time.Time) *linkNames { return x.walk(changed.Add(grain)) }

// walk looks for names, unless a walk that began after since is at hand.
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

// record notes what the rules say of one name of a file.
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
