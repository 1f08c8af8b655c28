package contract

import (
	"errors"
	"fmt"
	"io"
	"net"
	"os"

	"golang.org/x/sys/unix"
)

// MaxFiles is the most descriptors one message carries (SCM_MAX_FD of unix(7)).
const MaxFiles = 253

// maxInline is the size above which a message travels in a memory file instead: the default send buffer of a Unix
// socket takes about 200 KiB, arguments and environment may be 2 MiB.
const maxInline = 32 << 10

// A Conn carries whole messages over a sequenced-packet socket. Messages can be sent from several goroutines, and
// received by one.
type Conn struct {
	// Frugal takes a message without its descriptors when there is no room for them, as in a process that has opened as
	// many as it may.
	Frugal bool

	conn     *net.UnixConn
	buf, oob []byte // of the messages that are received
}

// NewConn returns one end, which is closed with the connection.
func NewConn(conn *net.UnixConn) *Conn {
	return &Conn{conn: conn, buf: make([]byte, maxInline), oob: make([]byte, unix.CmsgSpace(MaxFiles*4))}
}

// Close ends the connection, and [Conn.Request] and [Conn.Event] of both sides.
func (c *Conn) Close() {
	c.conn.CloseRead()
	c.conn.Close()
}

// Send sends a [Request] or an [Event] with copies of descriptors. A long message goes in a memory file as the first
// descriptor, marked by a leading zero byte.
func (c *Conn) Send(m any, files ...int) error {
	msg := encode(m)
	if len(msg) > maxInline {
		fd, err := MemoryFile("message", msg)
		if err != nil {
			return err
		}
		defer unix.Close(fd)
		msg, files = []byte{0}, append([]int{fd}, files...)
	}
	var oob []byte
	if len(files) > 0 {
		oob = unix.UnixRights(files...)
	}
	_, _, err := c.conn.WriteMsgUnix(msg, oob, nil)
	return err
}

// Request waits for the next request. The descriptors are the caller's. A malformed request is an error.
func (c *Conn) Request() (r Request, files []int, err error) {
	msg, files, err := c.next()
	if err != nil {
		return r, nil, err
	}
	return r, files, decode(msg, &r)
}

// Event waits for the next event. The descriptors are the caller's. A malformed event has the error in its Err.
func (c *Conn) Event() (e Event, files []int, err error) {
	msg, files, err := c.next()
	if err != nil {
		return e, nil, err
	}
	if err := decode(msg, &e); err != nil {
		e.Err = err
	}
	return e, files, nil
}

// next waits for one message, which is good until the next one.
func (c *Conn) next() (msg []byte, files []int, err error) {
	n, oobn, flags, _, err := c.conn.ReadMsgUnix(c.buf, c.oob)
	if err != nil {
		return nil, nil, err
	}
	if n == 0 {
		return nil, nil, io.EOF
	}
	if oobn > 0 {
		if files, err = parseFiles(c.oob[:oobn]); err != nil {
			return nil, nil, err
		}
	}
	if cut := flags & (unix.MSG_TRUNC | unix.MSG_CTRUNC); cut != 0 {
		CloseAll(files)
		files = nil
		if cut != unix.MSG_CTRUNC || !c.Frugal {
			return nil, nil, errors.New("message truncated")
		}
	}
	if c.buf[0] != 0 {
		return c.buf[:n], files, nil
	}
	if len(files) == 0 {
		return nil, nil, ErrMalformed
	}
	f := os.NewFile(uintptr(files[0]), "message")
	defer f.Close()
	msg, err = io.ReadAll(io.NewSectionReader(f, 0, 1<<30))
	return msg, files[1:], err
}

func parseFiles(oob []byte) ([]int, error) {
	messages, err := unix.ParseSocketControlMessage(oob)
	if err != nil {
		return nil, err
	}
	var files []int
	for _, m := range messages {
		fds, err := unix.ParseUnixRights(&m)
		if err != nil {
			return files, err
		}
		files = append(files, fds...)
	}
	return files, nil
}

// CloseAll closes descriptors.
func CloseAll(files []int) {
	for _, fd := range files {
		unix.Close(fd)
	}
}

// MemoryFile returns a file with data in it that has no name.
func MemoryFile(name string, data []byte) (int, error) {
	fd, err := unix.MemfdCreate(name, unix.MFD_CLOEXEC)
	if err != nil {
		return -1, fmt.Errorf("memory file: %w", err)
	}
	for len(data) > 0 {
		n, err := unix.Write(fd, data)
		if err != nil {
			unix.Close(fd)
			return -1, fmt.Errorf("memory file: %w", err)
		}
		data = data[n:]
	}
	return fd, nil
}
