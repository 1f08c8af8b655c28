package guard

import (
	"io/fs"
	"syscall"
	"time"
)

// changed returns when the file's names, owner or content last changed.
func changed(info fs.FileInfo) time.Time {
	if st, ok := info.Sys().(*syscall.Stat_t); ok {
		return time.Unix(st.Ctim.Unix())
	}
	return time.Now()
}
