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
// opened. ok is false for anything else, which [OpenAs] opens. Content opens in the same way, but without the cost of
// an [os.File], which is prepared for waiting and for being collected: most files are read once, and completely.
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
// longer than limit. The end is where a read returns nothing. At the reported length, a read that does not fill its
// buffer is taken for the end as well, which saves a call; files of the kernel's own file systems report no length.
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
	unix.S_IFDIR: fs.ModeDir, unix.S_IFIFO: fs.ModeNamedPipe, unix.S_IFSOCK: fs.ModeSocket,
	unix.S_IFLNK: fs.ModeSymlink,
	unix.S_IFBLK: fs.ModeDevice, unix.S_IFCHR: fs.ModeDevice | fs.ModeCharDevice,
}

// Mode returns the kind and the permissions, without further bits.
func (d *fileInfo) Mode() fs.FileMode {
	return kinds[d.stat.Mode&unix.S_IFMT] | fs.FileMode(d.stat.Mode&0o777)
}
