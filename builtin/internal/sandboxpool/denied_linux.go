package sandboxpool

import (
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// identify returns the identity of a file, and how many names it has.
func identify(info os.FileInfo) (fileID, uint64) {
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return fileID{}, 0
	}
	return fileID{uint64(st.Dev), uint64(st.Ino)}, uint64(st.Nlink)
}

// born returns the time when a file was created, in nanoseconds, or 0.
func born(path string) int64 {
	var st unix.Statx_t
	if err := unix.Statx(unix.AT_FDCWD, path, unix.AT_SYMLINK_NOFOLLOW, unix.STATX_BTIME, &st); err != nil ||
		st.Mask&unix.STATX_BTIME == 0 {
		return 0
	}
	return st.Btime.Sec*1e9 + int64(st.Btime.Nsec)
}
