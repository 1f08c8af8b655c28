package host

import (
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"
)

// Tmpfs mounts a file system in memory on a directory, until the test ends. Without the right to, the test is skipped.
func Tmpfs(t *testing.T, dir, options string) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("mounting a small file system takes root")
	}
	reap(dir)
	if err := unix.Mount("tmpfs", dir, "tmpfs", 0, options); err != nil {
		t.Skipf("mounting a small file system: %v", err)
	}
	t.Cleanup(func() {
		if err := unix.Unmount(dir, unix.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
}

// Fill uses up the space of a file system but for some bytes.
func Fill(t *testing.T, dir string, leave int64) (file string) {
	t.Helper()
	var st unix.Statfs_t
	if err := unix.Statfs(dir, &st); err != nil {
		t.Fatal(err)
	}
	file = filepath.Join(dir, "filler")
	size := int64(st.Bavail)*st.Bsize - leave
	if err := os.WriteFile(file, make([]byte, max(0, size)), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// ReadOnlyMount lays a directory over itself, read-only.
func ReadOnlyMount(t *testing.T, dir string) {
	t.Helper()
	reap(dir)
	if err := unix.Mount(dir, dir, "", unix.MS_BIND, ""); err != nil {
		t.Skipf("mounting a directory over itself: %v", err)
	}
	t.Cleanup(func() { _ = unix.Unmount(dir, unix.MNT_DETACH) })
	if err := unix.Mount("", dir, "", unix.MS_REMOUNT|unix.MS_BIND|unix.MS_RDONLY, ""); err != nil {
		t.Skipf("making a mount read-only: %v", err)
	}
}
