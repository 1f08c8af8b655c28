package audit

import (
	"errors"
	"math"
	"os"

	"golang.org/x/sys/windows"
)

// movesOpenFiles says that a file cannot be renamed while it is open. A log that several hosts have open is
// therefore not rotated on Windows, and Config.Warn is called.
const movesOpenFiles = false

// The lock is on one byte far beyond any content, because locks on Windows keep other processes from writing.
func region() *windows.Overlapped { return &windows.Overlapped{OffsetHigh: math.MaxInt32} }

func tryLock(f *os.File) (bool, error) {
	const how = windows.LOCKFILE_EXCLUSIVE_LOCK | windows.LOCKFILE_FAIL_IMMEDIATELY
	err := windows.LockFileEx(windows.Handle(f.Fd()), how, 0, 1, 0, region())
	if errors.Is(err, windows.ERROR_LOCK_VIOLATION) || errors.Is(err, windows.ERROR_IO_PENDING) {
		return false, nil
	}
	return err == nil, err
}

// unlock gives up a lock. A file that is not locked stays as it is.
func unlock(f *os.File) { _ = windows.UnlockFileEx(windows.Handle(f.Fd()), 0, 1, 0, region()) }
