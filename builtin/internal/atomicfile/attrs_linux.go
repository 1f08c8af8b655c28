package atomicfile

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

var errNoXattr error = unix.ENODATA

// dirPath returns the path of a directory as it is now, even if it was moved
// since it was opened.
func dirPath(dir *os.File) string {
	if path, err := os.Readlink(fmt.Sprintf("/proc/self/fd/%d", dir.Fd())); err == nil && filepath.IsAbs(path) {
		return path
	}
	path, err := filepath.Abs(dir.Name())
	if err != nil {
		return dir.Name()
	}
	return path
}

// reserve reserves room for a file of that size on the file system,
// without a change of the file's content. Only a full disk is an error: if
// room cannot be reserved, the write itself fails.
func reserve(f *os.File, size int64) error {
	err := unix.Fallocate(int(f.Fd()), unix.FALLOC_FL_KEEP_SIZE, 0, size)
	if errors.Is(err, unix.ENOSPC) || errors.Is(err, unix.EDQUOT) {
		return err
	}
	return nil
}
