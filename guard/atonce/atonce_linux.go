package atonce

import (
	"runtime"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// resolveCached is RESOLVE_CACHED of linux/openat2.h.
const resolveCached = 0x20

// maxPath is the longest path that is asked for, in bytes: it is copied to the stack. All that people use are shorter.
const maxPath = 256

// local reports whether the root directory is on a file system of this machine. What a process has as its root is not mounted over.
// An overlay is none: what lies below it may be anywhere.
var local = sync.OnceValue(func() bool {
	var fs unix.Statfs_t
	if strconv.IntSize < 64 || unix.Statfs("/", &fs) != nil { // where a file is described by another call
		return false
	}
	switch uint32(fs.Type) {
	case unix.EXT4_SUPER_MAGIC, unix.XFS_SUPER_MAGIC, unix.BTRFS_SUPER_MAGIC, unix.TMPFS_MAGIC:
		return true
	}
	return false
})

// openat2 opens an absolute path as far as the kernel knows it.
func openat2(path string, flags int, resolve uint64) (fd int, errno syscall.Errno) {
	var name [maxPath]byte // ends in a zero
	if !strings.HasPrefix(path, "/") || copy(name[:], path) >= len(name) || strings.IndexByte(path, 0) >= 0 {
		return -1, unix.EAGAIN
	}
	how := unix.OpenHow{Flags: uint64(flags | unix.O_CLOEXEC), Resolve: resolve | resolveCached}
	n, _, errno := syscall.RawSyscall6(unix.SYS_OPENAT2, ^uintptr(0), uintptr(unsafe.Pointer(&name)), uintptr(unsafe.Pointer(&how)), unsafe.Sizeof(how), 0, 0)
	return int(n), errno
}

// Open opens an absolute path on the file system of the root directory to be read, or with O_PATH to be looked at. Resolve is that of
// openat2. The descriptor is one for the other functions.
func Open(path string, flags int, resolve uint64) (fd int, ok bool) {
	if !local() {
		return -1, false
	}
	if flags&unix.O_PATH == 0 {
		flags |= unix.O_NONBLOCK // a lease, or a pipe, is not waited for
	}
	fd, errno := openat2(path, flags, resolve|unix.RESOLVE_NO_XDEV)
	return fd, errno == 0
}

// Fstat describes what was opened by [Open].
func Fstat(fd int, st *syscall.Stat_t) bool {
	_, _, errno := syscall.RawSyscall(unix.SYS_FSTAT, uintptr(fd), uintptr(unsafe.Pointer(st)), 0)
	return errno == 0
}

// Close closes what was opened by [Open].
func Close(fd int) { _, _, _ = syscall.RawSyscall(unix.SYS_CLOSE, uintptr(fd), 0, 0) }

// Read reads from a file that was opened by [Open], at its position.
func Read(fd int, p []byte) (n int, ok bool) {
	n, errno := transfer(unix.SYS_PREADV2, fd, p)
	return n, errno == 0
}

// transfer reads or writes at the position of a file or, where there is none, of a stream, as much as can be at once.
func transfer(call uintptr, fd int, p []byte) (n int, errno syscall.Errno) {
	v := unix.Iovec{Base: unsafe.SliceData(p)}
	v.SetLen(len(p))
	here := ^uintptr(0)
	r, _, errno := syscall.RawSyscall6(call, uintptr(fd), uintptr(unsafe.Pointer(&v)), 1, here, here, unix.RWF_NOWAIT)
	runtime.KeepAlive(p)
	return int(r), errno
}
