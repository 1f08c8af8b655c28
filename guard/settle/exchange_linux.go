package settle

import (
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// exchange swaps two names in one step.
func exchange(a, b side) error { return renameWith(a, b, unix.RENAME_EXCHANGE) }

// rename moves a file to a name where nothing stands.
func rename(from, to side) error { return renameWith(from, to, unix.RENAME_NOREPLACE) }

// renameIn is rename in one directory.
func renameIn(from side, to string) error { return rename(from, side{from.dir, to}) }

func renameWith(a, b side, flags uint) error {
	x, err := a.dir.Open(".")
	if err != nil {
		return err
	}
	defer x.Close()
	y, err := b.dir.Open(".")
	if err != nil {
		return err
	}
	defer y.Close()
	if err := unix.Renameat2(int(x.Fd()), a.name, int(y.Fd()), b.name, flags); err != nil {
		return fmt.Errorf("exchange %s: %w", a.name, &os.SyscallError{Syscall: "renameat2", Err: err})
	}
	return nil
}

// needsCopy reports whether an error says that files must be copied: two file systems, or one without the call.
func needsCopy(err error) bool {
	return errors.Is(err, unix.EXDEV) || errors.Is(err, unix.EINVAL) || errors.Is(err, unix.ENOSYS)
}
