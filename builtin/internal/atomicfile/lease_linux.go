package atomicfile

import (
	"os"
	"slices"

	"golang.org/x/sys/unix"
)

// A hold keeps other programs from opening a file for writing; they wait meanwhile. What they write to a file that is
// renamed over is lost. The kernel calls it a lease.
type hold struct {
	file *os.File // nil where there is none
	busy bool     // a process has the file open for writing
}

// leasing are the file systems that refuse a lease for no other reason than that the file is open for writing.
var leasing = []int64{
	unix.EXT4_SUPER_MAGIC, unix.XFS_SUPER_MAGIC, unix.BTRFS_SUPER_MAGIC, unix.TMPFS_MAGIC, unix.F2FS_SUPER_MAGIC, unix.OVERLAYFS_SUPER_MAGIC,
}

// holdFile holds a file that is open for reading, if it can: it has to be ours.
func holdFile(f *os.File) hold {
	switch _, err := unix.FcntlInt(f.Fd(), unix.F_SETLEASE, unix.F_RDLCK); err {
	case nil:
		return hold{file: f}
	case unix.EAGAIN:
		var fs unix.Statfs_t
		return hold{busy: unix.Fstatfs(int(f.Fd()), &fs) == nil && slices.Contains(leasing, int64(fs.Type))}
	}
	return hold{}
}

// holds reports whether the file is held.
func (h hold) holds() bool { return h.file != nil }

// wanted reports whether a process waits to open the file for writing.
func (h hold) wanted() bool {
	if h.file == nil {
		return false
	}
	kind, err := unix.FcntlInt(h.file.Fd(), unix.F_GETLEASE, 0)
	return err == nil && kind != unix.F_RDLCK
}

// release lets others go on.
func (h *hold) release() {
	if h.file != nil {
		unix.FcntlInt(h.file.Fd(), unix.F_SETLEASE, unix.F_UNLCK)
		h.file = nil
	}
}
