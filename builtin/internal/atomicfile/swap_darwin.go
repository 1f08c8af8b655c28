package atomicfile

import (
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// exchange exchanges the names of two files in a directory. If the file system does not support that, the error is
// [errors.ErrUnsupported].
func exchange(dir *os.File, a, b string) error { return renameAs(dir, a, b, unix.RENAME_SWAP) }

// renameNew renames a file, unless a file has the new name. If the file system does not support that, the error is
// [errors.ErrUnsupported].
func renameNew(dir *os.File, from, to string) error { return renameAs(dir, from, to, unix.RENAME_EXCL) }

func renameAs(dir *os.File, from, to string, how uint32) error {
	fd := int(dir.Fd())
	err := unix.RenameatxNp(fd, from, fd, to, how)
	if err == unix.EINVAL || errors.Is(err, errors.ErrUnsupported) {
		return fmt.Errorf("%w: %w", errors.ErrUnsupported, err)
	}
	return err
}

// pin returns information on the named file in a directory. The file need not be kept open: APFS does not use an
// inode number again.
func pin(dir *os.Root, _ *os.File, name string) (pinned, error) {
	info, err := dir.Lstat(name)
	return pinned{info: info}, err
}
