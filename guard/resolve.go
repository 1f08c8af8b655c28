package guard

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/toolhost/toolhost/guard/internal/pathname"
	"github.com/toolhost/toolhost/guard/internal/realpath"
)

// Resolve turns a name into a [Path]: an absolute one, "~", "~/x", or one relative to the first root. Symbolic links
// are followed, and ".." is resolved after the link before it, as the kernel does. The file need not exist.
func (p *Policy) Resolve(name string) (Path, error) {
	return p.ResolveIn(pathOf(p.data.roots[0]), name)
}

// ResolveIn is [Policy.Resolve] with relative names relative to dir.
func (p *Policy) ResolveIn(dir Path, name string) (Path, error) {
	if dir.given == "" {
		return Path{}, errors.New("no directory to resolve names in")
	}
	if err := realpath.Check(dir.real, name); err != nil {
		return Path{}, err
	}
	return p.data.resolve(dir, name)
}

// ResolveKept is [Policy.Resolve] for an absolute name that a file has had: white space around it is no mistake.
func (p *Policy) ResolveKept(name string) (Path, error) {
	if err := realpath.CheckKept(name); err != nil {
		return Path{}, err
	}
	return p.data.resolve(pathOf(p.data.roots[0]), name)
}

// ResolveEntry is [Policy.ResolveKept] for a directory entry: it does not follow the entry if that is a symbolic link.
func (p *Policy) ResolveEntry(name string) (Path, error) {
	dir, err := p.ResolveKept(filepath.Dir(name))
	if err != nil {
		return Path{}, err
	}
	return Path{given: name, real: filepath.Join(dir.real, filepath.Base(name))}, nil
}

// resolve is [Policy.ResolveIn] for a name that was checked.
func (k *policyData) resolve(dir Path, name string) (Path, error) {
	if isHome(name) {
		if k.home.Given == "" {
			return Path{}, errNoHome
		}
		dir, name = pathOf(k.home), "./"+name[1:]
	}
	name = realpath.SystemName(dir.real, name)
	p := Path{given: filepath.Clean(name)}
	var at realpath.Resolved
	var err error
	if filepath.IsAbs(name) {
		p.real, at, err = realpath.Follow(name)
	} else {
		p.given = filepath.Join(dir.given, name)
		p.real, at, err = realpath.FollowFrom(dir.real, name)
	}
	if err != nil {
		return Path{}, fmt.Errorf("the path %s cannot be resolved: %w", p.given, err)
	}
	if len(k.manyNames) > 0 {
		if p.real, err = k.manyNames.stored(p.real); err != nil {
			return Path{}, fmt.Errorf("the path %s cannot be resolved: %w", p.given, err)
		}
	}
	if !k.inRoot(p) && (k.inPrivate(p.real) || k.inPrivate(p.given)) {
		if !filepath.IsAbs(name) {
			name = dir.real + "/" + name
		}
		if at, err = k.follow(&p, name); err != nil {
			return Path{}, fmt.Errorf("the path %s cannot be resolved: %w", p.given, err)
		}
	}
	p.dir, p.regular, p.file, p.links = at.Dir, at.Regular, at.File, at.Names
	if p.at != "" {
		// A command cannot link files from elsewhere, because its private directories are separate mounts.
		p.links = min(p.links, 1)
	}
	return p, nil
}

// inRoot reports whether a path without symbolic links lies in a root. Such a path means the same file to commands: the
// containment, whose first test is slow, does not matter.
func (k *policyData) inRoot(p Path) bool {
	real := pathname.Slashed(p.real)
	return p.given == p.real &&
		slices.ContainsFunc(k.roots, func(r pathname.Place) bool { return pathname.Within(real, pathname.Slashed(r.Real)) })
}

// inPrivate reports whether a name means a different file to contained commands than to the host.
func (k *policyData) inPrivate(name string) bool {
	return k.private.Holds(name) && k.hasPrivateDirs()
}

// hasPrivateDirs reports whether the containment gives commands private directories.
func (k *policyData) hasPrivateDirs() bool {
	return k.containment().Name == "namespaces"
}

// follow resolves an absolute name again, as the caller's commands would.
func (k *policyData) follow(p *Path, name string) (at realpath.Resolved, err error) {
	if !k.private.Holds(p.given) { // a link leads out of the private directories
		name = p.real
	}
	located := func(name string) string { at, _ := k.private.Locate(name); return at }
	if p.real, at, err = realpath.FollowThrough(name, located); err != nil {
		return at, err
	}
	if where, own := k.private.Locate(p.real); own {
		p.at = where
	}
	return at, nil
}

var errNoHome = errors.New("the path is in the home directory, which is not known; give an absolute path")

// isHome reports whether a name begins with the home directory.
func isHome(name string) bool {
	return name == "~" || strings.HasPrefix(name, "~/") || strings.HasPrefix(name, "~"+string(filepath.Separator))
}
