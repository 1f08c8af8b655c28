//go:build unix

package hostprogram

import (
	"io/fs"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// modifiable reports whether this user, as whom commands run, can write a file or directory, or give itself the right
// to.
func modifiable(path string, info fs.FileInfo) bool {
	if st, ok := info.Sys().(*syscall.Stat_t); !ok || int(st.Uid) == os.Geteuid() {
		return true
	}
	return unix.Faccessat(unix.AT_FDCWD, path, unix.W_OK, unix.AT_EACCESS) == nil
}
