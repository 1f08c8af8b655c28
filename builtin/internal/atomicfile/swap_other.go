//go:build !linux && !darwin

package atomicfile

import (
	"errors"
	"os"
)

func exchange(*os.File, string, string) error { return errors.ErrUnsupported }

func renameNew(*os.File, string, string) error { return errors.ErrUnsupported }

func pin(dir *os.Root, _ *os.File, name string) (pinned, error) {
	info, err := dir.Lstat(name)
	return pinned{info: info}, err
}
