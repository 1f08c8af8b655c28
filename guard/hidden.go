package guard

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"
)

// hiddenDir remembers whether a directory, or one above it, is hidden.
type hiddenDir struct {
	path   string
	hidden bool
}

// Hidden reports whether the file or directory at real, an absolute path without
// symbolic links, does not exist for searches: it is denied by a Read rule, one
// of its other names is, or it is in the host's state or among the home
// directory's secrets. It touches no disk.
func (p *Policy) Hidden(real string, dir bool) bool {
	k := p.core
	path := slashed(real)
	if p.masked(path) {
		return true
	}
	if k.deny.tools["Read"] != nil {
		return true
	}
	if !k.deny.read.empty() {
		if k.hiddenAbove(path) || k.deny.read.matchLeaf(path, dir) != nil {
			return true
		}
	}
	return !dir && k.links.denied(path)
}

// hiddenAbove reports whether a directory above path is denied.
func (k *core) hiddenAbove(path string) bool {
	i := strings.LastIndexByte(path, '/')
	if i <= 0 {
		return false
	}
	parent := path[:i]
	if last := k.lastHidden.Load(); last != nil && last.path == parent {
		return last.hidden
	}
	hidden := k.deny.read.match(parent, true) != nil
	k.lastHidden.Store(&hiddenDir{parent, hidden})
	return hidden
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
// Where Read rules deny files it also looks, at most once a minute, for other
// names of denied files.
func (p *Policy) HiddenTag() string {
	k := p.core
	names := k.links.tag(k)
	if len(p.own) == 0 && names == "" {
		return k.tag
	}
	sum := sha256.Sum256(fmt.Appendf(nil, "%s %q %s", k.tag, p.own, names))
	return hex.EncodeToString(sum[:16])
}
