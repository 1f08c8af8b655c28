package realpath

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// noLinks refuses a path with a symbolic link in it.
const noLinks = unix.RESOLVE_NO_SYMLINKS | unix.RESOLVE_NO_MAGICLINKS

// bareFlags opens a file without any right on it, only to look at it.
const bareFlags = unix.O_PATH

// dirFlags opens a directory to look names up in it.
const dirFlags = unix.O_PATH | unix.O_DIRECTORY

// withoutLinks resolves a path without symbolic links, as most paths are. ok is false for any other
// path, and if the kernel cannot resolve it in one step.
func withoutLinks(path string) (there Resolved, ok bool) {
	how := unix.OpenHow{Flags: bareFlags | unix.O_CLOEXEC, Resolve: noLinks}
	fd, err := unix.Openat2(unix.AT_FDCWD, path, &how)
	if err != nil {
		return Resolved{}, false
	}
	defer unix.Close(fd)
	var st unix.Stat_t
	if unix.Fstat(fd, &st) != nil {
		return Resolved{}, false
	}
	kind := st.Mode & unix.S_IFMT
	return Resolved{kind == unix.S_IFDIR, kind == unix.S_IFREG, ID{uint64(st.Dev), uint64(st.Ino)},
		uint64(st.Nlink)}, true
}

// maxRaces is how often a path is tried again at once if it changed while it was resolved.
const maxRaces = 16

// openNoLinks opens an absolute path that has no symbolic link in it. The kernel refuses links in
// one step (openat2, Linux 5.6). If it cannot, or a seccomp filter forbids the call, the path is
// walked element by element.
func openNoLinks(path string, flag int) (int, error) {
	how := unix.OpenHow{
		Flags:   uint64(flag | unix.O_CLOEXEC),
		Resolve: noLinks,
	}
	for tries := 0; ; tries++ {
		fd, err := unix.Openat2(unix.AT_FDCWD, path, &how)
		switch {
		case err == nil:
			return fd, nil
		case errors.Is(err, unix.EINTR):
			continue
		case errors.Is(err, unix.EAGAIN) && tries < maxRaces: // a rename crossed its way, or a lease is held
			continue
		case errors.Is(err, unix.ENOSYS), errors.Is(err, unix.EPERM):
			return openByElement(path, flag)
		case errors.Is(err, unix.ELOOP):
			return -1, ErrSwapped
		}
		return -1, &os.PathError{Op: "open", Path: path, Err: err}
	}
}
