package atomicfile

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
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
// lost either. A path below /proc stands for one that was looked up before. Who writes is another process, because the kernel tells
// ours of the opener by a signal: a thread of ours that is just opening would be interrupted by it, and have to come again.
func TestCatchUp(t *testing.T) {
	const appended, anew, opened = `printf 'more\n' >>"$0"`, `printf 'theirs\n' >"$0"`, `: >>"$0"`
	const patience = time.Minute
	for _, tt := range []struct {
		name  string
		write string // a command of sh
		gone  bool   // the new file is taken away meanwhile, and a directory has its name
		want  string
		unmet string
		err   error
	}{
		{"appended", appended, false, "new\nmore\n", "", nil},
		{"written anew", anew, false, "theirs\n", "", errOverwritten},
		{"opened", opened, false, "new\n", "", nil},
		{"appended, and cannot be carried over", appended, true, "", "appended 5 bytes at the same moment", nil},
		{"written anew, and cannot be put back", anew, true, "", "its 7 bytes are lost", nil},
		{"opened, and nothing to carry over", opened, true, "", "", nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r, path := renamedOver(t)
			if tt.gone {
				if err := errors.Join(os.Remove(path), os.Mkdir(path, 0o755)); err != nil {
					t.Fatal(err)
				}
			}
			wrote := startWriter(t, r, tt.write)
			unmet, err := r.appendTail(patience)
			if !errors.Is(err, tt.err) {
				t.Errorf("%v, want %v", err, tt.err)
			}
			if (unmet == nil) != (tt.unmet == "") || unmet != nil && !strings.Contains(unmet.Error(), tt.unmet) {
				t.Errorf("unmet %v, want %q", unmet, tt.unmet)
			}
			wrote(t)
			if !tt.gone {
				holds(t, path, tt.want)
			}
			if left, _ := filepath.Glob(filepath.Join(filepath.Dir(path), tempPrefix+"*")); len(left) > 0 {
				t.Errorf("left behind: %v", left)
			}
		})
	}
}

// TestCatchUpWithWhoStays: that what a program writes later is lost is said while it can still be.
func TestCatchUpWithWhoStays(t *testing.T) {
	r, path := renamedOver(t)
	wrote := startWriter(t, r, `exec 3>>"$0"; cat`)
	if unmet, err := r.appendTail(0); unmet == nil || !strings.Contains(unmet.Error(), "has not closed it yet") ||
		err != nil {
		t.Errorf("unmet %v, error %v", unmet, err)
	}
	wrote(t)
	holds(t, path, "new\n")
}

// renamedOver is a replacement that holds the old file while a new one has its name already.
func renamedOver(t *testing.T) (r *replacement, path string) {
	t.Helper()
	dir, path := leased(t, "old\n")
	handle, err := openHandle(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { handle.Close() })
	r = &replacement{dir: dir, handle: handle, base: "f"}
	if err := r.openCurrent(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { r.current.Close() })
	if r.attrs, err = readAttrs(r.current); err != nil {
		t.Fatal(err)
	}
	r.hold = holdFile(r.current)
	if err := os.WriteFile(path+".new", []byte("new\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if r.ours, err = pin(dir, handle, "f.new"); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(r.ours.release)
	if err := os.Rename(path+".new", path); err != nil {
		t.Fatal(err)
	}
	return r, path
}

// startWriter runs a command of sh that opens the old file, which is $0, and returns when that waits for us. Its input ends when
// wrote is called, which waits for its end.
func startWriter(t *testing.T, r *replacement, command string) (wrote func(*testing.T)) {
	t.Helper()
	cmd := exec.Command("sh", "-c", command, fmt.Sprintf("/proc/%d/fd/%d", os.Getpid(), r.current.Fd()))
	input, err := cmd.StdinPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	awaitOpener(r.current)
	return func(t *testing.T) {
		input.Close()
		if err := cmd.Wait(); err != nil {
			t.Error(err)
		}
	}
}

// awaitOpener waits until somebody waits to open a file for writing that is held.
func awaitOpener(f *os.File) {
	for !(hold{file: f}).wanted() {
		time.Sleep(time.Millisecond)
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
