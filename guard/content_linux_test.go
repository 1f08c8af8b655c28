package guard

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/toolhost/toolhost/guard/internal/realpath"

	"golang.org/x/sys/unix"
)

// TestContent: what is read and told is what Open would read and tell, and what is no regular file, or too long, is left to Open.
func TestContent(t *testing.T) {
	ws := realTemp(t)
	tree(t, ws, "empty", "short", "dir/f", "link -> "+ws+"/short")
	long := strings.Repeat("0123456789abcdef", 4096)
	put := func(name, text string) string {
		path := filepath.Join(ws, name)
		if err := os.WriteFile(path, []byte(text), 0o640); err != nil {
			t.Fatal(err)
		}
		return path
	}
	put("empty", "")
	put("long", long)
	if err := unix.Mkfifo(filepath.Join(ws, "fifo"), 0o600); err != nil {
		t.Fatal(err)
	}
	p := policy(t, ws, nil)
	for _, tt := range []struct {
		name string
		want string
		mode fs.FileMode // of what is left to Open
	}{
		{name: "empty"}, {name: "short", want: "short"}, {name: "link", want: "short"}, {name: "long", want: long},
		{name: "dir", mode: fs.ModeDir}, {name: "fifo", mode: fs.ModeNamedPipe},
	} {
		t.Run(tt.name, func(t *testing.T) {
			path := resolve(t, p, tt.name)
			room := bytes.NewBufferString("before ")
			info, ok, err := path.Content(room, int64(len(long)))
			if err != nil {
				t.Fatal(err)
			}
			if tt.mode != 0 {
				if ok || info.Mode().Type() != tt.mode || room.String() != "before " {
					t.Errorf("ok %v, %v, %q", ok, info.Mode(), room)
				}
				return
			}
			if !ok || !strings.HasSuffix(room.String(), tt.want) || room.Len() != len("before ")+len(tt.want) {
				t.Errorf("ok %v, %d bytes", ok, room.Len())
			}
			opened, err := os.Stat(path.Real())
			if err != nil {
				t.Fatal(err)
			}
			if info.Name() != opened.Name() || info.Size() != opened.Size() || info.Mode() != opened.Mode() ||
				!info.ModTime().Equal(opened.ModTime()) || info.IsDir() {
				t.Errorf("%v %v %v, want %v", info.Name(), info.Mode(), info.ModTime(), opened)
			}
			mine, _ := realpath.Identify(info)
			theirs, _ := realpath.Identify(opened)
			if mine != theirs || mine == (realpath.ID{}) {
				t.Errorf("%v, want %v", mine, theirs)
			}
		})
	}
	if _, ok, err := resolve(t, p, "long").Content(new(bytes.Buffer), int64(len(long)-1)); ok || err != nil {
		t.Errorf("a file that is too long: %v, %v", ok, err)
	}
	if _, ok, err := resolve(t, p, "none").Content(new(bytes.Buffer), 1); ok || !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("no file: %v, %v", ok, err)
	}
	if _, ok, err := (Path{}).Content(new(bytes.Buffer), 1); ok || err == nil {
		t.Error("a path that was never resolved was opened")
	}
}

// TestContentOfKernel: files whose length the kernel does not tell are read to their end.
func TestContentOfKernel(t *testing.T) {
	want, err := os.ReadFile("/proc/filesystems")
	if err != nil {
		t.Skip(err)
	}
	path := resolve(t, policy(t, realTemp(t), nil), "/proc/filesystems")
	room := new(bytes.Buffer)
	info, ok, err := path.Content(room, 1<<20)
	if err != nil || !ok || room.String() != string(want) || info.Size() != 0 {
		t.Errorf("ok %v, error %v, %d bytes, want %d", ok, err, room.Len(), len(want))
	}
}

// TestContentSwapped: no more than Open does it open what took the place of the file that was judged.
func TestContentSwapped(t *testing.T) {
	for name, swap := range map[string]func(path, secret string) error{
		"a symbolic link": func(path, secret string) error { return errors.Join(os.Remove(path), os.Symlink(secret, path)) },
		"a hard link":     func(path, secret string) error { return errors.Join(os.Remove(path), os.Link(secret, path)) },
	} {
		t.Run(name, func(t *testing.T) {
			top := realTemp(t)
			tree(t, top, "ws/f", "out/secret")
			path := resolve(t, policy(t, filepath.Join(top, "ws"), nil), "f")
			if err := swap(path.Real(), filepath.Join(top, "out/secret")); err != nil {
				t.Fatal(err)
			}
			room := new(bytes.Buffer)
			if _, ok, err := path.Content(room, 1<<20); ok || !errors.Is(err, ErrSwapped) || room.Len() > 0 {
				t.Errorf("ok %v, error %v, read %q", ok, err, room)
			}
		})
	}
}
