package landlock

import (
	"errors"
	"fmt"
	"unsafe"

	"golang.org/x/sys/unix"
)

const (
	// writeRights are the rights to change something, of the second version
	// of Landlock (Linux 5.19): the first cannot rename between directories.
	writeRights = unix.LANDLOCK_ACCESS_FS_WRITE_FILE |
		unix.LANDLOCK_ACCESS_FS_REMOVE_DIR | unix.LANDLOCK_ACCESS_FS_REMOVE_FILE |
		unix.LANDLOCK_ACCESS_FS_MAKE_CHAR | unix.LANDLOCK_ACCESS_FS_MAKE_DIR |
		unix.LANDLOCK_ACCESS_FS_MAKE_REG | unix.LANDLOCK_ACCESS_FS_MAKE_SOCK |
		unix.LANDLOCK_ACCESS_FS_MAKE_FIFO | unix.LANDLOCK_ACCESS_FS_MAKE_BLOCK |
		unix.LANDLOCK_ACCESS_FS_MAKE_SYM | unix.LANDLOCK_ACCESS_FS_REFER
	// changeRights are the rights to change something, of any version.
	changeRights = writeRights | unix.LANDLOCK_ACCESS_FS_TRUNCATE
	// readRights are the rights to look at something.
	readRights = unix.LANDLOCK_ACCESS_FS_EXECUTE |
		unix.LANDLOCK_ACCESS_FS_READ_FILE | unix.LANDLOCK_ACCESS_FS_READ_DIR
	// file are the rights that make sense for a single file.
	file = unix.LANDLOCK_ACCESS_FS_EXECUTE | unix.LANDLOCK_ACCESS_FS_READ_FILE |
		unix.LANDLOCK_ACCESS_FS_WRITE_FILE | unix.LANDLOCK_ACCESS_FS_TRUNCATE
)

// Versions of Landlock that added a feature, see landlock(7).
const (
	Minimum     = 2 // to rename between directories: what is asked for here
	truncate    = 3
	Scopes      = 6 // signals and abstract sockets
	UnixSockets = 9 // sockets in the file system
)

// A Ruleset holds the rights that a thread and its children will be limited to.
type Ruleset struct {
	fd      int
	handled uint64 // the rights that are taken unless they are allowed
	err     error  // of the first rule that could not be made
}

// Version returns the kernel's version of Landlock, 0 if there is none.
func Version() int {
	v, _, errno := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, 0, 0, unix.LANDLOCK_CREATE_RULESET_VERSION)
	if errno != 0 {
		return 0
	}
	return int(v)
}

// newRuleset handles the given rights, as far as version knows them. Sockets in
// the file system, where version can tell them apart, are then limited to those
// created inside the domain, and those allowed.
func newRuleset(version int, rights, scope uint64) (*Ruleset, error) {
	if version >= truncate && rights&unix.LANDLOCK_ACCESS_FS_WRITE_FILE != 0 {
		rights |= unix.LANDLOCK_ACCESS_FS_TRUNCATE
	}
	if version >= UnixSockets {
		rights |= unix.LANDLOCK_ACCESS_FS_RESOLVE_UNIX
	}
	attr := unix.LandlockRulesetAttr{Handled_access_fs: rights}
	if version >= Scopes {
		attr.Scoped = scope
	}
	fd, _, errno := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, uintptr(unsafe.Pointer(&attr)),
		unsafe.Sizeof(attr), 0)
	if errno != 0 {
		return nil, fmt.Errorf("creating a Landlock ruleset: %w", errno)
	}
	return &Ruleset{fd: int(fd), handled: rights}, nil
}

// allow grants rights, as far as the version of Landlock has them, at and below paths. What does not exist needs no
// rule.
func (r *Ruleset) allow(rights uint64, paths ...string) {
	for _, path := range paths {
		if r.err == nil {
			r.err = r.allowOne(path, rights)
		}
	}
}

// made returns the ruleset if all its rules could be made.
func (r *Ruleset) made() (*Ruleset, error) {
	if r.err != nil {
		r.Close()
		return nil, r.err
	}
	return r, nil
}

func (r *Ruleset) allowOne(path string, rights uint64) error {
	fd, err := unix.Open(path, unix.O_PATH|unix.O_CLOEXEC, 0)
	if errors.Is(err, unix.ENOENT) || errors.Is(err, unix.EACCES) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("opening %s: %w", path, err)
	}
	defer unix.Close(fd)
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	if st.Mode&unix.S_IFMT != unix.S_IFDIR {
		rights &= file
	}
	attr := unix.LandlockPathBeneathAttr{Allowed_access: rights & r.handled, Parent_fd: int32(fd)}
	if attr.Allowed_access == 0 {
		return nil
	}
	_, _, errno := unix.Syscall6(unix.SYS_LANDLOCK_ADD_RULE, uintptr(r.fd), unix.LANDLOCK_RULE_PATH_BENEATH,
		uintptr(unsafe.Pointer(&attr)), 0, 0, 0)
	if errno != 0 {
		return fmt.Errorf("adding a Landlock rule for %s: %w", path, errno)
	}
	return nil
}

// Restrict limits the calling thread, which must have no_new_privs. It cannot be undone.
func (r *Ruleset) Restrict() error {
	if _, _, errno := unix.Syscall(unix.SYS_LANDLOCK_RESTRICT_SELF, uintptr(r.fd), 0, 0); errno != 0 {
		return fmt.Errorf("entering the Landlock domain: %w", errno)
	}
	return nil
}

// Close closes the descriptor; limited processes stay limited.
func (r *Ruleset) Close() { unix.Close(r.fd) }
