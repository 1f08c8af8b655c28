package jsonrpc

import (
	"bytes"
	"net"
	"os"
	"testing"

	"golang.org/x/sys/unix"
)

func TestGrowPipe(t *testing.T) {
	for _, tt := range []struct {
		name      string
		has, want int
	}{
		{"one page", os.Getpagesize(), pipeCapacity},
		{"default", 64 << 10, pipeCapacity},
		{"larger", 2 * pipeCapacity, 2 * pipeCapacity},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r, w, err := os.Pipe()
			if err != nil {
				t.Fatal(err)
			}
			defer r.Close()
			defer w.Close()
			if _, err := unix.FcntlInt(r.Fd(), unix.F_SETPIPE_SZ, tt.has); err != nil {
				t.Skipf("cannot create a pipe of %d bytes: %v", tt.has, err)
			}
			if _, err := w.WriteString("kept"); err != nil {
				t.Fatal(err)
			}
			growPipe(w)
			if got, err := unix.FcntlInt(r.Fd(), unix.F_GETPIPE_SZ, 0); err != nil || got != tt.want {
				t.Errorf("capacity: got %d, error %v, want %d", got, err, tt.want)
			}
			text := make([]byte, 8)
			if n, err := r.Read(text); err != nil || string(text[:n]) != "kept" {
				t.Errorf("read %q, error %v", text[:n], err)
			}
		})
	}
}

// TestGrowPipeOther: growPipe ignores files that are not pipes.
func TestGrowPipeOther(t *testing.T) {
	file, err := os.CreateTemp(t.TempDir(), "")
	if err != nil {
		t.Fatal(err)
	}
	growPipe(file)
	if err := file.Close(); err != nil {
		t.Error(err)
	}
	growPipe(file) // closed
	a, b := net.Pipe()
	defer a.Close()
	defer b.Close()
	growPipe(a)
	growPipe(&bytes.Buffer{})
}
