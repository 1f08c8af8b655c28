package search

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// edit is one change of a file system, made by another process.
type edit struct {
	Op, Path, To, Text string
	At                 int64
	Mode               uint32
}

// runEditor makes the changes that come on its input, and answers each when
// its system call has returned.
func runEditor(in io.Reader, out io.Writer) {
	d, e := json.NewDecoder(in), json.NewEncoder(out)
	for {
		var ed edit
		if d.Decode(&ed) != nil {
			return
		}
		answer := ""
		if err := ed.apply(); err != nil {
			answer = err.Error()
		}
		if e.Encode(answer) != nil {
			return
		}
	}
}

func (ed edit) apply() error {
	open := func(flags int, do func(f *os.File) error) error { // ed.Path may be a FIFO
		f, err := os.OpenFile(ed.Path, flags|syscall.O_NONBLOCK, 0o644)
		if err != nil {
			return err
		}
		return errors.Join(do(f), f.Close())
	}
	write := func(f *os.File) error { _, err := f.WriteString(ed.Text); return err }
	switch ed.Op {
	case "write":
		return open(os.O_WRONLY|os.O_CREATE|os.O_TRUNC, write)
	case "append":
		return open(os.O_WRONLY|os.O_APPEND, write)
	case "pwrite":
		return open(os.O_WRONLY, func(f *os.File) error { _, err := f.WriteAt([]byte(ed.Text), ed.At); return err })
	case "truncate":
		return os.Truncate(ed.Path, ed.At)
	case "fallocate":
		return open(os.O_WRONLY, func(f *os.File) error { return unix.Fallocate(int(f.Fd()), 0, 0, ed.At) })
	case "copyrange":
		return open(os.O_WRONLY|os.O_CREATE, func(f *os.File) error {
			from, err := os.OpenFile(ed.To, syscall.O_NONBLOCK, 0)
			if err != nil {
				return err
			}
			defer from.Close()
			_, err = unix.CopyFileRange(int(from.Fd()), nil, int(f.Fd()), nil, 1<<16, 0)
			return err
		})
	case "save": // as editors do
		to := ed.Path
		ed.Path += "~"
		return errors.Join(open(os.O_WRONLY|os.O_CREATE|os.O_TRUNC, write), os.Rename(ed.Path, to))
	case "rename":
		return os.Rename(ed.Path, ed.To)
	case "link":
		return os.Link(ed.Path, ed.To)
	case "symlink":
		return os.Symlink(ed.To, ed.Path)
	case "remove":
		return os.RemoveAll(ed.Path)
	case "mkdir":
		return os.MkdirAll(ed.Path, 0o755)
	case "fifo":
		return syscall.Mkfifo(ed.Path, 0o644)
	case "chmod":
		return os.Chmod(ed.Path, os.FileMode(ed.Mode))
	case "utimes":
		when := time.Unix(1_600_000_000+ed.At, 0)
		return os.Chtimes(ed.Path, when, when)
	}
	return fmt.Errorf("no such operation: %s", ed.Op)
}

// openUp lets who is not root remove a tree, whatever was taken away from its directories.
func openUp(dir string) {
	_ = filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.IsDir() {
			_ = os.Chmod(path, 0o700)
		}
		return nil
	})
}

// TestUnreadableLater takes the right to list an empty root away, and gives it back: no name changes by it.
func TestUnreadableLater(t *testing.T) {
	if os.Geteuid() == 0 {
		t.Skip("root may read everything")
	}
	root := writeTree(t, nil)
	t.Cleanup(func() { openUp(root) })
	e := New(Config{GlobalIgnore: os.DevNull})
	defer e.Close()
	settle(t, e, root)
	for _, mode := range []os.FileMode{0o755, 0o444, 0o755} {
		if err := os.Chmod(root, mode); err != nil {
			t.Fatal(err)
		}
		want := 0
		if mode == 0o444 {
			want = 1
		}
		for range 2 {
			if r := mustGrep(t, e, root, GrepQuery{Pattern: "x"}); r.Unreadable != want {
				t.Errorf("mode %o: %d could not be read, want %d", mode, r.Unreadable, want)
			}
		}
	}
}
