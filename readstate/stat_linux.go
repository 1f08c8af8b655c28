package readstate

import (
	"io/fs"
	"syscall"
	"time"
)

// identify returns the device and inode of a file, and when its content or metadata last changed.
func identify(info fs.FileInfo) (dev, inode uint64, changed time.Time) {
	if st, ok := info.Sys().(*syscall.Stat_t); ok {
		return st.Dev, st.Ino, time.Unix(st.Ctim.Unix())
	}
	return 0, 0, time.Time{}
}
