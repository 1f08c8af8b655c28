package place

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// An Inode identifies a file whatever its name.
type Inode struct{ Dev, Ino uint64 }

// An Object is something that exists, by a name without symbolic links.
type Object struct {
	Path string
	Inode
	Dir  bool
	Link bool // symbolic; never of what Locate finds
}

// Locate follows symbolic links to the object that reading path would reach.
func Locate(path string) (Object, error) {
	resolved, err := filepath.EvalSymlinks(path)
	if err != nil {
		if _, kernel := os.Stat(path); errors.Is(kernel, unix.ELOOP) { // which EvalSymlinks says in words of its own
			err = kernel
		}
		return Object{}, err
	}
	return Identify(resolved)
}

// Identify describes the object at path itself.
func Identify(path string) (Object, error) {
	var st unix.Stat_t
	if err := unix.Lstat(path, &st); err != nil {
		return Object{}, &fs.PathError{Op: "lstat", Path: path, Err: err}
	}
	return Object{
		Path:  path,
		Inode: Inode{Dev: st.Dev, Ino: st.Ino},
		Dir:   st.Mode&unix.S_IFMT == unix.S_IFDIR,
		Link:  st.Mode&unix.S_IFMT == unix.S_IFLNK,
	}, nil
}

// Absent reports whether err means that a command, which has no more rights than we have, will find nothing either.
// That includes links that form a loop.
func Absent(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, unix.ENOTDIR) || errors.Is(err, fs.ErrPermission) ||
		errors.Is(err, unix.ELOOP)
}

// OpenPath opens a name that has been resolved before. A symbolic link in it
// means that a part was replaced since.
func OpenPath(path string) (int, error) {
	return unix.Openat2(unix.AT_FDCWD, path, &unix.OpenHow{
		Flags:   unix.O_PATH | unix.O_CLOEXEC | unix.O_NOFOLLOW,
		Resolve: unix.RESOLVE_NO_SYMLINKS | unix.RESOLVE_NO_MAGICLINKS,
	})
}

// InodeOf returns the inode of an open file.
func InodeOf(fd int) (Inode, error) {
	var st unix.Stat_t
	err := unix.Fstat(fd, &st)
	return Inode{st.Dev, st.Ino}, err
}

// OnReadOnly reports whether an open file lies where nothing can be written.
func OnReadOnly(node int) bool {
	var fs unix.Statfs_t
	return unix.Fstatfs(node, &fs) == nil && fs.Flags&unix.ST_RDONLY != 0
}
