//go:build unix

package realpath

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/toolhost/toolhost/guard/lease"
)

// Identify returns the identity of a file and how many names it has.
func Identify(info fs.FileInfo) (ID, uint64) {
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return ID{}, 0
	}
	return ID{uint64(st.Dev), uint64(st.Ino)}, uint64(st.Nlink)
}

// Open opens path with flag, following no symbolic link. It waits for nothing but a lease, and for that not long.
func Open(path string, flag int) (*os.File, error) {
	fd, err := lease.Open(path, func() (int, error) { return openNoLinks(path, flag|unix.O_NONBLOCK) })
	if err != nil {
		return nil, err
	}
	return os.NewFile(uintptr(fd), path), nil
}

// openBare opens path only to look at it.
func openBare(path string) (*os.File, error) {
	fd, err := openNoLinks(path, bareFlags)
	if err != nil {
		return nil, err
	}
	return os.NewFile(uintptr(fd), path), nil
}

// openByElement walks path down from the root directory. It opens each element in the previous one, and follows
// no symbolic link.
func openByElement(path string, flag int) (int, error) {
	dir, err := unix.Open("/", dirFlags|unix.O_CLOEXEC, 0)
	if err != nil {
		return -1, err
	}
	elements := strings.FieldsFunc(path, func(r rune) bool { return r == filepath.Separator })
	if len(elements) == 0 {
		elements = []string{"."}
	}
	for i, name := range elements {
		want := dirFlags
		if i == len(elements)-1 {
			want = flag
		}
		fd, err := openAt(dir, name, want)
		unix.Close(dir)
		if err != nil {
			return -1, err
		}
		dir = fd
	}
	return dir, nil
}

// openAt opens name in dir. A symbolic link there is ErrSwapped: the path had
// none when it was resolved.
func openAt(dir int, name string, flag int) (int, error) {
	for {
		fd, err := unix.Openat(dir, name, flag|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
		if errors.Is(err, unix.EINTR) {
			continue
		}
		var st unix.Stat_t
		if err == nil && flag&bareFlags == bareFlags && bareFlags != 0 {
			// O_PATH with O_NOFOLLOW opens the link itself.
			if unix.Fstat(fd, &st) == nil && st.Mode&unix.S_IFMT == unix.S_IFLNK {
				unix.Close(fd)
				return -1, ErrSwapped
			}
		}
		if err == nil {
			return fd, nil
		}
		if unix.Fstatat(dir, name, &st, unix.AT_SYMLINK_NOFOLLOW) == nil && st.Mode&unix.S_IFMT == unix.S_IFLNK {
			return -1, ErrSwapped
		}
		return -1, &os.PathError{Op: "open", Path: name, Err: err}
	}
}
