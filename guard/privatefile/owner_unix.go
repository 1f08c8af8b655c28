//go:build unix

package privatefile

import (
	"io/fs"
	"os"
	"syscall"
)

// NoFollow and NoWait are flags of opening: a symbolic link is refused, and a pipe is not waited for.
const (
	NoFollow = syscall.O_NOFOLLOW
	NoWait   = syscall.O_NONBLOCK
)

// Ours reports whether a file belongs to the user of this process, or to root.
func Ours(info fs.FileInfo) bool {
	stat, ok := info.Sys().(*syscall.Stat_t)
	return ok && (stat.Uid == 0 || int(stat.Uid) == os.Geteuid())
}

// GivenByRoot reports whether a file belongs to root and is read by a process of another user. Root has then chosen the
// group that may read it, as Kubernetes does with a Secret.
func GivenByRoot(info fs.FileInfo, user int) bool {
	stat, ok := info.Sys().(*syscall.Stat_t)
	return ok && stat.Uid == 0 && user != 0
}
