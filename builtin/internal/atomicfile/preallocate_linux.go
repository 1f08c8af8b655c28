package atomicfile

import (
	"fmt"
	"io/fs"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// canSpare says that this system has files without names.
const canSpare = true

// openNameless makes a file without a name in a directory.
func openNameless(dir *os.File) (*os.File, error) {
	fd, err := unix.Openat(int(dir.Fd()), ".", unix.O_TMPFILE|unix.O_WRONLY|unix.O_CLOEXEC, uint32(tempMode))
	if err != nil {
		return nil, err
	}
	return os.NewFile(uintptr(fd), dir.Name()), nil
}

// giveName gives a file without a name a name that must not be in use. Before Linux 6.10 a process without privileges
// cannot do that by the descriptor alone.
func giveName(f, dir *os.File, name string) error {
	err := unix.Linkat(int(f.Fd()), "", int(dir.Fd()), name, unix.AT_EMPTY_PATH)
	if err == nil || err == unix.EEXIST {
		return err
	}
	return unix.Linkat(unix.AT_FDCWD, fmt.Sprintf("/proc/self/fd/%d", f.Fd()), int(dir.Fd()), name,
		unix.AT_SYMLINK_FOLLOW)
}

// linksOf returns how many names a file has.
func linksOf(info fs.FileInfo) uint64 { return uint64(info.Sys().(*syscall.Stat_t).Nlink) }
