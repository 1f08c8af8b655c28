package guard

import (
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"toolhost/guard/internal/ctime"
	"toolhost/guard/internal/pathname"
	"toolhost/guard/internal/realpath"
	"toolhost/guard/internal/rulebook"
)

const (
	// maxScan bounds how many directory entries are looked at for the other
	// names of a file; beyond it the names count as unknown. 500,000 entries take
	// about a second.
	maxScan = 500_000
	// maxScanOutside bounds it for each directory outside the boundary that
	// rules deny or that holds secrets.
	maxScanOutside = 50_000
	// scanAge is how long a scan answers for searches, which do not look at each
	// file's own times.
	scanAge = time.Minute
	// linkGrain is how far apart a change and a scan must lie to be told apart:
	// the coarsest tick of the kernel clock that file times are taken from.
	linkGrain = 10 * time.Millisecond
)

// links knows the files in the boundary that have several names. It is filled
// by walking, when a file with several names is judged or a search begins.
type links struct {
	mu      sync.Mutex
	last    atomic.Pointer[linkScan]
	renewal atomic.Bool // one is under way
	outside int         // maxScanOutside, but in tests
}

// A linkScan is what one walk found.
type linkScan struct {
	at       time.Time // when the walk began
	complete bool      // everything in the boundary was seen
	outside  bool      // and everything that is denied outside of it
	names    map[realpath.ID]int
	reads    map[realpath.ID]*rulebook.Rule // files one name of which may not be read
	edits    map[realpath.ID]*rulebook.Rule // files one name of which may not be written
	// aliases are names in the boundary of files in reads.
	aliases map[string]bool

	open map[string]realpath.ID // while walking: names that no rule denies
	left int
}

// secretRule stands for the built-in mask of home secrets where that of an entry is
// wanted.
var secretRule = &rulebook.Rule{Text: RuleSecret, Source: builtIn}

// aliases are the other names of denied files, as far as a scan not older than scanAge
// knows them.
func (k *core) aliases() map[string]bool {
	if k.deny.Read.Empty() {
		return nil
	}
	return k.links.recent(k).aliases
}

// recent returns a scan not older than scanAge. One that is half as old is renewed
// beside the call, so that in a host in use no search waits for it.
func (l *links) recent(k *core) *linkScan {
	s := l.last.Load()
	if s == nil || time.Since(s.at) > scanAge {
		return l.scan(k, time.Now().Add(-scanAge))
	}
	if time.Since(s.at) > scanAge/2 && l.renewal.CompareAndSwap(false, true) {
		go func() {
			defer l.renewal.Store(false)
			l.scan(k, time.Now().Add(-scanAge/2))
		}()
	}
	return s
}

// scan walks the boundary and what is denied outside of it, unless a walk that
// began after since is at hand.
func (l *links) scan(k *core, since time.Time) *linkScan {
	l.mu.Lock()
	defer l.mu.Unlock()
	if s := l.last.Load(); s != nil && s.at.After(since) {
		return s
	}
	s := &linkScan{
		at: time.Now(), names: map[realpath.ID]int{}, aliases: map[string]bool{},
		reads: map[realpath.ID]*rulebook.Rule{}, edits: map[realpath.ID]*rulebook.Rule{}, open: map[string]realpath.ID{},
	}
	s.left = maxScan
	for _, dir := range k.outermost() {
		s.walk(dir, func(name string, id realpath.ID) {
			s.names[id]++
			s.record(k, name, id)
		})
	}
	s.complete, s.outside = s.left >= 0, true
	for _, dir := range k.deniedOutside() {
		if s.left = maxScanOutside; l.outside > 0 {
			s.left = l.outside
		}
		s.walk(dir, func(name string, id realpath.ID) { s.record(k, name, id) })
		s.outside = s.outside && s.left >= 0
	}
	for name, id := range s.open {
		if s.reads[id] != nil {
			s.aliases[name] = true
		}
	}
	s.open = nil
	l.last.Store(s)
	return s
}

// record notes what the rules say of one name of a file.
func (s *linkScan) record(k *core, name string, id realpath.ID) {
	if r := k.deny.Read.Match(name, false); r != nil {
		s.reads[id] = r
	} else if k.secrets.Hold(name) {
		s.reads[id] = secretRule
	} else {
		s.open[name] = id
	}
	if r := k.deny.Edit.Match(name, false); r != nil {
		s.edits[id] = r
	}
}

// outermost returns the real directories of the boundary without those that lie
// in another: each name counts once.
func (k *core) outermost() []string {
	var out []string
	for i, b := range k.bounds {
		inner := slices.ContainsFunc(k.bounds[:i], func(o pathname.Place) bool { return o.Real == b.Real })
		for _, o := range k.bounds {
			inner = inner || o.Real != b.Real && pathname.Within(pathname.Slashed(b.Real), pathname.Slashed(o.Real))
		}
		if !inner {
			out = append(out, b.Real)
		}
	}
	return out
}

// deniedOutside returns files and directories outside the boundary that rules
// name and that hold secrets: a file in the boundary may be another name of one.
func (k *core) deniedOutside() []string {
	var out []string
	add := func(name string) {
		if name != "" && !k.inside.Hold(name) && !slices.ContainsFunc(k.inside.Names, func(in string) bool { return pathname.Within(in, name) }) {
			out = append(out, pathname.Native(name))
		}
	}
	for _, m := range []*rulebook.Matcher{k.deny.Read, k.deny.Edit} {
		for name := range m.Files() {
			add(name)
		}
		for name := range m.Dirs() {
			add(name)
		}
	}
	for _, s := range k.secrets.Names {
		add(s)
	}
	return out
}

// scanFor returns a scan that knows the names of the file at path: it began
// after the file last got or lost one, which the file's change time tells.
func (p *Policy) scanFor(path Path) *linkScan {
	k := p.core
	info, err := path.Stat()
	if err != nil {
		return k.links.scan(k, time.Now())
	}
	since, ok := ctime.Of(info)
	if !ok {
		since = time.Now() // every question is a new one
	}
	return k.links.scan(k, since.Add(linkGrain))
}
