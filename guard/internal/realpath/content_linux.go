package realpath

import (
	"bytes"
	"errors"
	"io/fs"
	"path/filepath"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/toolhost/toolhost/guard/lease"
)

// Content reads the file at path into room, if it is a regular one of at most limit bytes, and describes what was
// opened. ok is false for anything else, which [OpenAs] opens. It opens as that does, but without what an [os.File]
// is prepared for: being waited for, and being forgotten. Most files are read once, and whole.
func Content(path string, was ID, room *bytes.Buffer, limit int64) (info fs.FileInfo, ok bool, err error) {
	fd, err := lease.Open(path, func() (int, error) { return openNoLinks(path, unix.O_RDONLY|unix.O_NONBLOCK) })
	if err != nil {
		return nil, false, err
	}
	defer unix.Close(fd)
	d := &fileInfo{name: filepath.Base(path)}
	if err := syscall.Fstat(fd, &d.stat); err != nil {
		return nil, false, err
	}
	if d.stat.Mode&unix.S_IFMT != unix.S_IFREG || d.stat.Size > limit {
		return d, false, nil
	}
	if err := unswapped(was, d); err != nil {
		return nil, false, err
	}
	ok, err = readWhole(fd, room, d.stat.Size, limit)
	if err != nil {
		return nil, false, &fs.PathError{Op: "read", Path: path, Err: err}
	}
	return d, ok, nil
}

// readWhole reads to the end of a regular file; reported is the length that stat gives. ok is false if the file is
// longer than limit. A read that returns less than it has room for has come to the end. That is relied on at the
// reported length, for files that report one (those of the kernel's own file systems do not); otherwise the end is
// where a read returns nothing.
func readWhole(fd int, room *bytes.Buffer, reported, limit int64) (ok bool, err error) {
	for begin := int64(room.Len()); ; {
		room.Grow(int(max(reported-int64(room.Len())+begin, 0)) + bytes.MinRead)
		free := room.AvailableBuffer()
		free = free[:cap(free)]
		n, err := unix.Read(fd, free)
		if errors.Is(err, unix.EINTR) {
			continue
		}
		if err != nil {
			return false, err
		}
		room.Write(free[:n])
		got := int64(room.Len()) - begin
		switch {
		case got > limit:
			return false, nil
		case n == 0, got == reported && n < len(free):
			return true, nil
		}
	}
}

// A fileInfo is the result of fstat.
type fileInfo struct {
	name string
	stat syscall.Stat_t
}

func (d *fileInfo) Name() string       { return d.name }
func (d *fileInfo) Size() int64        { return d.stat.Size }
func (d *fileInfo) ModTime() time.Time { return time.Unix(d.stat.Mtim.Unix()) }
func (d *fileInfo) IsDir() bool        { return d.Mode().IsDir() }
func (d *fileInfo) Sys() any           { return &d.stat }

// kinds are the kinds of files but for regular ones.
var kinds = map[uint32]fs.FileMode{
	unix.S_IFDIR: fs.ModeDir, unix.S_IFIFO: fs.ModeNamedPipe, unix.S_IFSOCK: fs.ModeSocket, unix.S_IFLNK: fs.ModeSymlink,
	unix.S_IFBLK: fs.ModeDevice, unix.S_IFCHR: fs.ModeDevice | fs.ModeCharDevice,
}

// Mode returns the kind and the permissions, without further bits.
func (d *fileInfo) Mode() fs.FileMode {
	return kinds[d.stat.Mode&unix.S_IFMT] | fs.FileMode(d.stat.Mode&0o777)
}
