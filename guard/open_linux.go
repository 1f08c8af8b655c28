package guard

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// bareFlags opens a file without any right on it, only to look at it.
const bareFlags = unix.O_PATH

// dirFlags opens a directory to look names up in it.
const dirFlags = unix.O_PATH | unix.O_DIRECTORY

// openNoLinks opens an absolute path none of whose elements is a symbolic link.
// The kernel refuses links in one step (openat2, Linux 5.6); where it cannot, or
// a seccomp filter forbids the call, the path is walked element by element.
func openNoLinks(path string, flag int) (int, error) {
	how := unix.OpenHow{
		Flags:   uint64(flag | unix.O_CLOEXEC),
		Resolve: unix.RESOLVE_NO_SYMLINKS | unix.RESOLVE_NO_MAGICLINKS,
	}
	for {
		fd, err := unix.Openat2(unix.AT_FDCWD, path, &how)
		switch {
		case err == nil:
			return fd, nil
		case errors.Is(err, unix.EINTR), errors.Is(err, unix.EAGAIN):
			continue
		case errors.Is(err, unix.ENOSYS), errors.Is(err, unix.EPERM):
			return openByElement(path, flag)
		case errors.Is(err, unix.ELOOP):
			return -1, ErrSwapped
		}
		return -1, &os.PathError{Op: "open", Path: path, Err: err}
	}
}
