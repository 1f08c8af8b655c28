package atomicfile

import (
	"os"
	"slices"

	"golang.org/x/sys/unix"
)

// A hold is a lease on a file, which makes other programs wait when they open the file for writing. Without it, what
// they write to a file that is renamed over would be lost.
type hold struct {
	file *os.File // nil where there is none
	busy bool     // a process has the file open for writing
}

// leasing are the file systems on which a lease is refused only if the file is open for writing.
var leasing = []int64{
	unix.EXT4_SUPER_MAGIC, unix.XFS_SUPER_MAGIC, unix.BTRFS_SUPER_MAGIC, unix.TMPFS_MAGIC, unix.F2FS_SUPER_MAGIC,
	unix.OVERLAYFS_SUPER_MAGIC,
}

// holdFile takes a lease on a file that is open for reading, if possible: the user must own the file.
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

// release ends the lease, so that waiting programs continue.
func (h *hold) release() {
	if h.file != nil {
		unix.FcntlInt(h.file.Fd(), unix.F_SETLEASE, unix.F_UNLCK)
		h.file = nil
	}
}
