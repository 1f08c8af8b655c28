//go:build unix

package environ

import (
	"os"
	"syscall"
)

// rootDir is where the login shell runs.
const rootDir = "/"

// rootOnly reports whether no one but root can put a file into a directory.
func rootOnly(dir string) bool {
	info, err := os.Stat(dir)
	if err != nil || !info.IsDir() || info.Mode().Perm()&0o022 != 0 {
		return false
	}
	st, ok := info.Sys().(*syscall.Stat_t)
	return ok && st.Uid == 0
}
