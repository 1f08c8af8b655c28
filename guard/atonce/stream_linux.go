package atonce

import (
	"io"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// A Reader reads from a pipe or a socket what is there. When nothing is, its goroutine waits as that of any reader does.
type Reader struct {
	file *os.File
	conn syscall.RawConn
	once func(fd uintptr) bool // try, as a value that is made once

	p     []byte
	n     int
	errno syscall.Errno
}

// NewReader returns a reader of in, or in itself if it is nothing that can be asked so. One goroutine at a time may use it.
func NewReader(in io.Reader) io.Reader {
	f, ok := in.(*os.File)
	if !ok {
		return in
	}
	conn, err := f.SyscallConn()
	if err != nil {
		return in
	}
	r := &Reader{file: f, conn: conn}
	r.once = r.try
	return r
}

// Read reads like the file.
func (r *Reader) Read(p []byte) (int, error) {
	if r.conn == nil || len(p) == 0 {
		return r.file.Read(p)
	}
	r.p = p
	err := r.conn.Read(r.once)
	r.p = nil
	switch {
	case err == nil && r.errno == 0 && r.n > 0:
		return r.n, nil
	case err == nil && r.errno == 0:
		return 0, io.EOF
	}
	r.conn = nil // it cannot be waited for, or not be asked
	return r.file.Read(p)
}

// try reads once, and reports whether there is nothing to wait for.
func (r *Reader) try(fd uintptr) bool {
	r.n, r.errno = transfer(unix.SYS_PREADV2, int(fd), r.p)
	return r.errno != unix.EAGAIN
}

// A Writer writes to a pipe or a socket what it has room for, and then as any writer does.
type Writer struct {
	file *os.File
	conn syscall.RawConn
}

// NewWriter returns a writer to out, or out itself if it is nothing that can be asked so.
func NewWriter(out io.Writer) io.Writer {
	f, ok := out.(*os.File)
	if !ok {
		return out
	}
	conn, err := f.SyscallConn()
	if err != nil {
		return out
	}
	return &Writer{file: f, conn: conn}
}

// Write writes like the file.
func (w *Writer) Write(p []byte) (int, error) {
	done := 0
	if len(p) > 0 {
		_ = w.conn.Control(func(fd uintptr) {
			if n, errno := transfer(unix.SYS_PWRITEV2, int(fd), p); errno == 0 {
				done = n
			}
		})
	}
	if done == len(p) {
		return done, nil
	}
	n, err := w.file.Write(p[done:])
	return done + n, err
}
