//go:build unix

package atomicfile

import (
	"errors"
	"os"
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"
)

// tryLock takes the lock of f, which ends when f is closed or the process
// does. busy means that another process has it.
func tryLock(f *os.File) (busy bool, err error) {
	for {
		err = unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
		switch {
		case errors.Is(err, unix.EINTR):
			continue
		case errors.Is(err, unix.EWOULDBLOCK):
			return true, nil
		}
		return false, err
	}
}

// tryLockDir is tryLock for a directory. It is not an error if the file system cannot lock a directory: see [Locks].
func tryLockDir(f *os.File) (busy bool, err error) {
	busy, err = tryLock(f)
	if isAny(err, syscall.EBADF, syscall.ENOLCK, syscall.EINVAL, syscall.ENOSYS, syscall.EOPNOTSUPP) {
		err = nil
	}
	return busy, err
}

// dirKey identifies a directory, whatever the path it was opened by.
func dirKey(dir *os.File) (string, error) {
	info, err := dir.Stat()
	if err != nil {
		return "", err
	}
	dev, ino := identity(info)
	return strconv.FormatUint(dev, 10) + "." + strconv.FormatUint(ino, 10), nil
}

// removeOpen removes an open file and closes it. Removing comes first: once
// the lock is free, another process may look at the file.
func removeOpen(f *os.File, path string) {
	_ = os.Remove(path) // if it stays, Recover removes it
	f.Close()
}
