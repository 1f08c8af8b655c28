package behalf

import (
	"errors"
	"os"
	"runtime"
	"strconv"

	"golang.org/x/sys/unix"

	"github.com/toolhost/toolhost/guard/sandbox/internal/kernel"
)

// ChangeMode is the [kernel.Judge] of chmod(2) and its kin with a set-group-ID bit. It changes the mode on behalf of
// the caller and leaves the bit to directories only. The kernel does the same where the caller is not in the group of
// the file, so programs know a bit that is not set without an error.
func ChangeMode(c *kernel.Call) (errno unix.Errno) {
	if err := WithoutPowers(func() { errno = tryMode(c) }); err != nil {
		return Errno(err)
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
		return Errno(err)
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
		return Errno(err)
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
			return -1, Errno(err)
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
		node, err = (*Root)(nil).Open(c, "cwd", path, m.Flags&unix.AT_SYMLINK_NOFOLLOW != 0)
	default:
		node, err = (*Root)(nil).Open(c, "fd/"+strconv.Itoa(m.Dir), path, m.Flags&unix.AT_SYMLINK_NOFOLLOW != 0)
	}
	switch {
	case errors.Is(err, unix.ELOOP) && m.Flags&unix.AT_SYMLINK_NOFOLLOW != 0: // links have no mode
		return -1, unix.EOPNOTSUPP
	case err != nil:
		return -1, Errno(err)
	}
	return node, 0
}

// WithoutPowers runs f on a thread without root's capabilities, which commands do not
// have either. Those over the sandbox's namespaces come from owning them.
func WithoutPowers(f func()) error {
	if os.Geteuid() != 0 {
		f()
		return nil
	}
	runtime.LockOSThread()
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var all, none [2]unix.CapUserData
	if err := unix.Capget(&header, &all[0]); err != nil {
		return err
	}
	for i := range none {
		none[i] = unix.CapUserData{Permitted: all[i].Permitted, Inheritable: all[i].Inheritable}
	}
	if err := unix.Capset(&header, &none[0]); err != nil {
		return err
	}
	f()
	if err := unix.Capset(&header, &all[0]); err != nil {
		return err // the thread stays locked, and ends
	}
	runtime.UnlockOSThread()
	return nil
}

// Errno returns the number in an error; EACCES if there is none.
func Errno(err error) unix.Errno {
	var errno unix.Errno
	if errors.As(err, &errno) {
		return errno
	}
	return unix.EACCES
}
