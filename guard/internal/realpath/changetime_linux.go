package realpath

import (
	"io/fs"
	"syscall"
	"time"
)

// Of returns when the names, owner, mode or content of a file last changed, and whether the system
// reports that.
func Of(info fs.FileInfo) (time.Time, bool) {
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return time.Time{}, false
	}
	return time.Unix(st.Ctim.Unix()), true
}
