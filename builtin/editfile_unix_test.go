//go:build unix

package builtin

import (
	"os"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/toolhost/toolhost/builtin/internal/atomicfile"
	"golang.org/x/sys/unix"
)

// TestDirectoryKeptLocked: what another program keeps locked is waited for, but not forever, and the error tells
// what to do.
func TestDirectoryKeptLocked(t *testing.T) {
	path := t.TempDir()
	other, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	if err := unix.Flock(int(other.Fd()), unix.LOCK_EX); err != nil {
		t.Skipf("directories cannot be locked here: %v", err)
	}
	dir, err := os.OpenRoot(path)
	if err != nil {
		t.Fatal(err)
	}
	defer dir.Close()
	synctest.Test(t, func(t *testing.T) {
		_, err := lockDir(t.Context(), new(atomicfile.Locks), dir, path)
		if err == nil || !strings.Contains(err.Error(), path) || !strings.Contains(err.Error(), "TaskStop") {
			t.Errorf("%v, want it said who may hold the lock", err)
		}
	})
}
