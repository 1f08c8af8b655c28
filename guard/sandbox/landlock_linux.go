package sandbox

import (
	"errors"
	"fmt"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Landlock is called directly: the go-landlock library restricts every thread
// of the process, we restrict one.

const (
	// landlockWrite are the rights to change something, of the second version
	// of Landlock (Linux 5.19): the first cannot rename between directories.
	landlockWrite = unix.LANDLOCK_ACCESS_FS_WRITE_FILE |
		unix.LANDLOCK_ACCESS_FS_REMOVE_DIR | unix.LANDLOCK_ACCESS_FS_REMOVE_FILE |
		unix.LANDLOCK_ACCESS_FS_MAKE_CHAR | unix.LANDLOCK_ACCESS_FS_MAKE_DIR |
		unix.LANDLOCK_ACCESS_FS_MAKE_REG | unix.LANDLOCK_ACCESS_FS_MAKE_SOCK |
		unix.LANDLOCK_ACCESS_FS_MAKE_FIFO | unix.LANDLOCK_ACCESS_FS_MAKE_BLOCK |
		unix.LANDLOCK_ACCESS_FS_MAKE_SYM | unix.LANDLOCK_ACCESS_FS_REFER
	// landlockRead are the rights to look at something.
	landlockRead = unix.LANDLOCK_ACCESS_FS_EXECUTE |
		unix.LANDLOCK_ACCESS_FS_READ_FILE | unix.LANDLOCK_ACCESS_FS_READ_DIR
	// landlockFile are the rights that make sense for a single file.
	landlockFile = unix.LANDLOCK_ACCESS_FS_EXECUTE | unix.LANDLOCK_ACCESS_FS_READ_FILE |
		unix.LANDLOCK_ACCESS_FS_WRITE_FILE | unix.LANDLOCK_ACCESS_FS_TRUNCATE

	landlockMinimum    = 2 // rename between directories
	landlockTruncate   = 3
	landlockScope      = 6 // signals and abstract sockets
	landlockUnixSocket = 9 // sockets in the file system
)

// ruleset is what a thread and its children will be limited to.
type ruleset struct {
	fd      int
	handled uint64
}

// landlockVersion returns the kernel's version of Landlock, 0 if there is none.
func landlockVersion() int {
	v, _, errno := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, 0, 0, unix.LANDLOCK_CREATE_RULESET_VERSION)
	if errno != 0 {
		return 0
	}
	return int(v)
}

// newRuleset handles the given rights, as far as version knows them. Sockets in
// the file system, where version can tell them apart, are then limited to those
// made inside the domain, and those allowed.
func newRuleset(version int, rights, scope uint64) (*ruleset, error) {
	if version >= landlockTruncate && rights&unix.LANDLOCK_ACCESS_FS_WRITE_FILE != 0 {
		rights |= unix.LANDLOCK_ACCESS_FS_TRUNCATE
	}
	if version >= landlockUnixSocket {
		rights |= unix.LANDLOCK_ACCESS_FS_RESOLVE_UNIX
	}
	attr := unix.LandlockRulesetAttr{Handled_access_fs: rights}
	if version >= landlockScope {
		attr.Scoped = scope
	}
	fd, _, errno := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, uintptr(unsafe.Pointer(&attr)), unsafe.Sizeof(attr), 0)
	if errno != 0 {
		return nil, fmt.Errorf("creating a Landlock ruleset: %w", errno)
	}
	return &ruleset{fd: int(fd), handled: rights}, nil
}

// allow grants rights at and below path. What does not exist needs no rule.
func (r *ruleset) allow(path string, rights uint64) error {
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
		rights &= landlockFile
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

// restrict limits the calling thread, which must have no_new_privs, for good.
func (r *ruleset) restrict() error {
	if _, _, errno := unix.Syscall(unix.SYS_LANDLOCK_RESTRICT_SELF, uintptr(r.fd), 0, 0); errno != 0 {
		return fmt.Errorf("entering the Landlock domain: %w", errno)
	}
	return nil
}

func (r *ruleset) close() { unix.Close(r.fd) }

// writeRuleset allows changes in the writable paths and to devices only. It
// repeats what the mounts say by a second, independent mechanism; without
// Landlock it is nil.
func writeRuleset(pl *plan) (*ruleset, error) {
	version := landlockVersion()
	if version < landlockMinimum {
		return nil, nil
	}
	var scope uint64
	if pl.network { // else abstract sockets are the network namespace's own
		scope = unix.LANDLOCK_SCOPE_ABSTRACT_UNIX_SOCKET
	}
	r, err := newRuleset(version, landlockWrite, scope)
	if err != nil {
		return nil, err
	}
	files := r.handled &^ unix.LANDLOCK_ACCESS_FS_RESOLVE_UNIX
	for _, t := range pl.writable {
		if err := r.allow(t.path, files); err != nil {
			r.close()
			return nil, err
		}
	}
	for path, rights := range map[string]uint64{
		"/dev":     unix.LANDLOCK_ACCESS_FS_WRITE_FILE | unix.LANDLOCK_ACCESS_FS_TRUNCATE,
		"/dev/shm": files,
	} {
		if err := r.allow(path, rights); err != nil {
			r.close()
			return nil, err
		}
	}
	for _, path := range pl.sockets {
		if err := r.allow(path, unix.LANDLOCK_ACCESS_FS_RESOLVE_UNIX); err != nil {
			r.close()
			return nil, err
		}
	}
	return r, nil
}
