package kernel

import (
	"encoding/binary"
	"errors"
	"fmt"
	"sync"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Values of linux/sock_diag.h and linux/unix_diag.h, absent from the library.
const (
	byFamily  = 20     // SOCK_DIAG_BY_FAMILY
	showFile  = 1 << 1 // UDIAG_SHOW_VFS
	attrFile  = 1      // UNIX_DIAG_VFS
	listening = 1 << 10
)

// request is a netlink message with struct unix_diag_req.
type request struct {
	header unix.NlMsghdr
	family uint8
	_      uint8 // the protocol
	_      uint16
	states uint32
	_      uint32 // the inode
	show   uint32
	_      [2]uint32 // the cookie
}

// A SocketTable is the list of the Unix and TCP sockets of one network namespace.
type SocketTable struct {
	mu   sync.Mutex
	fd   int // of a netlink socket of that namespace, or -1
	last uint32
}

// OpenSocketTable returns the table of the calling thread's network namespace.
func OpenSocketTable() (*SocketTable, error) {
	fd, err := DiagSocket()
	if err != nil {
		return nil, err
	}
	return NewSocketTable(fd), nil
}

// DiagSocket makes the netlink socket of a table, for another process to pass to [NewSocketTable].
func DiagSocket() (int, error) {
	fd, err := unix.Socket(unix.AF_NETLINK, unix.SOCK_RAW|unix.SOCK_CLOEXEC, unix.NETLINK_SOCK_DIAG)
	if err != nil {
		return -1, fmt.Errorf("opening the table of sockets: %w", err)
	}
	return fd, nil
}

// NewSocketTable takes over fd, which [DiagSocket] returned.
func NewSocketTable(fd int) *SocketTable { return &SocketTable{fd: fd} }

// Close closes the table. Later look-ups find nothing.
func (t *SocketTable) Close() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	fd := t.fd
	t.fd = -1
	return unix.Close(fd)
}

// A SocketFile identifies the file that a socket is bound to: the device of its file
// system, in the kernel's form, and the low half of its inode number.
type SocketFile struct{ Device, Inode uint32 }

// SocketFileOf returns the SocketFile of a socket that is bound to an inode.
func SocketFileOf(device, inode uint64) SocketFile {
	const minorBits = 20 // MKDEV of linux/kdev_t.h
	return SocketFile{unix.Major(device)<<minorBits | unix.Minor(device), uint32(inode)}
}

// Has reports whether a program listens on a socket that is bound to file.
func (t *SocketTable) Has(file SocketFile) (found bool, err error) {
	r := request{family: unix.AF_UNIX, states: listening, show: showFile}
	err = t.exchange(&r.header, unsafe.Sizeof(r), unix.NLM_F_DUMP, func(body []byte) {
		socket(body, func(f SocketFile) { found = found || f == file })
	})
	return found, err
}

// exchange sends a request, which begins with a header, for one socket or for a list, and calls f with each socket of
// the answer.
func (t *SocketTable) exchange(header *unix.NlMsghdr, size uintptr, flags uint16, f func(body []byte)) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.fd < 0 {
		return unix.EBADF
	}
	t.last++
	*header = unix.NlMsghdr{Len: uint32(size), Type: byFamily, Flags: unix.NLM_F_REQUEST | flags, Seq: t.last}
	request := unsafe.Slice((*byte)(unsafe.Pointer(header)), size)
	if err := unix.Sendto(t.fd, request, 0, &unix.SockaddrNetlink{Family: unix.AF_NETLINK}); err != nil {
		return fmt.Errorf("asking for the table of sockets: %w", err)
	}
	buf := make([]byte, 32<<10)
	for {
		n, _, err := unix.Recvfrom(t.fd, buf, unix.MSG_DONTWAIT)
		if errors.Is(err, unix.EINTR) {
			continue
		}
		if err != nil {
			return fmt.Errorf("reading the table of sockets: %w", err)
		}
		done, err := t.messages(buf[:n], f)
		if done || err != nil {
			return err
		}
	}
}

// messages calls f with each socket of one part of an answer, and reports whether it is the last part.
func (t *SocketTable) messages(buf []byte, f func(body []byte)) (done bool, err error) {
	for len(buf) >= unix.NLMSG_HDRLEN {
		size := int(binary.NativeEndian.Uint32(buf))
		kind, flags := binary.NativeEndian.Uint16(buf[4:]), binary.NativeEndian.Uint16(buf[6:])
		seq := binary.NativeEndian.Uint32(buf[8:])
		if size < unix.NLMSG_HDRLEN || size > len(buf) {
			return true, errors.New("reading the table of sockets: malformed message")
		}
		body := buf[unix.NLMSG_HDRLEN:size]
		buf = buf[min((size+3)&^3, len(buf)):]
		switch {
		case seq != t.last: // of an answer that was not read to its end
		case kind == unix.NLMSG_DONE:
			return true, nil
		case kind == unix.NLMSG_ERROR && len(body) >= 4:
			errno := unix.Errno(-int32(binary.NativeEndian.Uint32(body)))
			return true, fmt.Errorf("reading the table of sockets: %w", errno)
		case kind == byFamily:
			if f(body); flags&unix.NLM_F_MULTI == 0 { // no list
				return true, nil
			}
		}
	}
	return false, nil
}

// socket reads struct unix_diag_msg and its attributes.
func socket(body []byte, f func(SocketFile)) {
	const fixed, header = 16, 4
	for body = body[min(fixed, len(body)):]; len(body) >= header; {
		size, kind := int(binary.NativeEndian.Uint16(body)), binary.NativeEndian.Uint16(body[2:])
		if size < header || size > len(body) {
			return
		}
		if kind == attrFile && size >= header+8 {
			f(SocketFile{Inode: binary.NativeEndian.Uint32(body[4:]), Device: binary.NativeEndian.Uint32(body[8:])})
		}
		body = body[min((size+3)&^3, len(body)):]
	}
}
