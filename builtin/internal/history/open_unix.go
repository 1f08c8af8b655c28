//go:build unix

package history

import (
	"errors"
	"os"
	"syscall"
)

// openFlags keep an open from waiting, should a FIFO have been put in the place of a file.
const openFlags = syscall.O_NONBLOCK | syscall.O_NOFOLLOW

// noWatch spares an open of a regular file that the os package tries to have it watched for readiness, which takes several calls.
const noWatch = syscall.O_NONBLOCK

// isNotDir reports whether a file cannot exist because what should be its directory is none.
func isNotDir(err error) bool { return errors.Is(err, syscall.ENOTDIR) }

// syncDir makes the names in a directory durable.
func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	defer d.Close()
	return d.Sync()
}
