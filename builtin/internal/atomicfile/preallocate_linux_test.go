package atomicfile

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// A spareStage is a directory with a file that is changed, and what makes spares for it.
type spareStage struct {
	t     *testing.T
	dir   *os.Root
	temps *Temps
	opts  Options
}

func newSpareStage(t *testing.T) *spareStage {
	t.Helper()
	path := t.TempDir()
	dir, err := os.OpenRoot(path)
	if err != nil {
		t.Fatal(err)
	}
	s := &spareStage{t: t, dir: dir, temps: &Temps{}}
	s.opts = Options{JournalDir: t.TempDir(), Temps: s.temps}
	t.Cleanup(func() {
		s.temps.Close()
		dir.Close()
	})
	if fd, err := unix.Open(path, unix.O_TMPFILE|unix.O_WRONLY|unix.O_CLOEXEC, 0o600); err != nil {
		t.Skipf("this file system has no files without names: %v", err)
	} else {
		unix.Close(fd)
	}
	if err := os.WriteFile(filepath.Join(path, "f"), []byte("old"), 0o640); err != nil {
		t.Fatal(err)
	}
	return s
}

// replace changes the file, and makes the spare for the next change instead of waiting until it is made.
func (s *spareStage) replace(content string) {
	s.t.Helper()
	out, err := Replace(s.dir, "f", s.opts, []byte(content))
	if err != nil || out.InPlace || out.Created {
		s.t.Fatalf("%+v, %v", out, err)
	}
	s.holds(content)
	handle, err := openHandle(s.dir)
	if err != nil {
		s.t.Fatal(err)
	}
	defer handle.Close()
	s.temps.addSpare(handle, s.key())
}

func (s *spareStage) holds(content string) {
	s.t.Helper()
	got, err := s.dir.ReadFile("f")
	if err != nil || string(got) != content {
		s.t.Fatalf("the file holds %q, error %v, want %q", got, err, content)
	}
	info, err := s.dir.Stat("f")
	if err != nil || info.Mode() != 0o640 {
		s.t.Errorf("%v, error %v, want the mode that it had", info.Mode(), err)
	}
	entries, err := os.ReadDir(s.dir.Name())
	if err != nil || len(entries) != 1 {
		s.t.Errorf("beside it there is %v, error %v", entries, err)
	}
}

func (s *spareStage) key() string {
	handle, err := openHandle(s.dir)
	if err != nil {
		s.t.Fatal(err)
	}
	defer handle.Close()
	key, err := dirKey(handle)
	if err != nil {
		s.t.Fatal(err)
	}
	return key
}

// preallocated is the one that is kept, and its inode.
func (s *spareStage) preallocated() (*os.File, uint64) {
	s.temps.mu.Lock()
	defer s.temps.mu.Unlock()
	f := s.temps.spares[s.key()]
	if f == nil {
		return nil, 0
	}
	info, err := f.Stat()
	if err != nil {
		s.t.Fatal(err)
	}
	_, ino := identity(info)
	return f, ino
}

// TestSpare: each change becomes the file that was made ahead for it, which no one sees before.
func TestSpare(t *testing.T) {
	s := newSpareStage(t)
	s.replace("one")
	for _, content := range []string{"two", "three", "four"} {
		_, want := s.preallocated()
		s.replace(content)
		info, err := s.dir.Stat("f")
		if err != nil {
			t.Fatal(err)
		}
		if _, got := identity(info); got != want || want == 0 {
			t.Errorf("%q: the file is inode %d, the spare was %d", content, got, want)
		}
	}
}

// TestSpareEmpty: a change that leaves the file empty is as new as any other, and not as old as the spare.
func TestSpareEmpty(t *testing.T) {
	s := newSpareStage(t)
	s.replace("one")
	for _, content := range []string{"", "two", ""} {
		old := unix.NsecToTimespec(1)
		f, _ := s.preallocated()
		if err := unix.UtimesNanoAt(unix.AT_FDCWD, fmt.Sprintf("/proc/self/fd/%d", f.Fd()), []unix.Timespec{old, old},
			0); err != nil {
			t.Fatal(err)
		}
		before, err := s.dir.Stat("f")
		if err != nil {
			t.Fatal(err)
		}
		s.replace(content)
		if after, err := s.dir.Stat("f"); err != nil || after.ModTime().Before(before.ModTime()) {
			t.Errorf("%q: changed at %v, after a change at %v; %v", content, after.ModTime(), before.ModTime(), err)
		}
	}
}

// TestSpareOfNoUse: a change goes on without a spare that cannot be used.
func TestSpareOfNoUse(t *testing.T) {
	elsewhere := t.TempDir()
	for name, spoil := range map[string]func(s *spareStage, f *os.File){
		"closed": func(_ *spareStage, f *os.File) { f.Close() },
		"of another file system": func(s *spareStage, _ *os.File) {
			fd, err := unix.MemfdCreate("other", unix.MFD_CLOEXEC)
			if err != nil {
				s.t.Skip(err)
			}
			s.temps.spares[s.key()] = os.NewFile(uintptr(fd), "other")
		},
		"written already": func(s *spareStage, f *os.File) {
			if _, err := f.WriteString("somebody else's"); err != nil {
				s.t.Fatal(err)
			}
		},
		"named already": func(s *spareStage, f *os.File) {
			dir, err := os.Open(elsewhere)
			if err != nil {
				s.t.Fatal(err)
			}
			defer dir.Close()
			if err := giveName(f, dir, "taken"); err != nil {
				s.t.Skip(err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := newSpareStage(t)
			s.replace("one")
			f, _ := s.preallocated()
			if f == nil {
				t.Fatal("there is no spare")
			}
			spoil(s, f)
			s.replace("two")
			s.replace("three")
		})
	}
}

// TestSpareNameTaken: a name that somebody took is not given up to the spare.
func TestSpareNameTaken(t *testing.T) {
	s := newSpareStage(t)
	s.replace("one")
	handle, err := openHandle(s.dir)
	if err != nil {
		t.Fatal(err)
	}
	defer handle.Close()
	if err := s.dir.WriteFile("taken", []byte("theirs"), 0o600); err != nil {
		t.Fatal(err)
	}
	if f, err := s.temps.takeSpare(s.key(), handle, "taken"); f != nil || !os.IsExist(err) {
		t.Errorf("%v, %v", f, err)
	}
	if got, err := s.dir.ReadFile("taken"); err != nil || string(got) != "theirs" {
		t.Errorf("%q, %v", got, err)
	}
}

// TestSparesEnd: spares are closed when they grow old, and at the end, and none is made after it.
func TestSparesEnd(t *testing.T) {
	s := newSpareStage(t)
	handle, err := openHandle(s.dir)
	if err != nil {
		t.Fatal(err)
	}
	defer handle.Close()
	key := s.key()
	for name, end := range map[string]func(){"old": s.temps.dropSpares, "closed": s.temps.Close} {
		s.temps.addSpare(handle, key)
		f, _ := s.preallocated()
		end()
		if again, _ := s.preallocated(); again != nil {
			t.Errorf("%s: it is still there", name)
		}
		if f != nil {
			if _, err := f.Stat(); err == nil {
				t.Errorf("%s: it is still open", name)
			}
		}
	}
	s.temps.addSpare(handle, key)
	if f, _ := s.preallocated(); f != nil {
		t.Error("one was made after the end")
	}
}

// TestSpareLater: after a change a spare is made by itself, and no handle of the directory stays open.
func TestSpareLater(t *testing.T) {
	s := newSpareStage(t)
	putOff := func() bool {
		s.temps.mu.Lock()
		defer s.temps.mu.Unlock()
		return len(s.temps.sparing) > 0
	}
	for f, _ := s.preallocated(); f == nil; f, _ = s.preallocated() {
		if putOff() {
			continue
		}
		// Where as many as there may be are put off for the tests before, none is for this one.
		if _, err := Replace(s.dir, "f", s.opts, []byte("new")); err != nil {
			t.Fatal(err)
		}
	}
	open := func() (n int) {
		fds, _ := os.ReadDir("/proc/self/fd")
		for _, fd := range fds {
			if to, _ := os.Readlink("/proc/self/fd/" + fd.Name()); strings.TrimSuffix(to,
				" (deleted)") == s.dir.Name() {
				n++
			}
		}
		return n
	}
	for open() > 1 { // that of the stage
		runtime.Gosched()
	}
}
