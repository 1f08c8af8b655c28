package privatefile

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime"
	"time"

	"github.com/gofrs/flock"
)

// lockWait is how long [Locked] waits for another process. A lock is held for milliseconds, unless its holder is
// stopped.
const lockWait = 2 * time.Second

// lockRetry is the interval between attempts to take a lock.
const lockRetry = 5 * time.Millisecond

// NewLock returns the lock of a file at path, which is made when the lock is taken. A link there is refused, and a
// pipe is not waited for.
func NewLock(path string) *flock.Flock {
	return flock.New(path, flock.SetPermissions(0o600), flock.SetFlag(os.O_CREATE|os.O_RDONLY|NoWait|NoFollow))
}

// Locked runs do while no other holder has the lock at path, in a directory that only its owner can use: a link there
// is followed. It fails without running do when it gets no lock within [lockWait].
func Locked(path string, do func() error) error {
	return Hold(flock.New(path, flock.SetPermissions(0o600), flock.SetFlag(os.O_CREATE|os.O_RDONLY|NoWait)), do)
}

// Hold is [Locked] with a lock of the caller.
func Hold(lock *flock.Flock, do func() error) error {
	free, err := lock.TryLock()
	if err == nil && !free {
		ctx, cancel := context.WithTimeout(context.Background(), lockWait)
		defer cancel()
		_, err = lock.TryLockContext(ctx, lockRetry)
	}
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		return fmt.Errorf("another process has held %s for %v", lock.Path(), lockWait)
	case err != nil:
		return fmt.Errorf("lock %s: %w", lock.Path(), err)
	}
	return errors.Join(do(), lock.Unlock())
}

// MakeDir makes a directory that only its owner can use, and its parents. If the directory exists, it removes the
// rights of others. On Windows it inherits the access list of the profile.
func MakeDir(dir string) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	info, err := os.Stat(dir)
	if err != nil || runtime.GOOS == "windows" || info.Mode().Perm()&0o077 == 0 {
		return err
	}
	return os.Chmod(dir, 0o700)
}

// SyncDir makes the names in a directory durable. Windows has no call for it.
func SyncDir(dir string) error {
	if runtime.GOOS == "windows" {
		return nil
	}
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}
