//go:build !unix

package index

import "os"

// private reports whether the directory is one: the rights of the state directory
// that it lies in hold for it too.
func private(path string) error {
	info, err := os.Lstat(path)
	if err == nil && !info.IsDir() {
		err = ErrUnsafe
	}
	return err
}
