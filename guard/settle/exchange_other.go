//go:build !linux

package settle

import (
	"errors"
	"io/fs"
)

// exchange and rename do not exist on this system: files are copied.
func exchange(side, side) error { return errors.ErrUnsupported }

func rename(side, side) error { return errors.ErrUnsupported }

// renameIn moves a file to a name in its directory where nothing stands.
func renameIn(from side, to string) error {
	if _, err := from.dir.Lstat(to); err == nil {
		return fs.ErrExist
	}
	return from.dir.Rename(from.name, to)
}

func needsCopy(err error) bool { return errors.Is(err, errors.ErrUnsupported) }
