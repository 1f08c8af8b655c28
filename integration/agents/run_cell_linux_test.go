package agents

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// setIDs lists the regular files with set-id bits, the device nodes, and the directories with the set-group-id bit below a directory.
func setIDs(t *testing.T, dir string) (files, devices, dirs []string) {
	t.Helper()
	_ = filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if err != nil {
			return nil
		}
		info, err := os.Lstat(path)
		if err != nil {
			return nil
		}
		st := info.Sys().(*syscall.Stat_t)
		switch kind := st.Mode & unix.S_IFMT; {
		case kind == unix.S_IFCHR, kind == unix.S_IFBLK:
			devices = append(devices, path)
		case kind == unix.S_IFDIR && st.Mode&unix.S_ISGID != 0:
			dirs = append(dirs, path)
		case kind != unix.S_IFDIR && st.Mode&(unix.S_ISUID|unix.S_ISGID) != 0:
			files = append(files, path)
		}
		return nil
	})
	return files, devices, dirs
}
