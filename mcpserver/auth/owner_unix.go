//go:build unix

package auth

import (
	"io/fs"
	"os"
	"syscall"
)

// openFlags keep the opening of a pipe from waiting for its other end.
const openFlags = syscall.O_NONBLOCK

// ours reports whether a file belongs to the user of this process, or to root.
func ours(info fs.FileInfo) bool {
	stat, ok := info.Sys().(*syscall.Stat_t)
	return ok && (stat.Uid == 0 || int(stat.Uid) == os.Geteuid())
}

// names is how many names a file has.
func names(info fs.FileInfo) uint64 {
	if stat, ok := info.Sys().(*syscall.Stat_t); ok {
		return uint64(stat.Nlink)
	}
	return 1
}
