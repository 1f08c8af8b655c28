package walk

import (
	"bytes"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
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

// TestReadWhatIsPartlyInMemory reads files of which the kernel has let some pages go.
func TestReadWhatIsPartlyInMemory(t *testing.T) {
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
	for _, size := range []int64{0, 1, page - 1, page, page + 1, 5 * page, mostNow, mostNow + page, 3*mostNow + 7} {
		want := make([]byte, size)
		for i := range want {
			want[i] = byte(draw.Uint32())
		}
		path := filepath.Join(dir, "f")
		if err := os.WriteFile(path, want, 0o644); err != nil {
			t.Fatal(err)
		}
		for range 8 {
			letGo(t, path, draw.Int64N(size+1)/page*page)
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
}

// letGo lets the kernel drop a file's pages from a position on.
func letGo(t *testing.T, path string, from int64) {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if err := f.Sync(); err != nil {
		t.Fatal(err)
	}
	if err := unix.Fadvise(int(f.Fd()), from, 0, unix.FADV_DONTNEED); err != nil {
		t.Skip(err)
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

// TestLookThrough: what a directory is looked through by tells the same as a look at each entry.
func TestLookThrough(t *testing.T) {
	dir, roots := open(t)
	long := strings.Repeat("x", maxName)
	for _, name := range []string{long, long[1:], "new\nline"} {
		if err := os.WriteFile(filepath.Join(dir, "root", name), []byte(name), 0o640); err != nil {
			t.Fatal(err)
		}
	}
	for i, r := range roots {
		defer r.Close()
		looked := 0
		buf := new(Buffer)
		for _, slow := range []int{0, wary} {
			buf.slow = slow
			buf.Listed = func(sub *Root, listed []Entry) {
				if buf.now == (slow > 0 || r.steps) {
					t.Errorf("root %d: slow %d, but now is %v", i, slow, buf.now)
				}
				names := []string{"gone", "sub/f", "sub\x00", long + "x", ""}
				for _, e := range listed {
					names = append(names, e.Name)
				}
				for _, name := range names {
					got, err := buf.Stat(sub, name)
					want, wrong := sub.Stat(name)
					if got != want || (err == nil) != (wrong == nil) {
						t.Errorf("root %d: %q is %+v, %v, but %+v, %v", i, name, got, err, want, wrong)
					}
					looked++
				}
			}
			if _, err := r.List("", buf); err != nil {
				t.Fatal(err)
			}
		}
		if looked < 16 {
			t.Errorf("root %d: looked at %d names", i, looked)
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
