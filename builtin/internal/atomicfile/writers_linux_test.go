package atomicfile

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// leased opens a directory with one file, and reports that the file system knows leases.
func leased(t *testing.T, content string) (dir *os.Root, path string) {
	t.Helper()
	top := t.TempDir()
	path = filepath.Join(top, "f")
	if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
		t.Fatal(err)
	}
	dir, err := os.OpenRoot(top)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { dir.Close() })
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	h := holdFile(f)
	defer h.release()
	if !h.holds() {
		t.Skip("the file system knows no leases")
	}
	return dir, path
}

func holds(t *testing.T, path, want string) {
	t.Helper()
	if got, err := os.ReadFile(path); err != nil || string(got) != want {
		t.Errorf("the file holds %q, %v; want %q", got, err, want)
	}
}

// TestReplaceWhileOpenForWriting: what a program goes on to write that has the file open is not lost.
func TestReplaceWhileOpenForWriting(t *testing.T) {
	dir, path := leased(t, "old\n")
	log, err := os.OpenFile(path, os.O_WRONLY|os.O_APPEND, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	out, err := Replace(dir, "f", Options{JournalDir: t.TempDir()}, []byte("new\n"))
	if err != nil || !out.InPlace {
		t.Errorf("%+v, %v", out, err)
	}
	fmt.Fprintln(log, "more")
	holds(t, path, "new\nmore\n")
	mine := errors.New("mine")
	wrote := false
	_, err = Replace(dir, "f", Options{JournalDir: t.TempDir(), Expect: func(*os.File) error {
		if wrote {
			return mine
		}
		wrote = true
		fmt.Fprintln(log, "and more")
		return nil
	}}, []byte("newer\n"))
	if !errors.Is(err, mine) {
		t.Errorf("what was written after the first look: %v", err)
	}
	holds(t, path, "new\nmore\nand more\n")
}

// TestReplaceWhileOpened: a program that opens the file while it is being replaced waits, and loses nothing.
func TestReplaceWhileOpened(t *testing.T) {
	dir, path := leased(t, "old\n")
	wrote := make(chan error)
	_, err := Replace(dir, "f", Options{JournalDir: t.TempDir(), Expect: func(current *os.File) error {
		go func() { wrote <- appendTo(path, "more\n") }()
		awaitOpener(current)
		return nil
	}}, []byte("new\n"))
	if err == nil || !strings.Contains(err.Error(), "Read it again") {
		t.Errorf("%v", err)
	}
	if err := <-wrote; err != nil {
		t.Error(err)
	}
	holds(t, path, "old\nmore\n")
}

// TestCatchUp: what is written by a program that opened the old file in the moment in which it was renamed over is not
// lost either. A path below /proc stands for one that was looked up before.
func TestCatchUp(t *testing.T) {
	for _, tt := range []struct {
		name  string
		write func(path string) error
		want  string
		err   error
	}{
		{"appended", func(path string) error { return appendTo(path, "more\n") }, "new\nmore\n", nil},
		{"written anew", func(path string) error { return os.WriteFile(path, []byte("theirs\n"), 0) }, "theirs\n", errOverwritten},
		{"opened", func(path string) error { return appendTo(path, "") }, "new\n", nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			dir, path := leased(t, "old\n")
			handle, err := openHandle(dir)
			if err != nil {
				t.Fatal(err)
			}
			defer handle.Close()
			r := &replacement{dir: dir, handle: handle, base: "f"}
			if err := r.openCurrent(); err != nil {
				t.Fatal(err)
			}
			defer r.current.Close()
			if r.attrs, err = readAttrs(r.current); err != nil {
				t.Fatal(err)
			}
			r.hold = holdFile(r.current)
			if err := os.WriteFile(path+".new", []byte("new\n"), 0o644); err != nil {
				t.Fatal(err)
			}
			if err := os.Rename(path+".new", path); err != nil {
				t.Fatal(err)
			}
			wrote := make(chan error)
			go func() { wrote <- tt.write(fmt.Sprintf("/proc/self/fd/%d", r.current.Fd())) }()
			awaitOpener(r.current)
			if err := r.catchUp(); !errors.Is(err, tt.err) {
				t.Errorf("%v, want %v", err, tt.err)
			}
			if err := <-wrote; err != nil {
				t.Error(err)
			}
			holds(t, path, tt.want)
		})
	}
}

// awaitOpener waits until somebody waits to open a file for writing that is held.
func awaitOpener(f *os.File) {
	for !(hold{file: f}).wanted() {
	}
}

func appendTo(path, text string) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_APPEND, 0)
	if err != nil {
		return err
	}
	_, err = f.WriteString(text)
	return errors.Join(err, f.Close())
}
