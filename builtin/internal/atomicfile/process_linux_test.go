package atomicfile

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/toolhost/toolhost/integration/testenv"
)

const locksAmongProcesses = true

// The test binary runs itself for what needs another process: childEnv says
// as what, its arguments follow.
const childEnv = "ATOMICFILE_TEST_CHILD"

func TestMain(m *testing.M) {
	var err error
	switch os.Getenv(childEnv) {
	case "":
		os.Exit(m.Run())
	case "write":
		err = childWrite(os.Args[1], os.Args[2])
	case "mark":
		err = childMark(os.Args[1], os.Args[2])
	case "append":
		err = childAppend(os.Args[1], os.Args[2], os.Args[3])
	case "replace":
		err = childReplace(os.Args[1], os.Args[2])
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func child(kind string, args ...string) *exec.Cmd {
	cmd := exec.Command(os.Args[0], args...)
	cmd.Env = append(os.Environ(), childEnv+"="+kind, "GORACE=atexit_sleep_ms=0")
	cmd.Stderr = os.Stderr
	return cmd
}

const versionSize = 200_000

// versionOf returns version i of the content: long, and all of one letter.
func versionOf(i int) []byte {
	return bytes.Repeat([]byte{'a' + byte(i%26)}, versionSize+i%7*1000)
}

// childWrite replaces a file again and again until it is killed.
func childWrite(path, journal string) error {
	dir, err := os.OpenRoot(path)
	for i := 0; err == nil; i++ {
		_, err = Replace(dir, "f", Options{JournalDir: journal}, versionOf(i))
		if i == 0 {
			fmt.Println("started")
		}
	}
	return err
}

// memoryRoom is a room in memory if there is such a file system. On a disk a
// write in place spends its time waiting for the journal, and nearly all
// kills would come then.
func memoryRoom(t *testing.T) (path, journal string) {
	t.Helper()
	top, err := os.MkdirTemp("/dev/shm", "atomicfile")
	if err != nil {
		top = t.TempDir()
	}
	t.Cleanup(func() { os.RemoveAll(top) })
	path, journal = filepath.Join(top, "d"), filepath.Join(top, "j")
	if err := os.Mkdir(path, 0o700); err != nil {
		t.Fatal(err)
	}
	return path, journal
}

// childAppend adds lines to a file under the lock.
func childAppend(path, journal, name string) error {
	dir, err := os.OpenRoot(path)
	if err != nil {
		return err
	}
	var locks Locks
	for i := range 50 {
		unlock, err := locks.Lock(context.Background(), dir, 0)
		if err != nil {
			return err
		}
		old, err := dir.ReadFile("f")
		if err == nil {
			_, err = Replace(dir, "f", Options{JournalDir: journal}, fmt.Appendf(old, "%s %d\n", name, i))
		}
		unlock()
		if err != nil {
			return err
		}
	}
	return nil
}

func TestLockTwoProcesses(t *testing.T) {
	_, path, journal := room(t)
	put(t, filepath.Join(path, "f"), "", 0o600)
	a, b := child("append", path, journal, "a"), child("append", path, journal, "b")
	for _, cmd := range []*exec.Cmd{a, b} {
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(a.Wait(), b.Wait()); err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(content(t, filepath.Join(path, "f")), "\n"); n != 100 {
		t.Errorf("%d of 100 lines", n)
	}
	tidy(t, path, journal, "f")
}

// childReplace replaces a file once and says how it went.
func childReplace(path, journal string) error {
	dir, err := os.OpenRoot(path)
	if err != nil {
		return err
	}
	out, err := Replace(dir, "f", Options{JournalDir: journal}, []byte("new"))
	fmt.Printf("%+v %v", out, err)
	return nil
}

const nobody = 65534

// replaceAsNobody replaces f as another user, and returns what it said. The
// test binary is copied to where that user can run it.
func replaceAsNobody(t *testing.T, top, path, journal string) string {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("needs root, to act as another user")
	}
	exe, err := os.ReadFile(os.Args[0])
	if err == nil {
		err = os.WriteFile(filepath.Join(top, "exe"), exe, 0o755)
	}
	if err != nil {
		t.Fatal(err)
	}
	cmd := child("replace", path, journal)
	cmd.Path = filepath.Join(top, "exe")
	cmd.Dir = top
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	return string(out)
}

// sharedRoom is a room that any user may use. The folder of a test can only
// be entered by its owner.
func sharedRoom(t *testing.T) (top, path, journal string) {
	t.Helper()
	top, err := os.MkdirTemp("/tmp", "atomicfile")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(top) })
	path, journal = filepath.Join(top, "d"), filepath.Join(top, "j")
	for _, p := range []string{path, journal} {
		if err := os.Mkdir(p, 0o700); err != nil {
			t.Fatal(err)
		}
		chmod(t, p, 0o777)
	}
	chmod(t, top, 0o755)
	return top, path, journal
}

func TestAsAnotherUser(t *testing.T) {
	testenv.NeedsUsers(t)
	tests := []struct {
		name    string
		prepare func(t *testing.T, dir, file string)
		want    string // part of the answer
		result  string // content of the file
	}{
		{"may not write the file", func(*testing.T, string, string) {}, "permission denied. The file is unchanged", "old"},
		{"may write it, owner is someone else", func(t *testing.T, _, file string) { chmod(t, file, 0o666) },
			"InPlace:true Why:its owner or group (0:0) cannot be set", "new"},
		{"may write it, not its directory", func(t *testing.T, dir, file string) { chmod(t, file, 0o666); chmod(t, dir, 0o755) },
			"InPlace:true Why:its directory cannot be written", "new"},
		{"sticky directory", func(t *testing.T, dir, file string) { chmod(t, file, 0o666); chmod(t, dir, 0o777|fs.ModeSticky) },
			"InPlace:true", "new"},
		{"own file, read-only", func(t *testing.T, _, file string) { chown(t, file, nobody); chmod(t, file, 0o444) },
			"permission denied", "old"},
		{"own file", func(t *testing.T, _, file string) { chown(t, file, nobody) }, "InPlace:false", "new"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			top, path, journal := sharedRoom(t)
			file := filepath.Join(path, "f")
			put(t, file, "old", 0o644)
			tt.prepare(t, path, file)
			before := stat(t, file)
			if got := replaceAsNobody(t, top, path, journal); !strings.Contains(got, tt.want) {
				t.Errorf("got %q, want %q in it", got, tt.want)
			}
			if got := content(t, file); got != tt.result {
				t.Errorf("content %q, want %q", got, tt.result)
			}
			sameAttributes(t, before, stat(t, file))
			tidy(t, path, journal, "f")
		})
	}
}
