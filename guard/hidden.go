package guard

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"
)

// hiddenDir remembers what is known of one directory: searches go through the
// files of a directory one after another.
type hiddenDir struct {
	path   string
	denied bool // it, or a directory above it, by a rule
	masked bool
}

// Hidden reports whether the file or directory at real, an absolute path without
// symbolic links, does not exist for searches: it is denied by a Read rule, one
// of its other names is, or it is in the host's state or among the home
// directory's secrets. It touches no disk, but that it looks, at most once a minute
// and only where Read rules deny files, for other names of denied files.
func (p *Policy) Hidden(real string, dir bool) bool {
	k := p.core
	path := slashed(real)
	if above := p.above(path); above.denied {
		return true
	} else if (above.masked || k.masks[k.state.spelling.of(path)]) && p.masked(path) {
		return true
	}
	return k.blind || k.deny.read.matchLeaf(path, dir) != nil || !dir && k.links.denied(k, path)
}

// above returns what is known of the directory that holds path.
func (p *Policy) above(path string) *hiddenDir {
	parent := path[:max(strings.LastIndexByte(path, '/'), 0)]
	if last := p.lastHidden.Load(); last != nil && last.path == parent {
		return last
	}
	h := &hiddenDir{parent, p.core.deny.read.match(parent, true) != nil, p.masked(parent)}
	p.lastHidden.Store(h)
	return h
}

// masked reports whether path is in the host's state or a home secret that no
// allow rule opens.
func (p *Policy) masked(path string) bool {
	k := p.core
	if k.state.within(path) {
		return !p.own.within(path)
	}
	if k.secrets.within(path) {
		return k.allow.read.match(path, false) == nil
	}
	return false
}

// HiddenTag returns a key for everything that decides [Policy.Hidden] for this
// caller, so that what was computed under one policy is not used under another.
func (p *Policy) HiddenTag() string {
	k := p.core
	names := k.links.tag(k)
	if len(p.own.names) == 0 && names == "" {
		return k.tag
	}
	sum := sha256.Sum256(fmt.Appendf(nil, "%s %q %s", k.tag, p.own.names, names))
	return hex.EncodeToString(sum[:16])
}
