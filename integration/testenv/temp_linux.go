package testenv

import (
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// topDirectory is FS_TOPDIR_FL of linux/fs.h.
const topDirectory = 0x20000

// spreadTemp has ext4 spread the temporary directories of tests over the disk, unless TMPDIR is set. Without a
// journal ext4 is slow to reuse the inodes of files that were just deleted, and the tests delete many: a fifth of
// their processor time went there.
func spreadTemp() {
	dir := filepath.Join(os.TempDir(), "toolhost-tests")
	if os.Getenv("TMPDIR") != "" || len(dir) > maxTemp {
		return
	}
	_ = os.Mkdir(dir, 0o700) // from an earlier run
	d, err := os.OpenFile(dir, unix.O_DIRECTORY|unix.O_NOFOLLOW, 0)
	if err != nil {
		return
	}
	defer d.Close()
	var st unix.Stat_t
	flags, err := unix.IoctlGetInt(int(d.Fd()), unix.FS_IOC_GETFLAGS)
	if err != nil || unix.Fstat(int(d.Fd()), &st) != nil || int(st.Uid) != os.Geteuid() {
		return
	}
	if d.Chmod(0o777|os.ModeSticky) == nil && unix.IoctlSetPointerInt(int(d.Fd()), unix.FS_IOC_SETFLAGS, flags|topDirectory) == nil {
		os.Setenv("TMPDIR", dir)
	}
}
