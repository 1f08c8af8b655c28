package changes

import (
	"bytes"
	"encoding/binary"
	"errors"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// queue is an inotify instance. The hub guards it.
type queue struct {
	file *os.File
	raw  syscall.RawConn
	fd   int
	buf  []byte
}

// interest is what is asked of a directory. A file that was open for writing
// is examined again when it is closed: its mapping may have been written to.
const interest = unix.IN_MODIFY | unix.IN_ATTRIB | unix.IN_CLOSE_WRITE | unix.IN_CREATE | unix.IN_DELETE |
	unix.IN_MOVED_FROM | unix.IN_MOVED_TO | unix.IN_DELETE_SELF | unix.IN_MOVE_SELF | unix.IN_ONLYDIR

// fileInterest is what is asked of a file.
const fileInterest = unix.IN_ATTRIB | unix.IN_DELETE_SELF | unix.IN_MOVE_SELF

// bufferSize is how much is read from the queue at once, in bytes: about 1,500
// events.
const bufferSize = 64 << 10

func openQueue() (*queue, error) {
	fd, err := unix.InotifyInit1(unix.IN_NONBLOCK | unix.IN_CLOEXEC)
	if err != nil {
		return nil, os.NewSyscallError("inotify_init1", err)
	}
	q := &queue{file: os.NewFile(uintptr(fd), "inotify"), fd: fd, buf: make([]byte, bufferSize)}
	if q.raw, err = q.file.SyscallConn(); err != nil {
		return nil, errors.Join(err, q.file.Close())
	}
	return q, nil
}

// close ends all watches, and wait. Nothing else may be called any more.
func (q *queue) close() error { return q.file.Close() }

// add watches a directory or a file, and returns its watch: the same one each time for the same directory, whatever
// its path. It fails with ENOSPC when the system allows no more.
func (q *queue) add(path string, is subject) (int32, error) {
	mask := uint32(interest)
	if is == file {
		mask = fileInterest
	}
	if is != openDirectory {
		mask |= unix.IN_DONT_FOLLOW
	}
	w, err := unix.InotifyAddWatch(q.fd, path, mask)
	return int32(w), err
}

// remove ends a watch. Its events may still be in the queue; its number is not used again.
func (q *queue) remove(w int32) {
	_, _ = unix.InotifyRmWatch(q.fd, uint32(w)) // fails when the directory is gone, and the watch with it
}

// drain takes every event that is in the queue. It fails if events were lost.
func (q *queue) drain(take func(w int32, e Event, ended bool)) (lost error) {
	for {
		n, err := unix.Read(q.fd, q.buf)
		switch {
		case err == unix.EINTR:
			continue
		case err == unix.EAGAIN || err == nil && n == 0:
			return lost
		case err != nil:
			return os.NewSyscallError("read", err)
		}
		if parse(q.buf[:n], take) {
			lost = unix.EOVERFLOW
		}
	}
}

// wait calls ready whenever there are events, until the queue is closed. ready must drain it.
func (q *queue) wait(ready func()) {
	_ = q.raw.Read(func(uintptr) bool { // it fails when the queue is closed
		ready()
		return false
	})
}

// parse reads struct inotify_event: watch, mask, cookie, length of the name (4
// bytes each), name, padded with NUL.
func parse(b []byte, take func(w int32, e Event, ended bool)) (lost bool) {
	const maskAt, lenAt, nameAt = 4, 12, 16
	for len(b) >= nameAt {
		mask := binary.NativeEndian.Uint32(b[maskAt:])
		end := nameAt + int(binary.NativeEndian.Uint32(b[lenAt:]))
		name, _, _ := bytes.Cut(b[nameAt:end], []byte{0})
		e := Event{Entry: string(name), Dir: mask&unix.IN_ISDIR != 0}
		w := int32(binary.NativeEndian.Uint32(b))
		b = b[end:]
		switch {
		case mask&unix.IN_Q_OVERFLOW != 0:
			lost = true
			continue
		case mask&(unix.IN_DELETE_SELF|unix.IN_MOVE_SELF|unix.IN_UNMOUNT|unix.IN_IGNORED) != 0:
			e.Kind = Self
		case mask&(unix.IN_CREATE|unix.IN_DELETE|unix.IN_MOVED_FROM|unix.IN_MOVED_TO) != 0:
			e.Kind = Name
		}
		take(w, e, mask&unix.IN_IGNORED != 0)
	}
	return lost
}
