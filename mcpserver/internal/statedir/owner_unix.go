//go:build unix

package statedir

import (
	"io/fs"
	"os"
	"syscall"
)

// belongsHere reports whether a file is one of the user of this process, or of root.
func belongsHere(info fs.FileInfo) bool {
	stat, ok := info.Sys().(*syscall.Stat_t)
	return !ok || stat.Uid == 0 || int(stat.Uid) == os.Geteuid()
}
