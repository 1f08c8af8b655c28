//go:build unix

package statedir

import (
	"io/fs"
	"os"

	"golang.org/x/sys/unix"
)

// OpenOwn opens a file of the host, but none that a link leads to.
func OpenOwn(path string, how int) (*os.File, error) {
	return os.OpenFile(path, how|unix.O_NOFOLLOW, 0o600)
}

// TryLock locks a file for this process alone, if no other process has it locked. A shared lock of this process is
// given up in any case.
func TryLock(f *os.File) bool { return lock(f, unix.LOCK_EX|unix.LOCK_NB) == nil }

// ShareLock locks a file so that other processes may share it, and waits for one that has it alone. It fails on a file
// system without locks.
func ShareLock(f *os.File) error { return lock(f, unix.LOCK_SH) }

// Unlock gives up a lock.
func Unlock(f *os.File) { _ = lock(f, unix.LOCK_UN) }

func lock(f *os.File, how int) error {
	for {
		err := unix.Flock(int(f.Fd()), how)
		if err == nil {
			return nil
		}
		if err != unix.EINTR {
			return &fs.PathError{Op: "lock", Path: f.Name(), Err: err}
		}
	}
}
