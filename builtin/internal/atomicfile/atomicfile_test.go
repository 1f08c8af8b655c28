package atomicfile

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
)

// room opens a fresh directory and names the place for its journal.
func room(t testing.TB) (dir *os.Root, path, journal string) {
	t.Helper()
	path = t.TempDir()
	return open(t, path), path, filepath.Join(t.TempDir(), "journal")
}

func open(t testing.TB, path string) *os.Root {
	t.Helper()
	dir, err := os.OpenRoot(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { dir.Close() })
	return dir
}

func put(t testing.TB, path, content string, mode fs.FileMode) {
	t.Helper()
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(path, mode); err != nil {
		t.Fatal(err)
	}
}

func content(t testing.TB, path string) string {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// tidy fails the test if the directory has other files than those named, or
// the journal has entries.
func tidy(t testing.TB, path, journal string, names ...string) {
	t.Helper()
	want := strings.Join(names, " ")
	if got := strings.Join(list(t, path), " "); got != want {
		t.Errorf("directory has %q, want %q", got, want)
	}
	if got := list(t, journal); len(got) > 0 {
		t.Errorf("journal has %q", got)
	}
}

func list(t testing.TB, path string) []string {
	t.Helper()
	items, err := os.ReadDir(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		t.Fatal(err)
	}
	var names []string
	for _, item := range items {
		names = append(names, item.Name())
	}
	return names
}

func TestCreate(t *testing.T) {
	for _, mustNotExist := range []bool{false, true} {
		for _, sync := range []bool{false, true} {
			dir, path, journal := room(t)
			out, err := Replace(dir, "f", Options{JournalDir: journal, MustNotExist: mustNotExist, Sync: sync, Mode: 0o740}, []byte("new"))
			if err != nil || !out.Created || out.InPlace {
				t.Fatalf("%+v, %v", out, err)
			}
			if got := content(t, filepath.Join(path, "f")); got != "new" {
				t.Errorf("content %q", got)
			}
			if info, _ := os.Stat(filepath.Join(path, "f")); info.Mode().Perm()&0o600 != 0o600 {
				t.Errorf("mode %v", info.Mode())
			}
			tidy(t, path, journal, "f")
		}
	}
}

// symlink makes a symbolic link, or skips: Windows lets few users make one, and Wine says that it did.
func symlink(t *testing.T, to, name string) {
	t.Helper()
	err := os.Symlink(to, name)
	if info, look := os.Lstat(name); err != nil || look != nil || info.Mode()&fs.ModeSymlink == 0 {
		t.Skip("no symbolic links here:", err, look)
	}
}

func TestReplaceRefuses(t *testing.T) {
	dir, path, journal := room(t)
	put(t, filepath.Join(path, "f"), "old", 0o600)
	if err := os.Mkdir(filepath.Join(path, "d"), 0o700); err != nil {
		t.Fatal(err)
	}
	symlink(t, "f", filepath.Join(path, "l"))
	mine := errors.New("mine")
	tests := []struct {
		name, base string
		opts       Options
		want       string
	}{
		{"directory", "d", Options{}, "is a directory"},
		{"symbolic link", "l", Options{}, "is a symbolic link"},
		{"path", "d/f", Options{}, "not the name of a file"},
		{"parent", "..", Options{}, "not the name of a file"},
		{"itself", ".", Options{}, "not the name of a file"},
		{"nothing", "", Options{}, "not the name of a file"},
		{"NUL", "a\x00b", Options{}, "not the name of a file"},
		{"must not exist", "f", Options{MustNotExist: true}, "exist"},
		{"not as expected", "f", Options{Expect: func(*os.File) error { return mine }}, "mine"},
		{"new, not as expected", "g", Options{Expect: func(*os.File) error { return mine }}, "mine"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			tt.opts.JournalDir = journal
			_, err := Replace(dir, tt.base, tt.opts, []byte("new"))
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("error %v, want %q in it", err, tt.want)
			}
			if got := content(t, filepath.Join(path, "f")); got != "old" {
				t.Errorf("content %q", got)
			}
			tidy(t, path, journal, "d", "f", "l")
		})
	}
}

func TestExpectReadsTheCurrentFile(t *testing.T) {
	dir, path, _ := room(t)
	put(t, filepath.Join(path, "f"), "old", 0o600)
	_, err := Replace(dir, "f", Options{Expect: func(f *os.File) error {
		got, err := io.ReadAll(f)
		if string(got) != "old" {
			t.Errorf("read %q", got)
		}
		return err
	}}, []byte("new"))
	if err != nil || content(t, filepath.Join(path, "f")) != "new" {
		t.Error(err)
	}
}

// TestReadersSeeOldOrNew reads while the file is replaced over and over.
func TestReadersSeeOldOrNew(t *testing.T) {
	dir, path, journal := room(t)
	versions := [][]byte{bytes.Repeat([]byte("a"), 100_000), bytes.Repeat([]byte("b"), 70_000)}
	put(t, filepath.Join(path, "f"), string(versions[0]), 0o600)
	var stop atomic.Bool
	var wg sync.WaitGroup
	wg.Go(func() {
		for i := 0; !stop.Load(); i++ {
			if _, err := Replace(dir, "f", Options{JournalDir: journal}, versions[i%2]); err != nil {
				t.Error(err)
				return
			}
		}
	})
	for range 300 {
		got, err := dir.ReadFile("f")
		if err != nil || !bytes.Equal(got, versions[0]) && !bytes.Equal(got, versions[1]) {
			t.Errorf("%d bytes, %v", len(got), err)
			break
		}
	}
	stop.Store(true)
	wg.Wait()
	tidy(t, path, journal, "f")
}

// TestLockManyGoroutines lets 40 goroutines each add a line, by several roots.
func TestLockManyGoroutines(t *testing.T) {
	_, path, journal := room(t)
	put(t, filepath.Join(path, "f"), "", 0o600)
	var locks Locks
	var wg sync.WaitGroup
	const n = 40
	for i := range n {
		dir := open(t, path)
		wg.Go(func() { addLine(t, &locks, dir, journal, fmt.Sprintf("line %d\n", i)) })
	}
	wg.Wait()
	got := content(t, filepath.Join(path, "f"))
	for i := range n {
		if !strings.Contains(got, fmt.Sprintf("line %d\n", i)) {
			t.Errorf("line %d is lost", i)
		}
	}
	if len(locks.dirs) > 0 {
		t.Errorf("%d locks stay in the table", len(locks.dirs))
	}
	tidy(t, path, journal, "f")
}

// addLine is what an edit does: lock, read, change, replace.
func addLine(t testing.TB, locks *Locks, dir *os.Root, journal, line string) {
	unlock, err := locks.Lock(context.Background(), dir, 0)
	if err != nil {
		t.Error(err)
		return
	}
	defer unlock()
	old, err := dir.ReadFile("f")
	if err == nil {
		_, err = Replace(dir, "f", Options{JournalDir: journal}, append(old, line...))
	}
	if err != nil {
		t.Error(err)
	}
}

func TestLockIsCancelled(t *testing.T) {
	dir, _, _ := room(t)
	var here, elsewhere Locks
	unlock, err := here.Lock(context.Background(), dir, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer unlock()
	tables := map[string]*Locks{"same table": &here}
	if locksAmongProcesses {
		tables["other table"] = &elsewhere
	}
	for name, l := range tables {
		ctx, cancel := context.WithCancel(context.Background())
		done := make(chan error)
		go func() {
			unlock, err := l.Lock(ctx, dir, 0)
			if err == nil {
				unlock()
			}
			done <- err
		}()
		cancel()
		if err := <-done; !errors.Is(err, context.Canceled) {
			t.Errorf("%s: %v", name, err)
		}
	}
	for _, d := range here.dirs {
		if d.users != 1 {
			t.Errorf("%d users of the lock, want 1", d.users)
		}
	}
	if len(elsewhere.dirs) > 0 {
		t.Error("a lock that was not had stays in the table")
	}
}

func BenchmarkReplace(b *testing.B) {
	data := bytes.Repeat([]byte("y"), 1<<20)
	run := func(name string, write func(dir *os.Root, journal string) error) {
		b.Run(name, func(b *testing.B) {
			dir, path, journal := room(b)
			put(b, filepath.Join(path, "f"), "old", 0o644)
			for b.Loop() {
				if err := write(dir, journal); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
	for _, size := range []int{4 << 10, 1 << 20} {
		run(fmt.Sprintf("write+rename/%d", size), func(dir *os.Root, _ string) error {
			if err := dir.WriteFile("t", data[:size], 0o644); err != nil {
				return err
			}
			return dir.Rename("t", "f")
		})
		run(fmt.Sprintf("Replace/%d", size), func(dir *os.Root, journal string) error {
			_, err := Replace(dir, "f", Options{JournalDir: journal}, data[:size])
			return err
		})
		run(fmt.Sprintf("Replace+sync/%d", size), func(dir *os.Root, journal string) error {
			_, err := Replace(dir, "f", Options{JournalDir: journal, Sync: true}, data[:size])
			return err
		})
	}
	var locks Locks
	run("Lock", func(dir *os.Root, _ string) error {
		unlock, err := locks.Lock(b.Context(), dir, 0)
		if err == nil {
			unlock()
		}
		return err
	})
}

func TestAdvice(t *testing.T) {
	for err, want := range map[error]string{
		syscall.EACCES: "chmod u+w", syscall.EPERM: "chattr -i", syscall.EROFS: "read-only",
		syscall.ENOSPC: "free some space", syscall.EIO: "",
	} {
		if got := Advice(&fs.PathError{Op: "open", Path: "f", Err: err}); !strings.Contains(got, want) ||
			want == "" && got != "" {
			t.Errorf("%v: %q, want %q", err, got, want)
		}
	}
}
