package audit

import (
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// reserve asks the file system for n bytes after the end of f without changing its size. If that is not
// supported, nothing is reserved. A device that accepts no bytes at all is an error.
func reserve(f *os.File, n int64) error {
	info, err := f.Stat()
	if err != nil {
		return err
	}
	if info.Mode()&os.ModeDevice != 0 {
		// A device keeps no record. /dev/null, the terminal and pipes are valid choices; /dev/full is an
		// error.
		if _, err := f.Write([]byte("\n")); err != nil {
			return err
		}
		return nil
	}
	err = unix.Fallocate(int(f.Fd()), unix.FALLOC_FL_KEEP_SIZE, info.Size(), n)
	switch {
	case errors.Is(err, unix.EOPNOTSUPP), errors.Is(err, unix.ENOSYS), errors.Is(err, unix.ESPIPE), errors.Is(err,
		unix.ENODEV):
		return nil
	case err != nil:
		return fmt.Errorf("no room for the next records: %w", err)
	}
	return nil
}
