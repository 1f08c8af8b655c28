package mcpserver

import (
	"io/fs"
	"os"
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"
)

// openedAs returns the path of an open file, and whether it was opened as a path only.
func openedAs(f *os.File) (name string, pathOnly bool) {
	name, _ = os.Readlink("/proc/self/fd/" + strconv.Itoa(int(f.Fd()))) // without it no rule names the file
	flags, err := unix.FcntlInt(f.Fd(), unix.F_GETFL, 0)
	return name, err != nil || flags&unix.O_PATH != 0
}

// sameDevice reports whether two files are nodes of the same character device.
func sameDevice(a, b fs.FileInfo) bool {
	x, okX := a.Sys().(*syscall.Stat_t)
	y, okY := b.Sys().(*syscall.Stat_t)
	return okX && okY && x.Mode&unix.S_IFMT == unix.S_IFCHR && y.Mode&unix.S_IFMT == unix.S_IFCHR && x.Rdev == y.Rdev
}
