package sandbox

import (
	"errors"
	"fmt"
	"io"
	"net"
	"os"

	"golang.org/x/sys/unix"
)

// maxFiles is the most descriptors one message carries (SCM_MAX_FD of unix(7)).
const maxFiles = 253

// send sends one message with copies of descriptors. Long ones go in a memory
// file as the first descriptor, marked by a leading zero byte.
func send(conn *net.UnixConn, msg []byte, files ...int) error {
	if len(msg) > maxInline {
		fd, err := memoryFile("message", msg)
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
	_, _, err := conn.WriteMsgUnix(msg, oob, nil)
	return err
}

// receiver takes messages off a connection, one after the other, into the same memory.
type receiver struct {
	conn     *net.UnixConn
	buf, oob []byte
	// frugal takes a message without its descriptors when there is no room for
	// them, as in a process that has opened as many as it may.
	frugal bool
}

func newReceiver(conn *net.UnixConn) *receiver {
	return &receiver{conn: conn, buf: make([]byte, maxInline), oob: make([]byte, unix.CmsgSpace(maxFiles*4))}
}

// next waits for one message, which is good until the next one. The descriptors are the caller's.
func (r *receiver) next() (msg []byte, files []int, err error) {
	buf := r.buf
	n, oobn, flags, _, err := r.conn.ReadMsgUnix(buf, r.oob)
	if err != nil {
		return nil, nil, err
	}
	if n == 0 {
		return nil, nil, io.EOF
	}
	if oobn > 0 {
		if files, err = parseFiles(r.oob[:oobn]); err != nil {
			return nil, nil, err
		}
	}
	if cut := flags & (unix.MSG_TRUNC | unix.MSG_CTRUNC); cut != 0 {
		closeAll(files)
		files = nil
		if cut != unix.MSG_CTRUNC || !r.frugal {
			return nil, nil, errors.New("message truncated")
		}
	}
	if buf[0] != 0 {
		return buf[:n], files, nil
	}
	if len(files) == 0 {
		return nil, nil, errMalformed
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

func closeAll(files []int) {
	for _, fd := range files {
		unix.Close(fd)
	}
}

// memoryFile returns a file with data in it that has no name.
func memoryFile(name string, data []byte) (int, error) {
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
