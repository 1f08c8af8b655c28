//go:build unix

package privatefile

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

func TestRead(t *testing.T) {
	dir := t.TempDir()
	in := func(name string) string { return filepath.Join(dir, name) }
	for name, text := range map[string]string{"empty": "", "ten": "0123456789", "eleven": "0123456789a"} {
		if err := os.WriteFile(in(name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(os.Symlink("ten", in("link")), os.Symlink("/dev/zero", in("zero")),
		syscall.Mkfifo(in("pipe"), 0o600), os.Mkdir(in("dir"), 0o700)); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct{ name, want, says string }{
		{"empty", "", ""},
		{"ten", "0123456789", ""},
		{"link", "0123456789", ""},
		{"eleven", "", "longer than 10 bytes"},
		{"zero", "", "not a regular file"},
		{"pipe", "", "not a regular file"},
		{"dir", "", "not a regular file"},
		{"none", "", "no such file"},
	} {
		got, err := Read(in(tt.name), 10)
		if string(got) != tt.want || (err == nil) != (tt.says == "") || err != nil &&
			!strings.Contains(err.Error(), tt.says) {
			t.Errorf("%s: %q, %v, want %q, %q", tt.name, got, err, tt.want, tt.says)
		}
	}
	if _, err := Read(in("none"), 10); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("got %v", err)
	}
}

// A regular file of the kernel's, of which reads wait for what is still to come.
func TestReadDoesNotWait(t *testing.T) {
	const messages = "/proc/kmsg"
	f, err := os.OpenFile(messages, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		t.Skipf("%v: only root may read it, on Linux", err)
	}
	f.Close()
	link := filepath.Join(t.TempDir(), "link")
	if err := os.Symlink(messages, link); err != nil {
		t.Fatal(err)
	}
	if _, err := Read(link, 64<<20); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("got %v", err)
	}
}
