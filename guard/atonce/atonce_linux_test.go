package atonce

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// TestOpen: what is opened is what an ordinary call would open, and everything that could wait is left to it.
func TestOpen(t *testing.T) {
	dir := t.TempDir()
	file, link, fifo := filepath.Join(dir, "file"), filepath.Join(dir, "link"), filepath.Join(dir, "fifo")
	if err := errors.Join(os.WriteFile(file, []byte("content"), 0o644), os.Symlink(file, link), syscall.Mkfifo(fifo, 0o644)); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		name, path string
		never      bool
	}{
		{name: "a file", path: file},
		{name: "a pipe that nobody writes to", path: fifo},
		{name: "a link", path: link, never: true},
		{name: "nothing", path: filepath.Join(dir, "nothing"), never: true},
		{name: "what is mounted elsewhere", path: "/proc/self/status", never: true},
		{name: "a relative path", path: "atonce_linux.go", never: true},
		{name: "a NUL", path: file + "\x00", never: true},
		{name: "a long path", path: "/" + strings.Repeat("./", maxPath) + file, never: true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			fd, ok := Open(tt.path, unix.O_RDONLY, unix.RESOLVE_NO_SYMLINKS)
			if !ok {
				return // as it may be on other file systems
			}
			defer Close(fd)
			var got, want syscall.Stat_t
			if tt.never || !Fstat(fd, &got) || syscall.Stat(tt.path, &want) != nil || got.Ino != want.Ino || got.Dev != want.Dev {
				t.Errorf("it was opened as %d of %d", got.Ino, got.Dev)
			}
			p := make([]byte, 100)
			if n, ok := Read(fd, p); ok && tt.path == file && string(p[:n]) != "content" {
				t.Errorf("it holds %q", p[:n])
			}
		})
	}
}

// TestReader: a pipe is read to its end, also what comes only when it is waited for.
func TestReader(t *testing.T) {
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	go func() {
		for range 100 {
			w.Write([]byte("some text\n"))
		}
		w.Close()
	}()
	got, err := io.ReadAll(NewReader(r))
	if want := strings.Repeat("some text\n", 100); err != nil || string(got) != want {
		t.Errorf("%d bytes of %d, %v", len(got), len(want), err)
	}
}

// TestOtherReaders: what cannot be waited for is read as ever.
func TestOtherReaders(t *testing.T) {
	path := filepath.Join(t.TempDir(), "file")
	want := strings.Repeat("some text\n", 10_000)
	if err := os.WriteFile(path, []byte(want), 0o644); err != nil {
		t.Fatal(err)
	}
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for name, r := range map[string]io.Reader{"a file": f, "no file": strings.NewReader(want)} {
		if got, err := io.ReadAll(NewReader(r)); err != nil || string(got) != want {
			t.Errorf("%s: %d bytes, %v", name, len(got), err)
		}
	}
}

// TestWriter: more than a pipe holds is written in its order.
func TestWriter(t *testing.T) {
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	want := bytes.Repeat([]byte("0123456789"), 50_000)
	go func() {
		defer w.Close()
		out := NewWriter(w)
		for _, part := range [][]byte{want[:10], {}, want[10:400_000], want[400_000:]} {
			if n, err := out.Write(part); n != len(part) || err != nil {
				t.Errorf("%d of %d bytes, %v", n, len(part), err)
			}
		}
	}()
	if got, err := io.ReadAll(r); err != nil || !bytes.Equal(got, want) {
		t.Errorf("%d of %d bytes, %v", len(got), len(want), err)
	}
}

// TestWriterTellsOfTheEnd: a pipe that nobody reads is an error, as it is for any writer.
func TestWriterTellsOfTheEnd(t *testing.T) {
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	r.Close()
	if n, err := NewWriter(w).Write([]byte("text")); n != 0 || !errors.Is(err, syscall.EPIPE) {
		t.Errorf("%d bytes, %v", n, err)
	}
}
