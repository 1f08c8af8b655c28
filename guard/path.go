package guard

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/toolhost/toolhost/guard/internal/pathname"
	"github.com/toolhost/toolhost/guard/internal/realpath"
)

// ErrSwapped reports that a path changed between the moment it was judged and
// the moment it was opened: a directory or the file itself became a symbolic
// link, or another file took its place. Nothing was opened.
var ErrSwapped = realpath.ErrSwapped

// A Path is a file name that the guard has resolved. Only [Policy.Resolve] and
// [Policy.ResolveIn] make one, so that nothing can be opened that could not be
// judged. Its methods open what Real names, at Location, and follow no symbolic link; a
// changed path is an error that wraps [ErrSwapped]. The zero Path opens nothing.
type Path struct {
	given string      // absolute and cleaned, symbolic links as the caller named them
	real  string      // symbolic links resolved
	file  realpath.ID // the file when the path was resolved; zero if there was none
	dir   bool
	links uint64 // hard links of the file, 0 when unknown or if there is none
	// at is the location of a file in a private directory of the caller; empty for any other.
	at string
	// regular says that it was a regular file.
	regular bool
}

// pathOf returns the path of a place that is never opened. Names are resolved in it.
func pathOf(p pathname.Place) Path { return Path{given: p.Given, real: p.Real} }

// String returns the absolute, cleaned path as the caller meant it, for
// messages.
func (p Path) String() string { return p.given }

// Real returns the path with every symbolic link resolved. For a file that does not exist it is the real path of its
// nearest existing ancestor, followed by the rest.
func (p Path) Real() string { return p.real }

// Location returns the path of the file on disk: Real, unless it is [Path.Own]. It is not for messages.
func (p Path) Location() string {
	if p.at != "" {
		return p.at
	}
	return p.real
}

// Own reports whether the file lies in a directory that the caller's commands see in place of the host's, such as /tmp.
func (p Path) Own() bool { return p.at != "" }

// Regular reports whether the path was a regular file when it was resolved.
func (p Path) Regular() bool { return p.regular }

// Open opens the file for reading. It does not block on a FIFO or device.
func (p Path) Open() (*os.File, error) { return p.open(os.O_RDONLY) }

// OpenWritable opens the existing file for reading and writing in place. It
// neither creates nor truncates.
func (p Path) OpenWritable() (*os.File, error) { return p.open(os.O_RDWR) }

// Stat describes the file.
func (p Path) Stat() (fs.FileInfo, error) {
	if p.real == "" {
		return nil, p.unresolved("stat")
	}
	info, err := realpath.Stat(p.Location())
	if err != nil {
		return nil, p.fail("stat", err)
	}
	return info, nil
}

// OpenParent opens the directory that holds the file and returns it with the file's base name. It never creates a
// directory. Operations on the base name in that root may follow a symbolic link that was created meanwhile; create
// and rename do not.
func (p Path) OpenParent() (*os.Root, string, error) {
	if p.real == "" {
		return nil, "", p.unresolved("open")
	}
	dir, base := filepath.Dir(p.Location()), filepath.Base(p.Location())
	if dir == p.Location() {
		return nil, "", fmt.Errorf("%s has no parent directory", p)
	}
	root, err := realpath.OpenDir(dir)
	if err != nil {
		return nil, "", p.fail("open directory of", err)
	}
	return root, base, nil
}

// MakeParents creates the missing directories above the file with the permissions perm before umask. unmake removes
// those that it created, if they are empty; after an error all of them have been removed.
func (p Path) MakeParents(perm fs.FileMode) (unmake func(), err error) {
	if p.real == "" {
		return nil, p.unresolved("make directory of")
	}
	made, err := realpath.MakeDirs(filepath.Dir(p.Location()), perm)
	if err != nil {
		return nil, p.fail("make directory of", err)
	}
	return made.Remove, nil
}

func (p Path) open(flag int) (*os.File, error) {
	if p.real == "" {
		return nil, p.unresolved("open")
	}
	f, err := realpath.OpenAs(p.Location(), p.file, flag)
	if err != nil {
		return nil, p.fail("open", err)
	}
	return f, nil
}

func (p Path) unresolved(op string) error {
	return &fs.PathError{Op: op, Path: p.given, Err: errors.New("the path was never resolved")}
}

// fail names the path as the caller did: the caller may not be allowed to know the real one.
func (p Path) fail(op string, err error) error {
	var pe *fs.PathError
	if errors.As(err, &pe) {
		err = pe.Err
	}
	if errors.Is(err, ErrSwapped) {
		return fmt.Errorf("%s %s: %w; nothing was opened, try again", op, p.given, err)
	}
	return &fs.PathError{Op: op, Path: p.given, Err: err}
}
