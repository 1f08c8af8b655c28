package guard

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"
)

// MaxPathLength is the longest name that is resolved, in bytes: PATH_MAX of
// Linux, the longest of the systems we run on.
const MaxPathLength = 4096

// Resolve turns a name into a [Path]: an absolute one, "~", "~/x", or one
// relative to the first root. Symbolic links are followed and ".." is taken
// where the link before it leads, as the kernel does. The file need not exist.
func (p *Policy) Resolve(name string) (Path, error) { return p.resolve(p.core.roots[0].given, name) }

// ResolveIn is [Policy.Resolve] with relative names relative to dir.
func (p *Policy) ResolveIn(dir Path, name string) (Path, error) {
	if dir.given == "" {
		return Path{}, errors.New("no directory to resolve names in")
	}
	return p.resolve(dir.given, name)
}

func (p *Policy) resolve(dir, name string) (Path, error) {
	if err := checkName(name); err != nil {
		return Path{}, err
	}
	full, err := absolute(name, dir, p.core.home.given)
	if err != nil {
		return Path{}, err
	}
	return resolveFull(full)
}

// checkName refuses names that can only be mistakes or attacks.
func checkName(name string) error {
	switch {
	case name == "":
		return errors.New("the path is empty; give an absolute path or one relative to the workspace root")
	case strings.ContainsRune(name, 0):
		return fmt.Errorf("the path %q contains a NUL character; no file has such a name", name)
	case strings.TrimSpace(name) != name:
		return fmt.Errorf("the path %q begins or ends with white space; leave it out", name)
	case len(name) > MaxPathLength:
		return fmt.Errorf("the path has %d bytes, more than the %d a path may have", len(name), MaxPathLength)
	}
	return checkSystemName(name)
}

// absolute returns name made absolute but not cleaned: ".." must be taken after
// the links before it were followed.
func absolute(name, dir, home string) (string, error) {
	switch {
	case name == "~" || strings.HasPrefix(name, "~/") || strings.HasPrefix(name, "~"+string(filepath.Separator)):
		if home == "" {
			return "", fmt.Errorf("the path %q is in the home directory, which is not known; give an absolute path", name)
		}
		return home + string(filepath.Separator) + name[1:], nil
	case filepath.IsAbs(name):
		return name, nil
	}
	return dir + string(filepath.Separator) + name, nil
}

// resolveFull resolves an absolute name.
func resolveFull(full string) (Path, error) {
	p := Path{given: filepath.Clean(full)}
	real, info, err := followLinks(full)
	if err != nil {
		return Path{}, fmt.Errorf("the path %s cannot be resolved: %w", p.given, err)
	}
	p.real = real
	if info != nil {
		p.dir = info.IsDir()
		p.file, p.links = identify(info)
	}
	return p, nil
}
