//go:build slow

package sandbox

import (
	"os"
	"testing"
)

// shareDirectory makes a directory, if it may, what is made in which belongs to a group
// that is not in the user namespace of a sandbox: of a program there that no one can
// read, process 1 may know little.
func (f *fixture) shareDirectory(t testing.TB) {
	t.Helper()
	if os.Geteuid() != 0 {
		return
	}
	dir := f.ws + "/theirs"
	for _, err := range []error{os.Mkdir(dir, 0o755), os.Chown(dir, 0, ordinaryUser),
		os.Chmod(dir, 0o755|os.ModeSetgid)} {
		if err != nil {
			t.Fatal(err)
		}
	}
}
