//go:build unix

package settle

import (
	"os"

	"golang.org/x/sys/unix"
)

// tryLock locks a file for this process alone, if no other process has it locked. A shared lock of this process is
// given up in any case.
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
