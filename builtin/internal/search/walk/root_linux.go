package walk

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/toolhost/toolhost/guard/lease"
)

// Root is an open directory. Its methods may be called concurrently.
type Root struct {
	fd    int
	id    ID
	local bool // see Buffer.Local
	steps bool // openat2 is refused (a kernel before 5.6, or a seccomp filter): open element by element
}

// OpenRoot opens a directory by its real path, which must have no symbolic
// link in it.
func OpenRoot(path string) (*Root, error) {
	r := &Root{fd: unix.AT_FDCWD}
	fd, err := r.openat2(path, unix.O_DIRECTORY, unix.RESOLVE_NO_SYMLINKS)
	if refused(err) {
		r.steps = true
		fd, err = r.openFromTop(path)
	}
	if err != nil {
		return nil, &os.PathError{Op: "open", Path: path, Err: err}
	}
	r.fd = fd
	r.inspect()
	return r, nil
}

// inspect finds out which file system the root is on.
func (r *Root) inspect() {
	var st unix.Stat_t
	var fs unix.Statfs_t
	if unix.Fstat(r.fd, &st) != nil || unix.Fstatfs(r.fd, &fs) != nil {
		return
	}
	r.id = ID{st.Dev, st.Ino}
	switch fs.Type {
	case unix.EXT4_SUPER_MAGIC, unix.XFS_SUPER_MAGIC, unix.BTRFS_SUPER_MAGIC, unix.TMPFS_MAGIC, unix.OVERLAYFS_SUPER_MAGIC:
		r.local = true
	}
}

// Sub opens the directory rel as a root of its own.
func (r *Root) Sub(rel string) (*Root, error) {
	fd, err := r.open(rel, unix.O_DIRECTORY)
	if err != nil {
		return nil, err
	}
	return &Root{fd: fd, steps: r.steps}, nil
}

// ID returns the ID of the directory that OpenRoot opened.
func (r *Root) ID() ID { return r.id }

// Local says that the root is on a file system of this machine, where every
// change is one that its kernel makes.
func (r *Root) Local() bool { return r.local }

// Close closes the directory.
func (r *Root) Close() error { return unix.Close(r.fd) }

// Buffer is the memory that List works in; one per worker.
type Buffer struct {
	raw     [32 << 10]byte
	entries []Entry
	Listing
}

// List returns the entries of the directory rel ("" is the root itself) in
// the order of the file system. The slice is valid until the next call with
// the same buffer.
func (r *Root) List(rel string, buf *Buffer) ([]Entry, error) {
	fd, err := r.open(rel, unix.O_DIRECTORY)
	if err != nil {
		return nil, err
	}
	defer unix.Close(fd)
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return nil, err
	}
	stamp := infoOf(&st).Stamp
	buf.ID = ID{stamp.Device, stamp.Inode}
	buf.Local = r.local && buf.ID.Device == r.id.Device
	if buf.Opened != nil {
		buf.Opened(fd) // what is watched is read from then on
	}
	err = buf.read(fd)
	return buf.entries, err
}

// read finds the entries of an open directory.
func (buf *Buffer) read(fd int) error {
	buf.entries = buf.entries[:0]
	for {
		n, err := unix.Getdents(fd, buf.raw[:])
		switch {
		case err == unix.EINTR:
		case err != nil || n == 0:
			return err
		default:
			buf.parse(fd, n)
		}
	}
}

// parse reads linux_dirent64 records: inode and offset (8 bytes each), record
// length (2), type (1), name, NUL.
func (buf *Buffer) parse(fd, n int) {
	const lenAt, typeAt, nameAt = 16, 18, 19
	all := string(buf.raw[:n]) // one allocation for all the names
	for at := 0; at < n; {
		size := int(binary.NativeEndian.Uint16(buf.raw[at+lenAt:]))
		end := at + nameAt + bytes.IndexByte(buf.raw[at+nameAt:at+size], 0)
		e := Entry{Name: all[at+nameAt : end]}
		typ := buf.raw[at+typeAt]
		at += size
		if e.Name == "." || e.Name == ".." {
			continue
		}
		switch typ {
		case unix.DT_REG:
			e.Kind = File
		case unix.DT_DIR:
			e.Kind = Dir
		case unix.DT_UNKNOWN: // some file systems do not tell
			e.Kind = kindAt(fd, e.Name)
		}
		buf.entries = append(buf.entries, e)
	}
}

func kindAt(fd int, name string) Kind {
	var st unix.Stat_t
	if unix.Fstatat(fd, name, &st, unix.AT_SYMLINK_NOFOLLOW) != nil {
		return Other
	}
	return kindOf(st.Mode)
}

// Handle is an open file. The zero value is not open.
type Handle struct{ fd int }

// Open opens the file rel without following links and without blocking.
// It does not check that rel is a regular file: the caller knows that from
// List or checks Handle.Stat. Reading a FIFO or a device returns at once.
func (r *Root) Open(rel string) (Handle, error) {
	fd, err := r.open(rel, unix.O_NONBLOCK|unix.O_NOCTTY)
	return Handle{fd}, err
}

// OpenWithin is Open, but follows symbolic links that stay below the root.
func (r *Root) OpenWithin(rel string) (Handle, error) {
	if r.steps {
		return r.Open(rel)
	}
	fd, err := r.openat2(rel, unix.O_NONBLOCK|unix.O_NOCTTY, unix.RESOLVE_BENEATH|unix.RESOLVE_NO_MAGICLINKS)
	return Handle{fd}, err
}

// Close closes the file.
func (h Handle) Close() error { return unix.Close(h.fd) }

// ReadAt reads like io.ReaderAt. From a FIFO or a terminal, which have no
// positions, it reads nothing.
func (h Handle) ReadAt(p []byte, off int64) (n int, err error) {
	for n < len(p) {
		m, err := unix.Pread(h.fd, p[n:], off+int64(n))
		switch {
		case err == unix.EINTR:
		case err == unix.ESPIPE || err == nil && m == 0:
			return n, io.EOF
		case err != nil:
			return n, err
		default:
			n += m
		}
	}
	return n, nil
}

// Stat describes the open file.
func (h Handle) Stat() (Info, error) {
	var st unix.Stat_t
	if err := unix.Fstat(h.fd, &st); err != nil {
		return Info{}, err
	}
	return infoOf(&st), nil
}

// Stat describes rel, a link itself and not what it points to.
func (r *Root) Stat(rel string) (Info, error) {
	var st unix.Stat_t
	dir, name := filepath.Split(rel)
	if dir == "" {
		err := unix.Fstatat(r.fd, name, &st, unix.AT_SYMLINK_NOFOLLOW)
		return infoOf(&st), err
	}
	fd, err := r.open(rel, unix.O_PATH|unix.O_NOFOLLOW)
	if err != nil {
		return Info{}, err
	}
	defer unix.Close(fd)
	err = unix.Fstat(fd, &st)
	return infoOf(&st), err
}

// Lstat describes what is at a path, a link itself and not what it points to.
func Lstat(path string) (Info, error) {
	var st unix.Stat_t
	err := unix.Lstat(path, &st)
	return infoOf(&st), err
}

func infoOf(st *unix.Stat_t) Info {
	return Info{kindOf(st.Mode), Stamp{st.Size, st.Mtim.Nano(), st.Ctim.Nano(), st.Ino, st.Dev, uint64(st.Nlink)},
		modeOf(st.Mode)}
}

// modeOf translates a mode.
func modeOf(mode uint32) fs.FileMode {
	m := fs.FileMode(mode & 0o777)
	if mode&unix.S_ISUID != 0 {
		m |= fs.ModeSetuid
	}
	if mode&unix.S_ISGID != 0 {
		m |= fs.ModeSetgid
	}
	if mode&unix.S_ISVTX != 0 {
		m |= fs.ModeSticky
	}
	switch mode & unix.S_IFMT {
	case unix.S_IFDIR:
		m |= fs.ModeDir
	case unix.S_IFLNK:
		m |= fs.ModeSymlink
	case unix.S_IFREG:
	default:
		m |= fs.ModeIrregular
	}
	return m
}

// Readlink returns the target of the link rel.
func (r *Root) Readlink(rel string) (string, error) {
	fd, err := r.open(filepath.Dir(rel), unix.O_PATH|unix.O_DIRECTORY)
	if err != nil {
		return "", err
	}
	defer unix.Close(fd)
	target := make([]byte, unix.PathMax)
	n, err := unix.Readlinkat(fd, filepath.Base(rel), target)
	return string(target[:max(n, 0)]), err
}

func kindOf(mode uint32) Kind {
	switch mode & unix.S_IFMT {
	case unix.S_IFREG:
		return File
	case unix.S_IFDIR:
		return Dir
	}
	return Other
}

// open opens rel below the root. No element of it may be a link.
func (r *Root) open(rel string, flags int) (int, error) {
	if rel == "" {
		rel = "."
	}
	if r.steps {
		return openSteps(r.fd, rel, flags)
	}
	return r.openat2(rel, flags, unix.RESOLVE_BENEATH|unix.RESOLVE_NO_SYMLINKS)
}

func (r *Root) openat2(path string, flags int, resolve uint64) (int, error) {
	how := unix.OpenHow{Flags: uint64(flags | unix.O_RDONLY | unix.O_CLOEXEC), Resolve: resolve}
	// The kernel returns EAGAIN after a concurrent rename, and also while another process
	// holds a lease on the file: so the number of tries is bounded.
	for try := 0; ; try++ {
		fd, err := unix.Openat2(r.fd, path, &how)
		if err == unix.EAGAIN && try == maxRaces {
			return fd, errLeased
		}
		if err != unix.EINTR && err != unix.EAGAIN {
			return fd, err
		}
	}
}

// maxRaces bounds how often a path is tried again that changed while it was
// resolved.
const maxRaces = 16

// errLeased is the error of a file that cannot be read now. A search does not wait.
var errLeased = fmt.Errorf("%w; search again in a moment", lease.ErrHeld)

func refused(err error) bool {
	return errors.Is(err, unix.ENOSYS) || errors.Is(err, unix.EPERM)
}

// openFromTop opens an absolute path element by element.
func (r *Root) openFromTop(path string) (int, error) {
	top, err := unix.Open("/", unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return -1, err
	}
	defer unix.Close(top)
	rel := strings.TrimPrefix(filepath.Clean(path), "/")
	if rel == "" {
		rel = "."
	}
	return openSteps(top, rel, unix.O_DIRECTORY)
}

// openSteps opens a relative path element by element, each with O_NOFOLLOW.
func openSteps(dir int, rel string, flags int) (int, error) {
	at := dir
	defer func() {
		if at != dir {
			unix.Close(at)
		}
	}()
	for {
		name, rest, more := strings.Cut(rel, "/")
		if name == ".." || name == "" {
			return -1, fmt.Errorf("path element %q: %w", name, unix.EINVAL)
		}
		want := flags
		if more {
			want = unix.O_PATH | unix.O_DIRECTORY
		}
		fd, err := unix.Openat(at, name, want|unix.O_RDONLY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
		if err == unix.EINTR {
			continue
		}
		if err != nil || !more {
			return fd, err
		}
		if at != dir {
			unix.Close(at)
		}
		at, rel = fd, rest
	}
}
