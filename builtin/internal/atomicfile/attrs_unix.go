//go:build linux || darwin

package atomicfile

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// openFlags keep an open from following a link or waiting for a FIFO.
const openFlags = syscall.O_NOFOLLOW | syscall.O_NONBLOCK

// openInTheWay says whether a file must be closed before it is renamed over.
const openInTheWay = false

// attrs are the attributes of a file that are carried over.
type attrs struct {
	mode     fs.FileMode
	uid, gid int
	links    uint64
	xattrs   map[string][]byte
}

func readAttrs(f *os.File) (attrs, error) {
	info, err := f.Stat()
	if err != nil {
		return attrs{}, err
	}
	st := info.Sys().(*syscall.Stat_t)
	a := attrs{mode: info.Mode() &^ setID, uid: int(st.Uid), gid: int(st.Gid), links: uint64(st.Nlink)}
	a.xattrs, err = readXattrs(f)
	return a, err
}

// apply gives f these attributes. Owner and group come first, since changing
// them clears the set-uid bits, and the mode last. Errors are [*keepError].
func (a attrs) apply(f *os.File) error {
	have, err := readAttrs(f)
	if err != nil {
		return err
	}
	if a.uid != have.uid || a.gid != have.gid {
		if err := f.Chown(a.uid, a.gid); err != nil {
			return &keepError{fmt.Sprintf("owner or group (%d:%d)", a.uid, a.gid), unwrapPath(err)}
		}
	}
	if err := a.applyXattrs(f, have.xattrs); err != nil {
		return err
	}
	if err := f.Chmod(a.mode); err != nil {
		return &keepError{"mode (" + a.mode.String() + ")", unwrapPath(err)}
	}
	return nil
}

func (a attrs) applyXattrs(f *os.File, have map[string][]byte) error {
	for name, value := range a.xattrs {
		if got, ok := have[name]; ok && bytes.Equal(got, value) {
			continue
		}
		if err := unix.Fsetxattr(int(f.Fd()), name, value, 0); err != nil {
			return &keepError{"extended attribute " + name, err}
		}
	}
	// Remove attributes that the file inherits from the directory, such as its default ACL.
	for name := range have {
		if _, ok := a.xattrs[name]; ok || strings.HasPrefix(name, "security.") {
			continue
		}
		if err := unix.Fremovexattr(int(f.Fd()), name); err != nil {
			return &keepError{"extended attribute " + name, err}
		}
	}
	return nil
}

// readXattrs returns the extended attributes of f, access control lists of
// Linux among them. Those that sign the content are left out: the kernel
// makes them again, and the old value would be wrong. So are capabilities,
// for the reason of setID.
func readXattrs(f *os.File) (map[string][]byte, error) {
	list, err := grow(func(b []byte) (int, error) { return unix.Flistxattr(int(f.Fd()), b) })
	if isAny(err, syscall.ENOTSUP, syscall.ENOSYS) || len(list) == 0 && err == nil {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("list extended attributes: %w", err)
	}
	out := make(map[string][]byte)
	for name := range strings.SplitSeq(strings.TrimRight(string(list), "\x00"), "\x00") {
		if name == "security.ima" || name == "security.evm" || name == "security.capability" {
			continue
		}
		value, err := grow(func(b []byte) (int, error) { return unix.Fgetxattr(int(f.Fd()), name, b) })
		if errors.Is(err, errNoXattr) {
			continue // removed since it was listed
		}
		if err != nil {
			return nil, fmt.Errorf("read extended attribute %s: %w", name, err)
		}
		out[name] = value
	}
	return out, nil
}

// firstXattrBuf holds the attributes of nearly all files, maxXattrBuf those of
// any: Linux allows 64 KiB for a value and for the list of names
// (XATTR_SIZE_MAX, XATTR_LIST_MAX in linux/limits.h), macOS more.
const (
	firstXattrBuf = 256
	maxXattrBuf   = 1 << 24
)

// grow calls read with ever larger buffers until one is large enough.
func grow(read func([]byte) (int, error)) ([]byte, error) {
	for size := firstXattrBuf; ; size *= 8 {
		buf := make([]byte, size)
		n, err := read(buf)
		if errors.Is(err, unix.ERANGE) && size < maxXattrBuf {
			continue
		}
		return buf[:max(n, 0)], err
	}
}

// identity returns the numbers that identify a file.
func identity(info fs.FileInfo) (dev, ino uint64) {
	st := info.Sys().(*syscall.Stat_t)
	return uint64(st.Dev), uint64(st.Ino)
}

// ownedByOther reports whether another user may have written the file.
func ownedByOther(info fs.FileInfo) bool {
	return int(info.Sys().(*syscall.Stat_t).Uid) != os.Geteuid() || info.Mode().Perm()&0o022 != 0
}

// checkWritable checks whether this process may write the file, without opening
// it: every watcher of the file would get an event of a write.
func checkWritable(dir *os.File, base string) error {
	return unix.Faccessat(int(dir.Fd()), base, unix.W_OK, unix.AT_EACCESS)
}

func syncDir(dir *os.File) error {
	err := dir.Sync()
	if isAny(err, syscall.EINVAL, syscall.ENOTSUP) {
		return nil // a file system whose directories need no sync
	}
	return err
}

func renameIn(dir *os.Root, from, to string) error { return dir.Rename(from, to) }
