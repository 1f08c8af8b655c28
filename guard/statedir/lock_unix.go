//go:build unix

package statedir

import (
	"os"

	"golang.org/x/sys/unix"
)

// OpenOwn opens a file of the host, but none that a link leads to.
func OpenOwn(path string, how int) (*os.File, error) {
	return os.OpenFile(path, how|unix.O_NOFOLLOW, 0o600)
}

// TryLock locks a file for this process alone, if no other process has it locked. A shared lock of this process is given
// up in any case.
func TryLock(f *os.File) bool { return lock(f, unix.LOCK_EX|unix.LOCK_NB) }

// ShareLock locks a file so that other processes may share it.
func ShareLock(f *os.File) { lock(f, unix.LOCK_SH) }

// Unlock gives up a lock.
func Unlock(f *os.File) { lock(f, unix.LOCK_UN) }

func lock(f *os.File, how int) bool {
	for {
		err := unix.Flock(int(f.Fd()), how)
		if err != unix.EINTR {
			return err == nil
		}
	}
}
