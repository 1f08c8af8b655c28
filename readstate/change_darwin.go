package readstate

import (
	"io/fs"
	"syscall"
	"time"
)

// changeTime returns when anything of a file changed last.
func changeTime(info fs.FileInfo) time.Time {
	if st, ok := info.Sys().(*syscall.Stat_t); ok {
		return time.Unix(st.Ctimespec.Unix())
	}
	return time.Time{}
}
