//go:build unix

package settle

import (
	"io/fs"
	"os"
	"syscall"
)

// keepOwner gives a copy the owner of a file. Without the right to it, both are ours already.
func keepOwner(f *os.File, of fs.FileInfo) {
	if st, ok := of.Sys().(*syscall.Stat_t); ok {
		_ = f.Chown(int(st.Uid), int(st.Gid))
	}
}
