//go:build unix

package settings

import (
	"errors"

	"golang.org/x/sys/unix"
)

// exists is os.Stat without a FileInfo. Most of the files that are checked before every call do not exist.
func exists(path string) error {
	var st unix.Stat_t
	for {
		if err := unix.Stat(path, &st); !errors.Is(err, unix.EINTR) {
			return err
		}
	}
}
