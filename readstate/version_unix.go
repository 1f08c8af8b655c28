//go:build unix

package readstate

import (
	"io/fs"
	"syscall"
)

// identity returns the device and inode of a file.
func identity(info fs.FileInfo) (dev, inode uint64) {
	if st, ok := info.Sys().(*syscall.Stat_t); ok {
		return uint64(st.Dev), uint64(st.Ino) //nolint:unconvert // the widths differ between systems
	}
	return 0, 0
}
