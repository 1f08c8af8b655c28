//go:build unix

package realpath

import (
	"errors"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
	"syscall"
)

// maxLinks is how many symbolic links one path may lead through: MAXSYMLINKS of
// Linux, the largest of the systems we run on.
const maxLinks = 40

var (
	errTooManyLinks = errors.New("it leads through more than 40 symbolic links, or in a circle")
	errDescriptor   = errors.New("it names an open file of a process, not a file on disk")
)

// checkSystemName returns nil: Check has refused NUL, and a name may have every other byte.
func checkSystemName(string) error { return nil }

// SystemName returns the path that the system means by a name, which is the name itself.
func SystemName(_, name string) string { return name }

// Follow walks an absolute name as the kernel does and returns where it
// leads and what is there.
func Follow(name string) (string, Resolved, error) { return FollowFrom("/", name) }

// FollowFrom is Follow for a name relative to at, which has no links.
func FollowFrom(at, name string) (string, Resolved, error) {
	// Fewer elements are as cheap to examine one by one. A name with ".." cannot be cleaned first: after a link, that is
	// the parent of the target.
	const few = 3
	if strings.Count(name, "/") >= few && !strings.Contains(name, "..") {
		whole := filepath.Clean(at + "/" + name)
		if there, ok := withoutLinks(whole); ok {
			return whole, there, nil
		}
	}
	return walk(at, name, asNamed, os.Lstat)
}

// Trace is like Follow, but uses lstat to look at every link, directory and file on the way. The paths given to lstat
// have no links in their directories.
func Trace(name string, lstat func(path string) (fs.FileInfo, error)) (string, error) {
	end, _, err := walk("/", name, asNamed, lstat)
	return end, err
}

// FollowThrough is like Follow, for a caller that sees other files under some names: located returns the path on disk
// of a name.
func FollowThrough(name string, located func(name string) string) (string, Resolved, error) {
	return walk("/", name, located, os.Lstat)
}

func asNamed(name string) string { return name }

// walk is FollowFrom, Trace and FollowThrough: it follows a name element by element.
func walk(at, name string, located func(string) string, lstat func(path string) (fs.FileInfo, error)) (string,
	Resolved, error) {
	at = strings.TrimSuffix(at, "/")
	rest, links := name, 0
	var info fs.FileInfo
	for rest != "" {
		var element string
		element, rest, _ = strings.Cut(rest, "/")
		if element == "" || element == "." {
			continue
		}
		if element == ".." {
			at, info = parentOf(at), nil
			continue
		}
		next := at + "/" + element
		var err error
		info, err = lstat(located(next))
		switch {
		case errors.Is(err, fs.ErrNotExist), errors.Is(err, syscall.ENOTDIR):
			at, info = next, nil
			continue
		case err != nil:
			return "", Resolved{}, cause(err)
		case info.Mode()&fs.ModeSymlink == 0:
			at = next
			continue
		}
		if isDescriptor(at) {
			return "", Resolved{}, errDescriptor
		}
		if links++; links > maxLinks {
			return "", Resolved{}, errTooManyLinks
		}
		target, err := os.Readlink(located(next))
		if err != nil {
			return "", Resolved{}, cause(err)
		}
		if strings.HasPrefix(target, "/") {
			at = ""
		}
		rest, info = target+"/"+rest, nil // it may lead to "." or "/", where no element follows
	}
	if at == "" {
		at = "/"
	}
	if info == nil {
		info, _ = os.Lstat(located(at)) // the walk ended in ".." or ".", or nothing is there
	}
	return at, foundBy(info), nil
}

func parentOf(at string) string {
	if at == "" {
		return ""
	}
	return at[:strings.LastIndexByte(at, '/')]
}

// isDescriptor reports whether dir holds the open files of a process. A link in
// it is resolved by the kernel to the open file itself, not by its text.
func isDescriptor(dir string) bool {
	if !strings.HasPrefix(dir, "/proc/") {
		return false
	}
	base := path.Base(dir)
	return base == "fd" || base == "map_files"
}

// cause strips the path of an error: the caller names it as it was given.
func cause(err error) error {
	var pe *fs.PathError
	if errors.As(err, &pe) {
		return pe.Err
	}
	return err
}
