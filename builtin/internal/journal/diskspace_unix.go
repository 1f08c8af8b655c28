//go:build linux || darwin

package journal

import (
	"errors"
	"syscall"

	"golang.org/x/sys/unix"
)

// isFull reports whether an error says that a disk, or the quota of the user on it, is full.
func isFull(err error) bool { return errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) }

// sizeOf returns how many bytes this user can still take of the file system of a directory, and how many it has.
func sizeOf(dir string) (free, all int64, ok bool) {
	var st unix.Statfs_t
	if unix.Statfs(dir, &st) != nil {
		return 0, 0, false
	}
	return int64(st.Bavail) * int64(st.Bsize), int64(st.Blocks) * int64(st.Bsize), true
}

// sameDisk reports whether two directories are on one file system. Its parts can have different device numbers.
func sameDisk(a, b string) bool {
	var x, y unix.Statfs_t
	if unix.Statfs(a, &x) != nil || unix.Statfs(b, &y) != nil {
		return false
	}
	return x.Type == y.Type && x.Blocks == y.Blocks && (x.Fsid == y.Fsid || x.Bfree == y.Bfree && x.Ffree == y.Ffree)
}
