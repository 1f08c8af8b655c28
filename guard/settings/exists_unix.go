//go:build unix

package settings

import (
	"errors"

	"golang.org/x/sys/unix"
)

// exists is os.Stat without a description of what is there: most of what is asked for before every call is not.
func exists(path string) error {
	var st unix.Stat_t
	for {
		if err := unix.Stat(path, &st); !errors.Is(err, unix.EINTR) {
			return err
		}
	}
}
