package readstate

import (
	"io/fs"
	"syscall"
	"time"
)

// identify returns the device and inode of a file, and when its content or metadata last changed.
func identify(info fs.FileInfo) (dev, inode uint64, changed time.Time) {
	if st, ok := info.Sys().(*syscall.Stat_t); ok {
		return uint64(st.Dev), st.Ino, time.Unix(st.Ctimespec.Unix())
	}
	return 0, 0, time.Time{}
}
