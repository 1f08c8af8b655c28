package walk

import (
	"io"
	"os"
	"strings"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// What the kernel has in memory is opened and read without telling Go's scheduler,
// which takes the processor from whoever is in a system call for some 20 µs, and
// wakes another thread for it: a search then spends a fifth of its time on changing
// threads. That is only for calls that cannot wait for a disk, a network or another
// process, for a thread that waits so keeps the whole program from stopping for the
// collector: the kernel is asked for what it has at once (RESOLVE_CACHED since Linux
// 5.12, RWF_NOWAIT), on file systems of this machine (Root.local), and not beyond
// what is mounted there. Whatever else it answers, the ordinary call is made.

// resolveCached is RESOLVE_CACHED of linux/openat2.h.
const resolveCached = 0x20

const (
	// mostNow is how much is read at once, in bytes: about 100 µs.
	mostNow = 1 << 20
	// maxPath is the longest path that is opened so, in bytes: it is copied to the
	// stack. All that people use are shorter.
	maxPath = 256
)

// openNow opens a path below the root if the kernel has all of it in memory.
func (r *Root) openNow(path string, flags int, resolve uint64) (fd int, ok bool) {
	var name [maxPath]byte // ends in a zero
	if !r.local || copy(name[:], path) >= len(name) || strings.IndexByte(path, 0) >= 0 {
		return -1, false
	}
	how := unix.OpenHow{Flags: uint64(flags | unix.O_RDONLY | unix.O_CLOEXEC), Resolve: resolve | resolveCached | unix.RESOLVE_NO_XDEV}
	n, _, errno := syscall.RawSyscall6(unix.SYS_OPENAT2, uintptr(r.fd), uintptr(unsafe.Pointer(&name)), uintptr(unsafe.Pointer(&how)), unsafe.Sizeof(how), 0, 0)
	return int(n), errno == 0
}

// readNow reads what of a file is in memory, from a position on; false if not even a
// byte is there.
func readNow(fd int, p []byte, off int64) (int, bool) {
	v := unix.Iovec{Base: &p[0]}
	v.SetLen(len(p))
	n, _, errno := syscall.RawSyscall6(unix.SYS_PREADV2, uintptr(fd), uintptr(unsafe.Pointer(&v)), 1, uintptr(off), uintptr(off>>32), unix.RWF_NOWAIT)
	return int(n), errno == 0
}

const (
	// maxName is the longest name that an entry of a directory can have, in bytes.
	maxName = 255
	// prompt is how long a look at a file takes at most that is in memory: a few times what it takes.
	prompt = 20 * time.Microsecond
	// wary is how many directories are looked through with the scheduler's knowledge behind
	// one that was not in memory.
	wary = 64
)

// hurry lets Stat not tell the scheduler while a directory is looked through, unless what is there had to
// be waited for lately: no flag asks for the times of a file only if they are in memory.
func (buf *Buffer) hurry(now bool, look func()) {
	buf.now = now && buf.slow == 0
	begun := time.Now()
	look()
	switch {
	case time.Since(begun) > prompt*time.Duration(len(buf.entries)+wary):
		buf.slow = wary
	case buf.slow > 0:
		buf.slow--
	}
	buf.now = false
}

// Stat is the directory's Stat of one of its entries, for Listed.
func (buf *Buffer) Stat(dir *Root, name string) (Info, error) {
	if !buf.now || len(name) > maxName || strings.IndexByte(name, 0) >= 0 {
		return dir.Stat(name)
	}
	buf.name[copy(buf.name[:], name)] = 0
	st := &buf.stat
	const flags, mask = unix.AT_SYMLINK_NOFOLLOW, unix.STATX_BASIC_STATS
	_, _, errno := syscall.RawSyscall6(unix.SYS_STATX, uintptr(dir.fd), uintptr(unsafe.Pointer(&buf.name)), flags, mask, uintptr(unsafe.Pointer(st)), 0)
	if errno != 0 || st.Mask&mask != mask {
		return dir.Stat(name)
	}
	nano := func(t unix.StatxTimestamp) int64 { return t.Sec*int64(time.Second) + int64(t.Nsec) }
	device := unix.Mkdev(st.Dev_major, st.Dev_minor)
	return Info{kindOf(uint32(st.Mode)), Stamp{int64(st.Size), nano(st.Mtime), nano(st.Ctime), st.Ino, device, uint64(st.Nlink)}}, nil
}

func closeNow(fd int) error {
	_, _, errno := syscall.RawSyscall(unix.SYS_CLOSE, uintptr(fd), 0, 0)
	if errno != 0 {
		return errno
	}
	return nil
}

// page is the size in bytes in which the kernel keeps files.
var page = int64(os.Getpagesize())

// ReadAt reads like io.ReaderAt. Of what cannot be read at a position (a FIFO, a
// terminal) it reads nothing.
func (h Handle) ReadAt(p []byte, off int64) (n int, err error) {
	for n < len(p) {
		at := off + int64(n)
		if h.now {
			part := p[n:min(len(p), n+mostNow)]
			if m, ok := readNow(h.fd, part, at); ok {
				n += m
				if m < len(part) && (m == 0 || (at+int64(m))%page != 0) {
					return n, io.EOF // else it may only not be in memory
				}
				continue
			}
		}
		m, err := unix.Pread(h.fd, p[n:], at)
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
