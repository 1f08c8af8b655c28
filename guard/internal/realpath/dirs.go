package realpath

import (
	"errors"
	"io/fs"
	"slices"
)

// CreatedDirs are directories that [MakeDirs] made, outermost first.
type CreatedDirs []createdDir

type createdDir struct {
	path string
	id   ID
}

// Remove removes the directories, innermost first, as far as they are empty and still the ones that were created.
func (m CreatedDirs) Remove() {
	for _, d := range slices.Backward(m) {
		if !d.remove() {
			return // those above are not empty
		}
	}
}

// makeTries bounds how often directories are created again after a concurrent call, which had created them and
// failed, removed them.
const makeTries = 10

// MakeDirs creates dir and the directories above it that do not exist, without going through a symbolic link, and
// returns those that it created. On an error nothing is left of them.
func MakeDirs(dir string, perm fs.FileMode) (made CreatedDirs, err error) {
	for range makeTries {
		if made, err = makeDirs(dir, perm); err == nil {
			return made, nil
		}
		made.Remove()
		if !errors.Is(err, fs.ErrNotExist) {
			break
		}
	}
	return nil, err
}
