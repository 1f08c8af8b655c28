package walk

import (
	"bytes"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"
)

// roots opens a directory with openat2, and without it as on an old kernel.
func roots(t *testing.T, path string) []*Root {
	t.Helper()
	fast, err := OpenRoot(path)
	if err != nil {
		t.Fatal(err)
	}
	fd, err := (&Root{}).openFromTop(path)
	if err != nil {
		t.Fatal(err)
	}
	return []*Root{fast, {fd: fd, steps: true}}
}

func TestRootIsNoLink(t *testing.T) {
	dir, roots := open(t)
	for _, r := range roots {
		defer r.Close()
	}
	for _, path := range []string{"linked", "linked/sub", "out", "gone"} {
		path = filepath.Join(dir, path)
		if r, err := OpenRoot(path); err == nil {
			r.Close()
			t.Errorf("OpenRoot(%s) succeeded", path)
		}
		if _, err := (&Root{}).openFromTop(path); err == nil {
			t.Errorf("openFromTop(%s) succeeded", path)
		}
	}
}

// TestReadAt reads files of several sizes from any position to their end.
func TestReadAt(t *testing.T) {
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	root, err := OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	draw := rand.New(rand.NewPCG(1, 2))
	for _, size := range []int64{0, 1, 4095, 4096, 4097, 1 << 20, 3<<20 + 7} {
		want := make([]byte, size)
		for i := range want {
			want[i] = byte(draw.Uint32())
		}
		if err := os.WriteFile(filepath.Join(dir, "f"), want, 0o644); err != nil {
			t.Fatal(err)
		}
		h, err := root.Open("f")
		if err != nil {
			t.Fatal(err)
		}
		from := draw.Int64N(size + 1)
		got := make([]byte, size-from+2)
		n, err := h.ReadAt(got, from)
		h.Close()
		if err != io.EOF || !bytes.Equal(got[:n], want[from:]) {
			t.Errorf("%d bytes from %d: read %d, %v", size, from, n, err)
		}
	}
}

func TestNameEndsNowhereElse(t *testing.T) {
	_, roots := open(t)
	for i, r := range roots {
		defer r.Close()
		if h, err := r.Open("sub/f\x00x"); err == nil {
			h.Close()
			t.Errorf("root %d: opened sub/f by a longer name", i)
		}
	}
}

func TestReadOfNoFile(t *testing.T) {
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	if err := unix.Mkfifo(filepath.Join(dir, "fifo"), 0o644); err != nil {
		t.Skip(err)
	}
	root, err := OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	h, err := root.Open("fifo")
	if err != nil {
		t.Fatal(err)
	}
	defer h.Close()
	if n, err := h.ReadAt(make([]byte, 8), 0); n != 0 || err != io.EOF {
		t.Errorf("read %d bytes of a FIFO, %v", n, err)
	}
}
