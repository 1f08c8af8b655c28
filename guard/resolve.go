package guard

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
)

// MaxPathLength is the longest name that is resolved, in bytes: PATH_MAX of
// Linux, the longest of the systems we run on.
const MaxPathLength = 4096

// Resolve turns a name into a [Path]: an absolute one, "~", "~/x", or one
// relative to the first root. Symbolic links are followed and ".." is taken
// where the link before it leads, as the kernel does. The file need not exist.
func (p *Policy) Resolve(name string) (Path, error) {
	root := p.core.roots[0]
	return p.ResolveIn(Path{given: root.Given, real: root.Real}, name)
}

// ResolveIn is [Policy.Resolve] with relative names relative to dir.
func (p *Policy) ResolveIn(dir Path, name string) (Path, error) {
	if dir.given == "" {
		return Path{}, errors.New("no directory to resolve names in")
	}
	err := checkName(name)
	if errors.As(err, new(paddedError)) && hasName(dir.real, name) {
		err = checkName(strings.TrimSpace(name)) // there is a file of that very name
	}
	if err != nil {
		return Path{}, err
	}
	return p.core.resolve(dir, name)
}

// A paddedError is one of a name with white space around it, which may be one all the same.
type paddedError string

func (e paddedError) Error() string {
	return fmt.Sprintf("the path %q begins or ends with white space, and there is no file of that very name: leave the white space out", string(e))
}

// hasName reports whether something has that name, blanks included, in dir.
func hasName(dir, name string) bool {
	if !filepath.IsAbs(name) {
		name = filepath.Join(dir, name)
	}
	_, err := os.Lstat(name)
	return err == nil && runtime.GOOS != "windows" // which drops them
}

// checkName refuses names that can only be mistakes or attacks.
func checkName(name string) error {
	switch {
	case name == "":
		return errors.New("the path is empty; give an absolute path or one relative to the workspace root")
	case strings.ContainsRune(name, 0):
		return fmt.Errorf("the path %q contains a NUL character; no file has such a name", name)
	case strings.TrimSpace(name) != name:
		return paddedError(name)
	case len(name) > MaxPathLength:
		return fmt.Errorf("the path has %d bytes, more than the %d a path may have", len(name), MaxPathLength)
	}
	return checkSystemName(name)
}

// resolve is [Policy.ResolveIn] for a name that was checked.
func (k *core) resolve(dir Path, name string) (Path, error) {
	if isHome(name) {
		if k.home.Given == "" {
			return Path{}, errNoHome
		}
		dir, name = pathOf(k.home), "./"+name[1:]
	}
	name = systemName(dir.real, name)
	p := Path{given: filepath.Clean(name)}
	var at found
	var err error
	if filepath.IsAbs(name) {
		p.real, at, err = followLinks(name)
	} else {
		p.given = filepath.Join(dir.given, name)
		p.real, at, err = followFrom(dir.real, name)
	}
	if err != nil {
		return Path{}, fmt.Errorf("the path %s cannot be resolved: %w", p.given, err)
	}
	p.dir, p.regular, p.file, p.links = at.dir, at.regular, at.file, at.links
	return p, nil
}

// found is what stands where a name leads, zero for nothing.
type found struct {
	dir, regular bool
	file         fileID
	links        uint64 // names of it, 0 when unknown
}

// foundBy is what a description tells; info may be nil.
func foundBy(info fs.FileInfo) found {
	if info == nil {
		return found{}
	}
	id, links := identify(info)
	return found{info.IsDir(), info.Mode().IsRegular(), id, links}
}

var errNoHome = errors.New("the path is in the home directory, which is not known; give an absolute path")

// isHome reports whether a name begins with the home directory.
func isHome(name string) bool {
	return name == "~" || strings.HasPrefix(name, "~/") || strings.HasPrefix(name, "~"+string(filepath.Separator))
}
