package atomicfile

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

func sameAttributes(t *testing.T, before, after syscall.Stat_t) {
	t.Helper()
	if before.Mode != after.Mode || before.Uid != after.Uid || before.Gid != after.Gid || before.Nlink != after.Nlink {
		t.Errorf("before: mode %o, owner %d:%d, %d links; after: mode %o, owner %d:%d, %d links",
			before.Mode, before.Uid, before.Gid, before.Nlink, after.Mode, after.Uid, after.Gid, after.Nlink)
	}
}

func chmod(t *testing.T, path string, mode fs.FileMode) {
	t.Helper()
	if err := os.Chmod(path, mode); err != nil {
		t.Fatal(err)
	}
}

func chown(t *testing.T, path string, id int) {
	t.Helper()
	if err := os.Chown(path, id, id); err != nil {
		t.Skip("needs root:", err)
	}
}

func link(t *testing.T, path, other string) {
	t.Helper()
	if err := os.Link(path, other); err != nil {
		t.Fatal(err)
	}
}

func stat(t *testing.T, path string) syscall.Stat_t {
	t.Helper()
	var st syscall.Stat_t
	if err := syscall.Lstat(path, &st); err != nil {
		t.Fatal(err)
	}
	return st
}

// acl returns an access control list as the kernel keeps it (version 2 of
// linux/posix_acl_xattr.h): owner, user 1000, group, mask, others.
func acl(owner, user, group, mask, others byte) []byte {
	none := [4]byte{255, 255, 255, 255}
	list := []byte{2, 0, 0, 0}
	for _, e := range []struct {
		tag, perm byte
		id        [4]byte
	}{
		{0x01, owner, none}, {0x02, user, [4]byte{0xe8, 3, 0, 0}}, {0x04, group, none}, {0x10, mask, none}, {0x20, others, none},
	} {
		list = append(append(list, e.tag, 0, e.perm, 0), e.id[:]...)
	}
	return list
}

func TestKeepsAttributes(t *testing.T) {
	dir, path, journal := room(t)
	file := filepath.Join(path, "f")
	put(t, file, "old", 0o600)
	if os.Geteuid() == 0 {
		chown(t, file, 1234)
	}
	xattrs := map[string][]byte{
		"user.note": []byte("kept"), "user.empty": {}, "user.long": bytes.Repeat([]byte("x"), 2000),
		"system.posix_acl_access": acl(7, 4, 5, 5, 1),
	}
	for name, value := range xattrs {
		if err := unix.Setxattr(file, name, value, 0); err != nil {
			t.Skip("no extended attributes here:", err)
		}
	}
	for _, inPlace := range []bool{false, true} {
		chmod(t, file, 0o751|fs.ModeSetuid|fs.ModeSetgid)
		if inPlace {
			link(t, file, filepath.Join(path, "g"))
		}
		before := stat(t, file)
		out, err := Replace(dir, "f", Options{JournalDir: journal}, []byte("n"), nil, []byte("ew"))
		if err != nil || out.InPlace != inPlace {
			t.Fatalf("%+v, %v", out, err)
		}
		after := stat(t, file)
		before.Mode &^= unix.S_ISUID | unix.S_ISGID // they were set for the old content
		sameAttributes(t, before, after)
		if inPlace && (before.Ino != after.Ino || content(t, filepath.Join(path, "g")) != "new") {
			t.Error("the other link is another file now")
		}
		for name, want := range xattrs {
			got := make([]byte, 4096)
			n, err := unix.Getxattr(file, name, got)
			if err != nil || !bytes.Equal(got[:n], want) {
				t.Errorf("in place %v: %s is %q, %v", inPlace, name, got[:max(n, 0)], err)
			}
		}
	}
}

func TestDefaultACLOfTheDirectoryIsNotTaken(t *testing.T) {
	dir, path, journal := room(t)
	put(t, filepath.Join(path, "f"), "old", 0o600)
	if err := unix.Setxattr(path, "system.posix_acl_default", acl(7, 7, 5, 7, 5), 0); err != nil {
		t.Skip("no access control lists here:", err)
	}
	if _, err := Replace(dir, "f", Options{JournalDir: journal}, []byte("new")); err != nil {
		t.Fatal(err)
	}
	if n, err := unix.Getxattr(filepath.Join(path, "f"), "system.posix_acl_access", make([]byte, 100)); err == nil {
		t.Errorf("the file got an access control list of %d bytes", n)
	}
	if got := stat(t, filepath.Join(path, "f")).Mode & 0o777; got != 0o600 {
		t.Errorf("mode %o", got)
	}
}

func TestInPlaceNeedsJournal(t *testing.T) {
	dir, path, journal := room(t)
	put(t, filepath.Join(path, "f"), "old", 0o600)
	link(t, filepath.Join(path, "f"), filepath.Join(path, "g"))
	if _, err := Replace(dir, "f", Options{}, []byte("new")); err == nil ||
		!strings.Contains(err.Error(), "2 hard links") {
		t.Errorf("error %v", err)
	}
	if got := content(t, filepath.Join(path, "g")); got != "old" {
		t.Errorf("content %q", got)
	}
	tidy(t, path, journal, "f", "g")
}

// mount mounts a file system on a folder or file of the test.
func mount(t *testing.T, source, target, kind string, flags uintptr, data string) {
	t.Helper()
	if err := syscall.Mount(source, target, kind, flags, data); err != nil {
		t.Skip("cannot mount a file system (needs root):", err)
	}
	t.Cleanup(func() {
		if err := syscall.Unmount(target, syscall.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
}

func TestDiskFull(t *testing.T) {
	for _, inPlace := range []bool{false, true} {
		t.Run(fmt.Sprintf("in place %v", inPlace), func(t *testing.T) {
			path, journal := t.TempDir(), t.TempDir()
			mount(t, "tmpfs", path, "tmpfs", 0, "size=1m")
			file := filepath.Join(path, "f")
			old := strings.Repeat("o", 300_000)
			put(t, file, old, 0o600)
			names := []string{"f"}
			if inPlace {
				names = append(names, "g")
				link(t, file, filepath.Join(path, "g"))
			}
			dir := open(t, path)
			_, err := Replace(dir, "f", Options{JournalDir: journal}, bytes.Repeat([]byte("n"), 2<<20))
			if !errors.Is(err, syscall.ENOSPC) || !strings.Contains(err.Error(), "The file is unchanged; free some space") {
				t.Errorf("error %v", err)
			}
			if got := content(t, file); got != old {
				t.Errorf("%d bytes", len(got))
			}
			tidy(t, path, journal, names...)
			if _, err := Replace(dir, "f", Options{JournalDir: journal}, []byte("n")); err != nil ||
				content(t, file) != "n" {
				t.Errorf("a write that fits: %v", err)
			}
		})
	}
}

// TestRoomOfTheReplaced writes a file again and again that fits only into the room of the one that was replaced just before, which is
// still open.
func TestRoomOfTheReplaced(t *testing.T) {
	path, journal := t.TempDir(), t.TempDir()
	mount(t, "tmpfs", path, "tmpfs", 0, "size=1m")
	dir := open(t, path)
	for n := range 40 {
		want := strings.Repeat(string(rune('a'+n%26)), 400_000)
		if _, err := Replace(dir, "f", Options{JournalDir: journal}, []byte(want[:200_000]),
			[]byte(want[200_000:])); err != nil {
			t.Fatalf("write %d: %v", n, err)
		}
		if content(t, filepath.Join(path, "f")) != want {
			t.Fatalf("write %d is not there", n)
		}
	}
	tidy(t, path, journal, "f")
}

func TestJournalFull(t *testing.T) {
	path, journal := t.TempDir(), t.TempDir()
	mount(t, "tmpfs", journal, "tmpfs", 0, "size=64k")
	file := filepath.Join(path, "f")
	old := strings.Repeat("o", 300_000)
	put(t, file, old, 0o600)
	link(t, file, filepath.Join(path, "g"))
	_, err := Replace(open(t, path), "f", Options{JournalDir: journal}, []byte("new"))
	if !errors.Is(err, syscall.ENOSPC) || !strings.Contains(err.Error(), "in the journal") {
		t.Errorf("error %v", err)
	}
	if content(t, file) != old {
		t.Error("the file changed")
	}
	tidy(t, path, journal, "f", "g")
}

func TestReadOnlyFileSystem(t *testing.T) {
	path, journal := t.TempDir(), t.TempDir()
	mount(t, "tmpfs", path, "tmpfs", 0, "size=1m")
	put(t, filepath.Join(path, "f"), "old", 0o600)
	if err := syscall.Mount("", path, "", syscall.MS_REMOUNT|syscall.MS_RDONLY, ""); err != nil {
		t.Fatal(err)
	}
	for _, base := range []string{"f", "new"} {
		_, err := Replace(open(t, path), base, Options{JournalDir: journal}, []byte("new"))
		if !errors.Is(err, syscall.EROFS) || !strings.Contains(err.Error(), "mounted read-only") {
			t.Errorf("%s: error %v", base, err)
		}
	}
	tidy(t, path, journal, "f")
}

// TestMountedFile has a file that is a mount point of its own, as containers
// get their configuration.
func TestMountedFile(t *testing.T) {
	dir, path, journal := room(t)
	source, file := filepath.Join(t.TempDir(), "source"), filepath.Join(path, "f")
	put(t, source, "old", 0o600)
	put(t, file, "", 0o600)
	mount(t, source, file, "", syscall.MS_BIND, "")
	out, err := Replace(dir, "f", Options{JournalDir: journal}, []byte("new"))
	if err != nil || !out.InPlace {
		t.Fatalf("%+v, %v", out, err)
	}
	if got := content(t, source); got != "new" {
		t.Errorf("content %q", got)
	}
	tidy(t, path, journal, "f")
}

// TestParentSwapped exchanges the parent with a link to another directory all
// the while. What was opened stays what is written.
func TestParentSwapped(t *testing.T) {
	top, outside := t.TempDir(), t.TempDir()
	sub, other := filepath.Join(top, "sub"), filepath.Join(top, "link")
	if err := os.Mkdir(sub, 0o700); err != nil {
		t.Fatal(err)
	}
	put(t, filepath.Join(sub, "f"), "old", 0o600)
	put(t, filepath.Join(outside, "f"), "SECRET", 0o600)
	if err := os.Symlink(outside, other); err != nil {
		t.Fatal(err)
	}
	root := open(t, top)
	stop, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		for {
			select {
			case <-stop:
				return
			default:
				_ = unix.Renameat2(unix.AT_FDCWD, sub, unix.AT_FDCWD, other, unix.RENAME_EXCHANGE)
			}
		}
	}()
	wrote := 0
	for round := 0; round < 1000 || wrote == 0 && round < 1e7; round++ { // the link may be there for all of a thousand
		dir, err := root.OpenRoot("sub")
		if err != nil {
			continue // it was the link: refused
		}
		if _, err := Replace(dir, "f", Options{}, []byte("new")); err == nil {
			wrote++
		}
		dir.Close()
	}
	close(stop)
	<-done
	if got := content(t, filepath.Join(outside, "f")); got != "SECRET" || len(list(t, outside)) != 1 {
		t.Errorf("written outside: %q, %q", got, list(t, outside))
	}
	if wrote == 0 {
		t.Error("nothing was written")
	}
}

func TestFIFO(t *testing.T) {
	dir, path, journal := room(t)
	if err := syscall.Mkfifo(filepath.Join(path, "f"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Replace(dir, "f", Options{JournalDir: journal}, []byte("new")); err == nil ||
		!strings.Contains(err.Error(), "FIFO") {
		t.Errorf("error %v", err)
	}
}
