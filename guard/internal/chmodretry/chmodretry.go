// Package chmodretry writes in directories whose write permission a command has removed.
package chmodretry

import (
	"errors"
	"io/fs"
	"os"
)

// Do calls f, which writes in a directory of a tree. If permissions do not allow that, Do gives them to the owner,
// calls f again, and restores the mode: a command can remove the permissions of its own user, which is also the user
// of the host.
func Do(tree *os.Root, dir string, f func() error) error {
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
