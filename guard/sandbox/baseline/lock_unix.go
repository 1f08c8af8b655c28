//go:build unix

package baseline

import (
	"os"

	"golang.org/x/sys/unix"
)

// openOwn opens a file of the host, but none that a link leads to.
func openOwn(path string, how int) (*os.File, error) {
	return os.OpenFile(path, how|unix.O_NOFOLLOW, 0o600)
}

// tryLock locks a file for this process alone, if no other process has it locked.
func tryLock(f *os.File) bool { return flock(f, unix.LOCK_EX|unix.LOCK_NB) }

// shareLock locks a file so that other processes may share it.
func shareLock(f *os.File) { flock(f, unix.LOCK_SH) }

func unlock(f *os.File) { flock(f, unix.LOCK_UN) }

func flock(f *os.File, how int) bool {
	for {
		err := unix.Flock(int(f.Fd()), how)
		if err != unix.EINTR {
			return err == nil
		}
	}
}
