//go:build unix

package realpath

import (
	"errors"
	"io/fs"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// makeDirs returns what it has created even with an error.
func makeDirs(dir string, perm fs.FileMode) (made CreatedDirs, err error) {
	existing := dir
	fd, err := openNoLinks(existing, dirFlags)
	for errors.Is(err, fs.ErrNotExist) && existing != "/" {
		existing = filepath.Dir(existing)
		fd, err = openNoLinks(existing, dirFlags)
	}
	if err != nil {
		return nil, err
	}
	defer func() { unix.Close(fd) }()
	rest, err := filepath.Rel(existing, dir)
	if err != nil || rest == "." {
		return nil, err
	}
	for name := range strings.SplitSeq(rest, "/") {
		existing = filepath.Join(existing, name)
		switch err := unix.Mkdirat(fd, name, uint32(perm.Perm())); {
		case err == nil:
			made = append(made, createdDir{existing, idAt(fd, name)})
		case !errors.Is(err, unix.EEXIST):
			return made, err
		}
		next, err := openAt(fd, name, dirFlags)
		if err != nil {
			return made, err
		}
		unix.Close(fd)
		fd = next
	}
	return made, nil
}

// idAt returns the identity of what has that name in a directory, which may be a symbolic link itself. It is zero if
// it cannot be known.
func idAt(dir int, name string) ID {
	var st unix.Stat_t
	if unix.Fstatat(dir, name, &st, unix.AT_SYMLINK_NOFOLLOW) != nil {
		return ID{}
	}
	return ID{uint64(st.Dev), uint64(st.Ino)}
}

func (d createdDir) remove() bool {
	parent, err := openNoLinks(filepath.Dir(d.path), dirFlags)
	if err != nil {
		return false
	}
	defer unix.Close(parent)
	name := filepath.Base(d.path)
	return d.id != ID{} && idAt(parent, name) == d.id && unix.Unlinkat(parent, name, unix.AT_REMOVEDIR) == nil
}
