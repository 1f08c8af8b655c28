// Package mend writes where a command took away the right to write.
package mend

import (
	"errors"
	"io/fs"
	"os"
)

// Writing calls f, and if it may not do what it has to in a directory of a tree, once more when the owner may:
// commands take rights away from themselves, and thus from us. The mode is put back.
func Writing(tree *os.Root, dir string, f func() error) error {
	err := f()
	if !errors.Is(err, fs.ErrPermission) {
		return err
	}
	st, statErr := tree.Stat(dir)
	if statErr != nil || tree.Chmod(dir, st.Mode().Perm()|0o700) != nil {
		return err
	}
	return errors.Join(f(), tree.Chmod(dir, st.Mode().Perm()))
}
