package atomicfile

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// exchange exchanges the names of two files in a directory. If the file system does not support that, the error is
// [errors.ErrUnsupported].
func exchange(dir *os.File, a, b string) error { return renameAs(dir, a, b, unix.RENAME_EXCHANGE) }

// renameNew renames a file, unless a file has the new name. If the file system does not support that, the error is
// [errors.ErrUnsupported].
func renameNew(dir *os.File, from, to string) error {
	return renameAs(dir, from, to, unix.RENAME_NOREPLACE)
}

func renameAs(dir *os.File, from, to string, how uint) error {
	fd := int(dir.Fd())
	err := unix.Renameat2(fd, from, fd, to, how)
	if err == unix.EINVAL || errors.Is(err, errors.ErrUnsupported) {
		return fmt.Errorf("%w: %w", errors.ErrUnsupported, err)
	}
	return err
}

// pin pins the named file in a directory, whatever its type.
func pin(_ *os.Root, handle *os.File, name string) (pinned, error) {
	fd, err := unix.Openat(int(handle.Fd()), name, unix.O_PATH|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return pinned{}, err
	}
	f := os.NewFile(uintptr(fd), filepath.Join(handle.Name(), name))
	info, err := f.Stat()
	if err != nil {
		f.Close()
		return pinned{}, err
	}
	return pinned{info, f}, nil
}
