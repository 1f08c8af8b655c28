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

// samePlace returns a function that reports whether a directory is one of some places under any name. The places are
// read by system calls, because os.Stat notes each name for the cache of go test, and the hosts of a test process
// have thousands of places.
func samePlace(places []string) func(fs.FileInfo) bool {
	type identity struct{ dev, ino uint64 }
	known := map[identity]bool{}
	for _, place := range places {
		var st unix.Stat_t
		if unix.Stat(place, &st) == nil {
			known[identity{uint64(st.Dev), st.Ino}] = true
		}
	}
	return func(info fs.FileInfo) bool {
		st, ok := info.Sys().(*syscall.Stat_t)
		return ok && known[identity{uint64(st.Dev), st.Ino}]
	}
}
