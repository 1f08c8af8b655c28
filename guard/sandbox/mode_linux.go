package sandbox

import (
	"errors"
	"strconv"

	"golang.org/x/sys/unix"

	"github.com/toolhost/toolhost/guard/sandbox/internal/kernel"
)

// changeMode is the [kernel.Judge] of chmod(2) and its kin with a set-group-ID bit. It changes the mode on behalf of
// the caller and leaves the bit to directories only. The kernel does the same where the caller is not in the group of
// the file, so programs know a bit that is not set without an error.
func changeMode(c *kernel.Call) (errno unix.Errno) {
	if err := withoutPowers(func() { errno = tryMode(c) }); err != nil {
		return errnoOf(err)
	}
	return errno
}

func tryMode(c *kernel.Call) unix.Errno {
	m := kernel.ModeChangeOf(c)
	node, errno := modeNode(c, m)
	if errno != 0 {
		return errno
	}
	defer unix.Close(node)
	var st unix.Stat_t
	if err := unix.Fstat(node, &st); err != nil {
		return errnoOf(err)
	}
	if st.Mode&unix.S_IFMT != unix.S_IFDIR {
		m.Mode &^= unix.S_ISGID
	}
	if !c.Waits() { // what was examined may belong to another process
		return unix.EINTR
	}
	var err error
	if m.Path == 0 {
		err = unix.Fchmod(node, m.Mode)
	} else { // through the mount of the caller, which may be read-only
		err = unix.Chmod("/proc/self/fd/"+strconv.Itoa(node), m.Mode)
	}
	if err != nil {
		return errnoOf(err)
	}
	return 0
}

// modeNode opens the file whose mode a call changes.
func modeNode(c *kernel.Call, m kernel.ModeChange) (int, unix.Errno) {
	if m.Flags&^(unix.AT_SYMLINK_NOFOLLOW|unix.AT_EMPTY_PATH) != 0 {
		return -1, unix.EINVAL
	}
	path, whole := "", true
	var err error
	if m.Path != 0 {
		if path, whole, err = c.Text(m.Path, unix.PathMax); err != nil {
			return -1, errnoOf(err)
		}
	}
	node := -1
	switch {
	case !whole:
		return -1, unix.ENAMETOOLONG
	case m.Path == 0, path == "" && m.Flags&unix.AT_EMPTY_PATH != 0 && m.Dir != unix.AT_FDCWD:
		node, err = c.Descriptor(m.Dir)
	case path == "" && m.Flags&unix.AT_EMPTY_PATH != 0:
		node, err = openOf(c, "cwd")
	case m.Dir == unix.AT_FDCWD:
		node, err = (*rootDir)(nil).lookup(c, "cwd", path, m.Flags&unix.AT_SYMLINK_NOFOLLOW != 0)
	default:
		node, err = (*rootDir)(nil).lookup(c, "fd/"+strconv.Itoa(m.Dir), path, m.Flags&unix.AT_SYMLINK_NOFOLLOW != 0)
	}
	switch {
	case errors.Is(err, unix.ELOOP) && m.Flags&unix.AT_SYMLINK_NOFOLLOW != 0: // links have no mode
		return -1, unix.EOPNOTSUPP
	case err != nil:
		return -1, errnoOf(err)
	}
	return node, 0
}
