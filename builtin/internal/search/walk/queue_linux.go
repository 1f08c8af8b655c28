package walk

import (
	"bytes"
	"encoding/binary"
	"errors"
	"os"
	"strconv"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"
)

// Queue is an inotify instance. Add and Remove may be called at the same time
// as each other and as Drain; Drain by one goroutine at a time.
type Queue struct {
	file *os.File
	raw  syscall.RawConn
	buf  []byte

	mu     sync.RWMutex // held for reading while fd is used
	fd     int
	closed bool
}

// interest is what is asked of a directory. A file that was open for writing
// is examined again when it is closed: its mapping may have been written to.
const interest = unix.IN_MODIFY | unix.IN_ATTRIB | unix.IN_CLOSE_WRITE | unix.IN_CREATE | unix.IN_DELETE |
	unix.IN_MOVED_FROM | unix.IN_MOVED_TO | unix.IN_DELETE_SELF | unix.IN_MOVE_SELF | unix.IN_ONLYDIR

// bufferSize is how much is read from the queue at once, in bytes: about 1,500
// events.
const bufferSize = 64 << 10

// OpenQueue returns an empty queue.
func OpenQueue() (*Queue, error) {
	fd, err := unix.InotifyInit1(unix.IN_NONBLOCK | unix.IN_CLOEXEC)
	if err != nil {
		return nil, os.NewSyscallError("inotify_init1", err)
	}
	q := &Queue{file: os.NewFile(uintptr(fd), "inotify"), buf: make([]byte, bufferSize), fd: fd}
	if q.raw, err = q.file.SyscallConn(); err != nil {
		return nil, errors.Join(err, q.file.Close())
	}
	return q, nil
}

// Close ends all watches, and Wait. It returns after the last call of ready has returned, so the caller must not hold
// a lock that ready waits for.
func (q *Queue) Close() error {
	q.mu.Lock()
	q.closed = true
	q.mu.Unlock()
	return q.file.Close()
}

// Add watches the open directory, and returns its watch: the same one each
// time for the same directory, whatever its path. It fails with ENOSPC when the
// system allows no more.
func (q *Queue) Add(dir int) (int32, error) {
	q.mu.RLock()
	defer q.mu.RUnlock()
	if q.closed {
		return 0, os.ErrClosed
	}
	// By its descriptor, so that no link on the way can be swapped in.
	w, err := unix.InotifyAddWatch(q.fd, "/proc/self/fd/"+strconv.Itoa(dir), interest)
	return int32(w), os.NewSyscallError("inotify_add_watch", err)
}

// Remove ends a watch. Its events may still be in the queue; its number is not
// used again.
func (q *Queue) Remove(w int32) {
	q.mu.RLock()
	defer q.mu.RUnlock()
	if !q.closed {
		_, _ = unix.InotifyRmWatch(q.fd, uint32(w)) // fails when the directory is gone, and the watch with it
	}
}

// Drain yields every event that is in the queue. yield may call Add and Remove.
func (q *Queue) Drain(yield func(Event)) error {
	for {
		n, err := q.read()
		switch {
		case err == unix.EINTR:
			continue
		case err == unix.EAGAIN || err == nil && n == 0:
			return nil
		case err != nil:
			return os.NewSyscallError("read", err)
		}
		parse(q.buf[:n], yield)
	}
}

// read fills the buffer. The lock is not held while events are yielded: if yield took it again, it would wait for
// Close, and Close for Drain.
func (q *Queue) read() (int, error) {
	q.mu.RLock()
	defer q.mu.RUnlock()
	if q.closed {
		return 0, os.ErrClosed
	}
	return unix.Read(q.fd, q.buf)
}

// Wait calls ready whenever there are events, until the queue is closed. ready
// must drain it.
func (q *Queue) Wait(ready func()) {
	_ = q.raw.Read(func(uintptr) bool { // it fails when the queue is closed
		ready()
		return false
	})
}

// parse reads struct inotify_event: watch, mask, cookie, length of the name (4
// bytes each), name, padded with NUL.
func parse(b []byte, yield func(Event)) {
	const maskAt, lenAt, nameAt = 4, 12, 16
	for len(b) >= nameAt {
		mask := binary.NativeEndian.Uint32(b[maskAt:])
		end := nameAt + int(binary.NativeEndian.Uint32(b[lenAt:]))
		name, _, _ := bytes.Cut(b[nameAt:end], []byte{0})
		e := Event{Watch: int32(binary.NativeEndian.Uint32(b)), Entry: string(name), Dir: mask&unix.IN_ISDIR != 0}
		b = b[end:]
		switch {
		case mask&unix.IN_Q_OVERFLOW != 0:
			e.Kind = Overflow
		case mask&(unix.IN_DELETE_SELF|unix.IN_MOVE_SELF|unix.IN_UNMOUNT|unix.IN_IGNORED) != 0:
			e.Kind = Self
		case mask&(unix.IN_CREATE|unix.IN_DELETE|unix.IN_MOVED_FROM|unix.IN_MOVED_TO) != 0:
			e.Kind = Name
		default:
			e.Kind = Content
		}
		yield(e)
	}
}
