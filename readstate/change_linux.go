package readstate

import (
	"io/fs"
	"syscall"
	"time"
)

// changeTime returns when the content or metadata of a file last changed.
func changeTime(info fs.FileInfo) time.Time {
	if st, ok := info.Sys().(*syscall.Stat_t); ok {
		return time.Unix(st.Ctim.Unix())
	}
	return time.Time{}
}
