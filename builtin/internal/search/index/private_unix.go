//go:build unix

package index

import (
	"os"
	"syscall"
)

// private reports whether only this user can write a directory and read in it.
func private(path string) error {
	info, err := os.Lstat(path)
	if err != nil {
		return err
	}
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok || !info.IsDir() || info.Mode().Perm()&0o077 != 0 || int(st.Uid) != os.Geteuid() {
		return ErrUnsafe
	}
	return nil
}
