package jsonrpc

import (
	"bytes"
	"net"
	"os"
	"testing"

	"golang.org/x/sys/unix"
)

func TestWiden(t *testing.T) {
	for _, tt := range []struct {
		name      string
		has, want int
	}{
		{"one page", os.Getpagesize(), pipeRoom},
		{"a common pipe", 64 << 10, pipeRoom},
		{"a wide one stays", 2 * pipeRoom, 2 * pipeRoom},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r, w, err := os.Pipe()
			if err != nil {
				t.Fatal(err)
			}
			defer r.Close()
			defer w.Close()
			if _, err := unix.FcntlInt(r.Fd(), unix.F_SETPIPE_SZ, tt.has); err != nil {
				t.Skipf("this user may not have such a pipe: %v", err)
			}
			if _, err := w.WriteString("kept"); err != nil {
				t.Fatal(err)
			}
			widen(w)
			if got, err := unix.FcntlInt(r.Fd(), unix.F_GETPIPE_SZ, 0); err != nil || got != tt.want {
				t.Errorf("it holds %d bytes, error %v, want %d", got, err, tt.want)
			}
			text := make([]byte, 8)
			if n, err := r.Read(text); err != nil || string(text[:n]) != "kept" {
				t.Errorf("read %q, error %v", text[:n], err)
			}
		})
	}
}

// TestWidenOther: what is no pipe is left alone.
func TestWidenOther(t *testing.T) {
	file, err := os.CreateTemp(t.TempDir(), "")
	if err != nil {
		t.Fatal(err)
	}
	widen(file)
	if err := file.Close(); err != nil {
		t.Error(err)
	}
	widen(file) // closed
	a, b := net.Pipe()
	defer a.Close()
	defer b.Close()
	widen(a)
	widen(&bytes.Buffer{})
}
