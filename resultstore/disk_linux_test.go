package resultstore

import (
	"errors"
	"os"
	"strings"
	"syscall"
	"testing"
)

// mount puts a tmpfs of 1 MB on a directory.
func mount(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, "size=1m"); err != nil {
		t.Skipf("mounting a tmpfs takes root: %v", err)
	}
	t.Cleanup(func() {
		if err := syscall.Unmount(dir, 0); err != nil {
			t.Errorf("unmount, is a file left open?: %v", err)
		}
	})
	return dir
}

func TestDiskFull(t *testing.T) {
	dir := mount(t)
	s := open(t, Config{Dir: dir})
	sh := s.For("p")
	text := numbered(1, 300_000) // 3.6 MB
	before := everything(t, dir)

	got, err := sh.Fit(text, 1000)
	if !errors.Is(err, syscall.ENOSPC) || !got.Cut || got.Path != "" ||
		!strings.Contains(got.Text, "not kept: no space left on device") {
		t.Errorf("Fit: %q, %v, want it cut and said that the disk is full", got.Text, err)
	}
	for _, path := range everything(t, dir) {
		if resultNames.MatchString(path[strings.LastIndexByte(path, '/')+1:]) {
			t.Errorf("half a result left: %s (before: %q)", path, before)
		}
	}

	f, err := sh.Create("bash")
	if err != nil {
		t.Fatal(err)
	}
	if n, err := f.Write([]byte(text)); n == 0 || n >= len(text) || !errors.Is(err, syscall.ENOSPC) {
		t.Errorf("Write = %d, %v, want a part and the reason", n, err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	k := f.Kept()
	if !errors.Is(k.Err, syscall.ENOSPC) || k.Stored == 0 || k.Stored >= int64(len(text)) {
		t.Errorf("Kept: %+v, want the part that fits and the reason", k)
	}
	if data, err := os.ReadFile(k.Path); err != nil || string(data) != text[:k.Stored] {
		t.Errorf("in the file: %d bytes, %v, want the first %d", len(data), err, k.Stored)
	}
	if fitted := cut(text, k, 1000); !strings.Contains(fitted.Text, "bytes are kept (no space left on device) in ") {
		t.Errorf("cut: %q does not say it", fitted.Text)
	}
	if err := f.Discard(); err != nil {
		t.Fatal(err)
	}
	if got, err := sh.Fit(text[:100_000], 1000); err != nil || got.Path == "" {
		t.Errorf("once there is room: %v", err)
	}
}

func TestReadOnlyDisk(t *testing.T) {
	dir := mount(t)
	if err := open(t, Config{Dir: dir}).Close(); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mount("", dir, "", syscall.MS_REMOUNT|syscall.MS_RDONLY, ""); err != nil {
		t.Fatal(err)
	}
	sh := open(t, Config{Dir: dir}).For("p")
	got, err := sh.Fit(numbered(1, 100), 100)
	if !errors.Is(err, syscall.EROFS) || !got.Cut || !strings.Contains(got.Text, "not kept: read-only file system") {
		t.Errorf("Fit: %q, %v, want it cut and said that the disk is read-only", got.Text, err)
	}
	if err := syscall.Mount("", dir, "", syscall.MS_REMOUNT, ""); err != nil {
		t.Fatal(err)
	}
	if got, err := sh.Fit(numbered(1, 100), 100); err != nil || got.Path == "" {
		t.Errorf("once it can be written: %v", err)
	}
}
