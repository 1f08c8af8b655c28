package host

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// A foldFS is a file system (linux/fuse.h) that shows a directory and takes upper and lower case in names as equal, as
// those of macOS and Windows do, and ext4 with casefold. A process of its own serves it: one that is just starting a
// program in a directory of its own file system would wait for itself.
type foldFS struct {
	dev   *os.File
	paths map[uint64]string // of the nodes that the kernel knows
	nodes map[string]uint64
	open  map[uint64]*os.File
	next  uint64
}

// foldVariable has a process of the tests serve the file system on the directory that it names.
const foldVariable = "TOOLHOST_TEST_FOLD"

// FoldCase mounts a file system that folds case on a directory, until the test ends.
func FoldCase(t *testing.T, dir string) {
	t.Helper()
	self, err := os.Executable()
	Must(t, err)
	below := TempDir(t)
	cmd := exec.Command(self, below)
	cmd.Env = append(os.Environ(), foldVariable+"="+dir)
	out, err := cmd.StdoutPipe()
	Must(t, err)
	Must(t, cmd.Start())
	reap(dir)
	t.Cleanup(func() {
		_ = unix.Unmount(dir, unix.MNT_DETACH)
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	if said, err := bufio.NewReader(out).ReadString('\n'); err != nil || said != "mounted\n" {
		t.Skipf("no file system can be mounted here: %s %v", said, err)
	}
}

func init() {
	dir := os.Getenv(foldVariable)
	if dir == "" {
		return
	}
	fd, err := unix.Open("/dev/fuse", unix.O_RDWR|unix.O_CLOEXEC, 0)
	if err == nil {
		options := fmt.Sprintf("fd=%d,rootmode=40755,user_id=0,group_id=0,allow_other,default_permissions", fd)
		err = unix.Mount("fold", dir, "fuse", 0, options)
	}
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	fmt.Println("mounted")
	below := os.Args[1]
	f := &foldFS{dev: os.NewFile(uintptr(fd), "fuse"), paths: map[uint64]string{1: below}, nodes: map[string]uint64{below: 1},
		open: map[uint64]*os.File{}, next: 1}
	f.serve()
	os.Exit(0)
}

var le = binary.LittleEndian

// Requests.
const (
	fuseLookup, fuseForget, fuseGetattr, fuseSetattr, fuseReadlink, fuseSymlink = 1, 2, 3, 4, 5, 6
	fuseMknod, fuseMkdir, fuseUnlink, fuseRmdir, fuseRename, fuseLink           = 8, 9, 10, 11, 12, 13
	fuseOpen, fuseRead, fuseWrite, fuseStatfs, fuseRelease, fuseFsync           = 14, 15, 16, 17, 18, 20
	fuseFlush, fuseInit, fuseOpendir, fuseReaddir, fuseReleasedir               = 25, 26, 27, 28, 29
	fuseCreate, fuseForgets, fuseRename2                                        = 35, 42, 45
)

func (f *foldFS) serve() {
	defer f.dev.Close()
	buf := make([]byte, 1<<18)
	for {
		n, err := f.dev.Read(buf)
		if errors.Is(err, unix.EINTR) || errors.Is(err, unix.EAGAIN) || errors.Is(err, unix.ENOENT) {
			continue
		}
		if err != nil {
			return
		}
		op, unique, node := le.Uint32(buf[4:]), buf[8:16], le.Uint64(buf[16:])
		if op == fuseForget || op == fuseForgets {
			continue
		}
		out, err := f.do(op, node, buf[40:n])
		var failed unix.Errno
		if err != nil && !errors.As(err, &failed) {
			failed = unix.EIO
		}
		if failed != 0 {
			out = nil
		}
		answer := le.AppendUint32(le.AppendUint32(nil, uint32(16+len(out))), uint32(-int32(failed)))
		_, _ = f.dev.Write(append(append(answer, unique...), out...)) // an error: the request was interrupted
	}
}

// do serves a request about a node.
func (f *foldFS) do(op uint32, node uint64, in []byte) (out []byte, err error) {
	path, names := f.paths[node], func(from int) []string { return strings.Split(strings.TrimRight(string(in[from:]), "\x00"), "\x00") }
	at := func(from int) string { return fold(path, names(from)[0]) }
	switch op {
	case fuseInit:
		out = make([]byte, 64)
		le.PutUint32(out, 7)
		le.PutUint32(out[4:], 31)
		le.PutUint32(out[20:], 1<<17) // the longest write
		return out, nil
	case fuseLookup:
		return f.entry(at(0))
	case fuseGetattr:
		return attrOf(path)
	case fuseSetattr:
		return f.setattr(path, in)
	case fuseReadlink:
		to, err := os.Readlink(path)
		return []byte(to), err
	case fuseSymlink:
		all := names(0)
		return f.made(fold(path, all[0]), func(p string) error { return unix.Symlink(all[1], p) })
	case fuseMknod:
		return f.made(at(16), func(p string) error { return unix.Mknod(p, le.Uint32(in), int(le.Uint32(in[4:]))) })
	case fuseMkdir:
		return f.made(at(8), func(p string) error { return unix.Mkdir(p, le.Uint32(in)) })
	case fuseLink:
		return f.made(at(8), func(p string) error { return unix.Link(f.paths[le.Uint64(in)], p) })
	case fuseUnlink:
		return nil, f.gone(at(0), unix.Unlink)
	case fuseRmdir:
		return nil, f.gone(at(0), unix.Rmdir)
	case fuseRename:
		return nil, f.rename(at(8), f.paths[le.Uint64(in)], names(8)[1], 0)
	case fuseRename2:
		return nil, f.rename(at(16), f.paths[le.Uint64(in)], names(16)[1], uint(le.Uint32(in[8:])))
	case fuseOpen:
		return f.opened(path, int(le.Uint32(in)), 0)
	case fuseCreate:
		p := at(16)
		handle, err := f.opened(p, int(le.Uint32(in))|unix.O_CREAT, le.Uint32(in[4:]))
		if err == nil {
			out, err = f.entry(p)
		}
		return append(out, handle...), err
	case fuseOpendir:
		return make([]byte, 16), nil
	case fuseReaddir:
		return f.list(path, le.Uint64(in[8:]), int(le.Uint32(in[16:])))
	case fuseRead:
		out = make([]byte, le.Uint32(in[16:]))
		n, err := unix.Pread(int(f.open[le.Uint64(in)].Fd()), out, int64(le.Uint64(in[8:])))
		return out[:max(0, n)], err
	case fuseWrite:
		size := le.Uint32(in[16:])
		n, err := unix.Pwrite(int(f.open[le.Uint64(in)].Fd()), in[40:40+size], int64(le.Uint64(in[8:])))
		return le.AppendUint64(nil, uint64(max(0, n))), err
	case fuseRelease:
		_ = f.open[le.Uint64(in)].Close()
		delete(f.open, le.Uint64(in))
		return nil, nil
	case fuseStatfs:
		out = make([]byte, 80)
		for i, v := range []uint64{1 << 24, 1 << 23, 1 << 23, 1 << 20, 1 << 20} {
			le.PutUint64(out[8*i:], v)
		}
		le.PutUint32(out[40:], 4096)
		le.PutUint32(out[44:], 255)
		le.PutUint32(out[48:], 4096)
		return out, nil
	case fuseFlush, fuseFsync, fuseReleasedir:
		return nil, nil
	}
	return nil, unix.ENOSYS
}

// fold returns the path of a name in a directory as it stands there, or as given if there is none.
func fold(dir, name string) string {
	path := filepath.Join(dir, name)
	if _, err := os.Lstat(path); err == nil {
		return path
	}
	entries, _ := os.ReadDir(dir)
	for _, e := range entries {
		if strings.EqualFold(e.Name(), name) {
			return filepath.Join(dir, e.Name())
		}
	}
	return path
}

// entry is a name with what stands there.
func (f *foldFS) entry(path string) ([]byte, error) {
	attr, err := attrOf(path)
	if err != nil {
		return nil, err
	}
	if f.nodes[path] == 0 {
		f.next++
		f.nodes[path], f.paths[f.next] = f.next, path
	}
	out := append(le.AppendUint64(nil, f.nodes[path]), make([]byte, 32)...) // nothing is cached
	return append(out, attr[16:]...), nil
}

func (f *foldFS) made(path string, do func(string) error) ([]byte, error) {
	if err := do(path); err != nil {
		return nil, err
	}
	return f.entry(path)
}

func (f *foldFS) gone(path string, do func(string) error) error {
	err := do(path)
	if err == nil {
		delete(f.nodes, path)
	}
	return err
}

func (f *foldFS) rename(from, dir, name string, flags uint) error {
	to := fold(dir, name)
	if to == from { // in another case
		to = filepath.Join(dir, name)
	}
	if err := unix.Renameat2(unix.AT_FDCWD, from, unix.AT_FDCWD, to, flags); err != nil {
		return err
	}
	moved := map[uint64]string{}
	for id, path := range f.paths {
		switch {
		case path == from || strings.HasPrefix(path, from+"/"):
			moved[id] = to + path[len(from):]
		case flags&unix.RENAME_EXCHANGE != 0 && (path == to || strings.HasPrefix(path, to+"/")):
			moved[id] = from + path[len(to):]
		}
		if _, ok := moved[id]; ok && f.nodes[path] == id {
			delete(f.nodes, path)
		}
	}
	for id, path := range moved {
		f.paths[id], f.nodes[path] = path, id
	}
	return nil
}

func (f *foldFS) opened(path string, flags int, mode uint32) ([]byte, error) {
	fd, err := unix.Open(path, flags&^(unix.O_APPEND|unix.O_NOFOLLOW)|unix.O_CLOEXEC, mode)
	if err != nil {
		return nil, err
	}
	f.next++
	f.open[f.next] = os.NewFile(uintptr(fd), path)
	return le.AppendUint64(le.AppendUint64(nil, f.next), 0), nil
}

func (f *foldFS) list(path string, from uint64, room int) (out []byte, err error) {
	entries, err := os.ReadDir(path)
	for i := int(from); i < len(entries) && err == nil; i++ {
		name, kind := entries[i].Name(), map[fs.FileMode]uint32{0: unix.DT_REG, fs.ModeDir: unix.DT_DIR, fs.ModeSymlink: unix.DT_LNK}
		next := le.AppendUint64(le.AppendUint64(nil, uint64(i+1)), uint64(i+1))
		next = le.AppendUint32(le.AppendUint32(next, uint32(len(name))), kind[entries[i].Type()])
		next = append(next, name...)
		next = append(next, make([]byte, -len(next)&7)...)
		if len(out)+len(next) > room {
			break
		}
		out = append(out, next...)
	}
	return out, err
}

// attrOf is what a request for attributes is answered.
func attrOf(path string) ([]byte, error) {
	var st unix.Stat_t
	if err := unix.Lstat(path, &st); err != nil {
		return nil, err
	}
	out := make([]byte, 16)
	for _, v := range []uint64{st.Ino, uint64(st.Size), uint64(st.Blocks), uint64(st.Atim.Sec), uint64(st.Mtim.Sec), uint64(st.Ctim.Sec)} {
		out = le.AppendUint64(out, v)
	}
	for _, v := range []uint32{uint32(st.Atim.Nsec), uint32(st.Mtim.Nsec), uint32(st.Ctim.Nsec), st.Mode, uint32(st.Nlink), st.Uid, st.Gid,
		uint32(st.Rdev), 4096, 0} {
		out = le.AppendUint32(out, v)
	}
	return out, nil
}

func (f *foldFS) setattr(path string, in []byte) ([]byte, error) {
	valid := le.Uint32(in)
	var err error
	if valid&1 != 0 {
		err = errors.Join(err, unix.Chmod(path, le.Uint32(in[68:])&0o7777))
	}
	if id := func(bit uint32, at int) int {
		if valid&bit == 0 {
			return -1
		}
		return int(le.Uint32(in[at:]))
	}; valid&6 != 0 {
		err = errors.Join(err, unix.Lchown(path, id(2, 76), id(4, 80)))
	}
	if valid&8 != 0 {
		err = errors.Join(err, unix.Truncate(path, int64(le.Uint64(in[16:]))))
	}
	if valid&48 != 0 {
		times := [2]unix.Timespec{{Nsec: unix.UTIME_OMIT}, {Nsec: unix.UTIME_OMIT}}
		for i := range times {
			switch bit := uint32(16 << i); {
			case valid&(bit<<3) != 0:
				times[i] = unix.NsecToTimespec(time.Now().UnixNano())
			case valid&bit != 0:
				times[i] = unix.Timespec{Sec: int64(le.Uint64(in[32+8*i:])), Nsec: int64(le.Uint32(in[56+4*i:]))}
			}
		}
		err = errors.Join(err, unix.UtimesNanoAt(unix.AT_FDCWD, path, times[:], unix.AT_SYMLINK_NOFOLLOW))
	}
	if err != nil {
		return nil, err
	}
	return attrOf(path)
}
