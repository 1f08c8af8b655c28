package atomicfile

import (
	"errors"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/windows"
)

// tryLock takes the lock of f, which ends when f is closed or the process does. busy means that another process has
// it. Locks on Windows are mandatory, so the locked byte is beyond the end of every entry.
func tryLock(f *os.File) (busy bool, err error) {
	const never = 1 << 30
	at := &windows.Overlapped{OffsetHigh: never}
	err = windows.LockFileEx(windows.Handle(f.Fd()), windows.LOCKFILE_EXCLUSIVE_LOCK|windows.LOCKFILE_FAIL_IMMEDIATELY,
		0, 1, 0, at)
	if errors.Is(err, windows.ERROR_LOCK_VIOLATION) || errors.Is(err, windows.ERROR_IO_PENDING) {
		return true, nil
	}
	return false, err
}

// tryLockDir does nothing: directories cannot be locked, see [Locks].
func tryLockDir(*os.File) (busy bool, err error) { return false, nil }

// dirKey identifies a directory by its path without regard to case.
func dirKey(dir *os.File) (string, error) {
	path, err := filepath.Abs(dir.Name())
	return strings.ToLower(path), err
}

// removeOpen closes a file and removes it: an open one cannot be removed.
func removeOpen(f *os.File, path string) {
	f.Close()
	_ = os.Remove(path) // if it stays, Recover removes it
}
