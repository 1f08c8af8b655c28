package guard

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/toolhost/toolhost/guard/internal/pathname"
	"github.com/toolhost/toolhost/guard/internal/realpath"
)

// hiddenFiles decides which files are hidden from one caller.
type hiddenFiles struct {
	data *policyData
	own  pathname.Places // of the caller, in the host's state
	// last are the directories that were looked up last, each at the index of [hiddenPlace].
	last [hiddenPlaces]atomic.Pointer[hiddenDir]
}

// hiddenDir caches the decision on one directory: searches go through the files of a directory one
// after another.
type hiddenDir struct {
	path   string
	denied bool // it, or a directory above it, by a rule
	masked bool
	holds  bool // something in it, or below, is masked
}

// hiddenPlaces is how many directories are cached: several workers go through one each.
const hiddenPlaces = 16

// hiddenPlace returns the index of a directory in the cache.
func hiddenPlace(path string) (place uint) {
	place = uint(len(path))
	for i := max(len(path)-4, 0); i < len(path); i++ {
		place = 3*place + uint(path[i])
	}
	return place % hiddenPlaces
}

// Hidden reports whether the file or directory at real, an absolute path without symbolic links,
// does not exist for searches: a Read rule denies it or one of its other names, or it is in the
// host's state or among the home directory's secrets. It does not access the disk, except that it
// looks for other names of denied files, at most once a minute and only if Read rules deny files.
func (p *Policy) Hidden(real string, dir bool) bool {
	path := pathname.Slashed(real)
	return p.hidden.hides(path, dir) || !dir && p.data.aliases()[path]
}

// Hiding is [Policy.Hidden] for a whole search: the function returns the same answer for a path
// each time, whatever names files get meanwhile. The tag is a key for all its answers, so that
// results computed under one policy, or for one caller, are not used under another.
func (p *Policy) Hiding() (hidden func(real string, dir bool) bool, tag string) {
	aliases := p.data.aliases()
	hidden = func(real string, dir bool) bool {
		path := pathname.Slashed(real)
		return p.hidden.hides(path, dir) || !dir && aliases[path]
	}
	tag = p.data.tag
	for _, name := range p.hidden.own.Names {
		tag += " " + strconv.Itoa(len(name)) + ":" + name
	}
	if len(aliases) > 0 {
		sum := sha256.Sum256(fmt.Appendf(nil, "%q", slices.Sorted(maps.Keys(aliases))))
		tag += " " + hex.EncodeToString(sum[:16])
	}
	return hidden, tag
}

// Asking returns a function that reports which files a search of start leaves out because a Read
// rule requires approval for them and no person was asked. Files that are matched by the same rule as
// start, which was approved, are not left out. rules are the reasons, each rule as written in the
// settings. The function is nil if no rule asks for files.
func (p *Policy) Asking(start Path) (asks func(real string) bool, rules []string) {
	ask := p.data.ask
	if ask.Read.Empty() {
		return nil, nil
	}
	agreed := ask.File("Grep", reading, pathname.Slashed(start.given), pathname.Slashed(start.real), start.dir)
	for _, r := range ask.Read.Rules() {
		if r != agreed {
			rules = append(rules, r.Text)
		}
	}
	return func(real string) bool {
		found := ask.Read.Match(pathname.Slashed(real), false)
		return found != nil && found != agreed
	}, rules
}

// HidingLinks returns a function that reports whether a file with several names is hidden by one of
// them: names that were linked or renamed since [Policy.Hiding] looked for names count. It takes
// the device, the inode and the time of the last change in nanoseconds since 1970, and looks again
// if the file has changed since. Nil means that no rule hides files.
func (p *Policy) HidingLinks() func(device, inode uint64, status int64) bool {
	k := p.data
	if k.deny.Read.Empty() {
		return nil
	}
	return func(device, inode uint64, status int64) bool {
		return k.links.after(time.Unix(0, status)).Reads[realpath.ID{Device: device, Inode: inode}] != nil
	}
}

// hides is [Policy.Hidden] without other names of denied files.
func (h *hiddenFiles) hides(path string, dir bool) bool {
	k := h.data
	if above := h.above(path); above.denied {
		return true
	} else if (above.masked || above.holds) && h.masked(path) {
		return true
	}
	return k.allReadsDenied || k.deny.Read.MatchLeaf(path, dir) != nil
}

// above returns the cached decision on the directory that holds path.
func (h *hiddenFiles) above(path string) *hiddenDir {
	parent := path[:max(strings.LastIndexByte(path, '/'), 0)]
	place := &h.last[hiddenPlace(parent)]
	if last := place.Load(); last != nil && last.path == parent {
		return last
	}
	dir := &hiddenDir{parent, h.data.deny.Read.Match(parent, true) != nil, h.masked(parent), h.data.masksBelow(parent)}
	place.Store(dir)
	return dir
}

// masksBelow reports whether a directory holds a masked file.
func (k *policyData) masksBelow(dir string) bool {
	return k.state.LieBelow(dir) || k.secrets.LieBelow(dir)
}

// masked reports whether path is in the host's state, or is a home secret that no allow rule opens.
func (h *hiddenFiles) masked(path string) bool {
	k := h.data
	if k.isState(path) {
		return !h.own.Hold(path)
	}
	if k.secrets.Hold(path) {
		return k.allow.Read.Match(path, false) == nil
	}
	return false
}
