//go:build unix

package realpath

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// TestOpenByElement takes the way of systems that cannot refuse links in one
// step.
func TestOpenByElement(t *testing.T) {
	dir := t.TempDir()
	err := errors.Join(os.MkdirAll(dir+"/a/b", 0o755), os.WriteFile(dir+"/a/b/f", nil, 0o644),
		os.Symlink("b", dir+"/a/link"), os.Symlink("b/f", dir+"/a/flink"))
	if err == nil {
		dir, err = filepath.EvalSymlinks(dir)
	}
	if err != nil {
		t.Fatal(err)
	}
	tests := []struct {
		name string
		flag int
		want error
	}{
		{"a/b/f", unix.O_RDONLY, nil},
		{"a/b", dirFlags, nil},
		{"a/b/f", bareFlags, nil},
		{"a/link/f", unix.O_RDONLY, ErrSwapped},
		{"a/link", bareFlags, ErrSwapped},
		{"a/flink", bareFlags, ErrSwapped},
		{"a/flink", unix.O_RDONLY, ErrSwapped},
		{"a/none/f", unix.O_RDONLY, syscall.ENOENT},
		{"a/b/f/g", unix.O_RDONLY, syscall.ENOTDIR},
	}
	for _, tt := range tests {
		fd, err := openByElement(filepath.Join(dir, tt.name), tt.flag)
		if err == nil {
			unix.Close(fd)
		}
		if !is(err, tt.want) {
			t.Errorf("openByElement(%s) = %v, want %v", tt.name, err, tt.want)
		}
	}
	fd, err := openByElement("/", dirFlags)
	if err != nil {
		t.Fatal(err)
	}
	unix.Close(fd)
}

// TestSwappedByElement puts something else in a path's place after it was followed.
func TestSwappedByElement(t *testing.T) {
	for _, tt := range []struct {
		what string
		swap func(ws, out string) error
		want error
	}{
		{"a link for the file", func(ws, out string) error {
			return errors.Join(os.Remove(ws+"/sub/f"), os.Symlink(out+"/f", ws+"/sub/f"))
		}, ErrSwapped},
		{"a link for the directory", func(ws, out string) error {
			return errors.Join(os.Rename(ws+"/sub", ws+"/old"), os.Symlink(out, ws+"/sub"))
		}, ErrSwapped},
		{"a link for the directory above", func(ws, out string) error {
			return errors.Join(os.Rename(ws, ws+"-old"), os.Symlink(filepath.Dir(out), ws))
		}, ErrSwapped},
		{"another name of another file", func(ws, out string) error { // which OpenAs finds out
			return errors.Join(os.Remove(ws+"/sub/f"), os.Link(out+"/f", ws+"/sub/f"))
		}, nil},
	} {
		top := t.TempDir()
		for _, dir := range []string{"/ws/sub", "/evil/sub"} {
			if err := errors.Join(os.MkdirAll(top+dir, 0o755), os.WriteFile(top+dir+"/f", nil, 0o644)); err != nil {
				t.Fatal(err)
			}
		}
		path, found, err := Follow(top + "/ws/sub/f")
		if err == nil {
			err = tt.swap(top+"/ws", top+"/evil/sub")
		}
		if err != nil {
			t.Fatal(err)
		}
		fd, err := openByElement(path, unix.O_RDONLY)
		if err == nil {
			unix.Close(fd)
		}
		if !is(err, tt.want) {
			t.Errorf("%s: openByElement: %v, want %v", tt.what, err, tt.want)
		}
		if _, err := OpenAs(path, found.File, os.O_RDONLY); !is(err, ErrSwapped) {
			t.Errorf("%s: OpenAs: %v, want %v", tt.what, err, ErrSwapped)
		}
	}
}

func TestReadSmall(t *testing.T) {
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(os.WriteFile(dir+"/f", []byte("four"), 0o644), syscall.Mkfifo(dir+"/fifo", 0o644),
		os.Symlink("f", dir+"/link")); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		name string
		most int64
		want error // of what is not read
	}{{"f", 4, nil}, {"f", 5, nil}, {"f", 3, ErrPart}, {"link", 4, ErrSwapped}, {"none", 4, syscall.ENOENT}} {
		if raw, err := ReadSmall(filepath.Join(dir, tt.name), tt.most); !errors.Is(err, tt.want) ||
			(string(raw) == "four") != (tt.want == nil) {
			t.Errorf("%s, at most %d: %q, %v, want %v", tt.name, tt.most, raw, err, tt.want)
		}
	}
	for _, name := range []string{"", "/fifo"} { // and waits for no writer
		if _, err := ReadSmall(dir+name, 4); err == nil || errors.Is(err, ErrPart) {
			t.Errorf("%s, which is no regular file: %v", dir+name, err)
		}
	}
}

func is(err, want error) bool {
	if pe, ok := err.(*os.PathError); ok {
		err = pe.Err
	}
	return err == want
}

// TestFollowEndsInDirectory: what a name leads to is a directory too where nothing follows the link but "." or "/".
func TestFollowEndsInDirectory(t *testing.T) {
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	for i, target := range []string{".", "./", "..", "/", "//", "../.", dir, dir + "/."} {
		link := filepath.Join(dir, fmt.Sprint("link", i))
		if err := os.Symlink(target, link); err != nil {
			t.Fatal(err)
		}
		for _, name := range []string{link, link + "/.", dir + "/./" + filepath.Base(link) + "//"} {
			at, found, err := Follow(name)
			if err != nil {
				t.Errorf("%s -> %s: %v", name, target, err)
				continue
			}
			info, err := os.Lstat(at)
			if err != nil {
				t.Fatal(err)
			}
			if id, _ := Identify(info); !found.Dir || found.Regular || found.File != id {
				t.Errorf("%s -> %s leads to %s: %+v, want the directory %v", name, target, at, found, id)
			}
		}
	}
}
