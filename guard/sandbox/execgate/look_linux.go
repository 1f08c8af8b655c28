package execgate

import (
	"encoding/binary"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/toolhost/toolhost/guard/sandbox/internal/behalf"
	"github.com/toolhost/toolhost/guard/sandbox/internal/kernel"
	"github.com/toolhost/toolhost/guard/sandbox/internal/place"
	"github.com/toolhost/toolhost/guard/sandbox/internal/proc"
)

const (
	// maxScripts is how many interpreters in a row the kernel loads, each named by the first line of the file before
	// it.
	maxScripts = 5
	// atEmptyPath and atNofollow are flags of execveat.
	atEmptyPath = unix.AT_EMPTY_PATH
	atNofollow  = unix.AT_SYMLINK_NOFOLLOW
)

// The reasons for refusing a process that cannot be examined.
var (
	errUnreadableProcess = errors.New("its memory cannot be read, so that the programs it starts cannot be judged; make " +
		"the program that it runs readable")
	errUnreadableFile = errors.New("the file cannot be read, so that it cannot be judged; make it readable")
	errNotExecutable  = errors.New("the file may not be executed")
	errNested         = errors.New("it tries to judge system calls of its own children (seccomp user notification), " +
		"which no program can whose own are judged; it got EBUSY")
	errLoaderOperand = errors.New("the dynamic loader is given a program without a directory; write its whole path")
)

// A look examines one attempt to start a program.
type look struct {
	exec  Exec
	call  *kernel.Call
	gate  *Gate
	root  *behalf.Root // or nil
	base  string       // the directory of a relative path, see openOf
	named string       // the path as the kernel passes it to an interpreter
	argv  []string     // the arguments that the program gets
	image place.Inode  // the file that the kernel runs
}

func (l *look) close() {
	for _, f := range l.exec.Files {
		if f.Handle != nil {
			f.Handle.Close()
		}
	}
}

// look finds out which program will be started. If the error is an errno, the kernel would return it too; another
// error says why the attempt cannot be examined.
func (l *look) look() error {
	c := l.call
	args := c.Args[:]
	l.base = "cwd"
	flags := uint64(0)
	if kernel.IsExecveat(c.Arch, uint32(c.Number)) {
		flags = args[4]
		if fd := int32(args[0]); fd != unix.AT_FDCWD {
			l.base = "fd/" + strconv.Itoa(int(fd))
		}
		args = args[1:]
	}
	l.exec.Thread = c.Thread
	l.exec.Asker, l.exec.Open = l.asker, l.openNamed
	path, whole, err := c.Text(args[0], unix.PathMax)
	if err != nil {
		return memoryError(err)
	}
	if !whole {
		return unix.ENAMETOOLONG
	}
	node, err := l.open(path, flags)
	if err != nil {
		return err
	}
	if l.exec.Dir, err = os.Readlink(l.proc("cwd")); err != nil {
		return &behalf.UnseenError{Err: err}
	}
	l.exec.Path = path
	if !filepath.IsAbs(path) {
		l.exec.Path = filepath.Join(l.exec.Dir, path)
	}
	l.named = path
	if l.base != "cwd" && !filepath.IsAbs(path) {
		l.named = strings.TrimSuffix("/dev/"+l.base+"/"+path, "/")
		l.exec.Path = l.named
		if dir, err := os.Readlink(l.proc(l.base)); err == nil && path != "" {
			l.exec.Path = filepath.Join(dir, path)
		}
	}
	if err := l.readArgs(args[1]); err != nil {
		return err
	}
	return l.follow(node)
}

// memoryError distinguishes a process that cannot be examined from one that passed a wrong address.
func memoryError(err error) error {
	if errors.Is(err, unix.EFAULT) || errors.Is(err, unix.ESRCH) {
		return err
	}
	return &behalf.UnseenError{Err: err}
}

// proc returns the path of a file in the /proc directory of the caller.
func (l *look) proc(name string) string {
	return "/proc/" + strconv.Itoa(l.call.Thread) + "/" + name
}

// open opens the named file with O_PATH.
func (l *look) open(path string, flags uint64) (int, error) {
	if path == "" && flags&atEmptyPath != 0 && l.base != "cwd" {
		node, err := unix.Open(l.proc(l.base), unix.O_PATH|unix.O_CLOEXEC, 0)
		if errors.Is(err, unix.ENOENT) {
			return -1, unix.EBADF
		}
		return node, err
	}
	node, err := l.root.Open(l.call, l.base, path, flags&atNofollow != 0)
	switch unseen := new(behalf.UnseenError); {
	case l.base == "cwd" || !errors.As(err, &unseen):
		return node, err
	case errors.Is(err, unix.ENOENT):
		return -1, unix.EBADF
	case errors.Is(err, unix.ENOTDIR):
		return -1, unix.ENOTDIR
	}
	return node, err
}

// readArgs reads the arguments, up to maxArgs and maxWords.
func (l *look) readArgs(address uint64) error {
	size := uint64(8)
	if kernel.Is32Bit(l.call.Arch, uint32(l.call.Number)) {
		size = 4
	}
	left := maxArgs
	for address != 0 {
		if len(l.exec.Args) == maxWords || left <= 0 {
			l.exec.Cut = true
			return nil
		}
		pointers, err := l.pointers(address, size)
		if err != nil {
			return err
		}
		for _, p := range pointers {
			if p == 0 {
				return nil
			}
			if len(l.exec.Args) == maxWords || left <= 0 {
				break
			}
			arg, whole, err := l.call.Text(p, left)
			if err != nil {
				return memoryError(err)
			}
			l.exec.Args = append(l.exec.Args, arg)
			left -= len(arg) + 1
			if !whole {
				l.exec.Cut = true
				return nil
			}
		}
		address += uint64(len(pointers)) * size
	}
	return nil
}

// pointers reads pointers that all lie in the same page.
func (l *look) pointers(address, size uint64) ([]uint64, error) {
	const some, page = 16, 4096
	n := max(min(some, (page-address%page)/size), 1)
	b, err := l.call.Memory(address, int(n*size))
	if err != nil {
		return nil, memoryError(err)
	}
	list := make([]uint64, n)
	for i := range list {
		if size == 4 {
			list[i] = uint64(binary.NativeEndian.Uint32(b[4*i:]))
		} else {
			list[i] = binary.NativeEndian.Uint64(b[8*i:])
		}
	}
	return list, nil
}

// follow adds a file, and the files that it leads to: interpreters and what a loader loads.
func (l *look) follow(node int) error {
	l.argv = l.exec.Args
	if len(l.argv) == 0 {
		l.argv = []string{""} // the kernel replaces an empty list by this
	}
	name := l.named
	for depth := 0; ; depth++ {
		head, err := l.add(node, 0o111)
		if err != nil {
			return err
		}
		interpreter, argument, script := scriptLine(head)
		if !script {
			return l.followLoader(head)
		}
		if depth == maxScripts {
			return unix.ELOOP
		}
		first := []string{interpreter}
		if argument != "" {
			first = append(first, argument)
		}
		l.argv = append(append(first, name), l.argv[1:]...)
		name = interpreter
		if node, err = l.root.Open(l.call, "cwd", interpreter, false); err != nil {
			return err
		}
	}
}

// add adds a file and closes its descriptor. It returns the beginning of the file. A file without any of the
// permissions in mode is no program.
func (l *look) add(node int, mode uint32) (head []byte, err error) {
	defer unix.Close(node)
	f, st, err := describe(node)
	if err != nil {
		return nil, err
	}
	if st.Mode&unix.S_IFMT != unix.S_IFREG {
		return nil, unix.EACCES
	}
	l.image = place.Inode{Dev: st.Dev, Ino: st.Ino}
	if st.Mode&mode == 0 {
		l.exec.Files = append(l.exec.Files, f)
		return nil, errNotExecutable
	}
	f.Handle, err = openNode(node)
	l.exec.Files = append(l.exec.Files, f)
	if err != nil {
		// A command cannot have made a file of another user, nor the mask of a program, so the file is not a script that
		// hides its interpreter.
		if errors.Is(err, unix.EACCES) && (st.Uid != uint32(os.Geteuid()) || st.Size == 0 && place.OnReadOnly(node)) {
			return nil, nil
		}
		return nil, errUnreadableFile
	}
	head = make([]byte, headSize)
	n, err := f.Handle.ReadAt(head, 0)
	if err != nil && err != io.EOF {
		return nil, errUnreadableFile
	}
	return head[:n], nil
}

// describe describes a file that was opened with O_PATH.
func describe(node int) (f File, st unix.Stat_t, err error) {
	if err := unix.Fstat(node, &st); err != nil {
		return f, st, err
	}
	name, err := os.Readlink("/proc/self/fd/" + strconv.Itoa(node))
	if err != nil {
		return f, st, &behalf.UnseenError{Err: err}
	}
	f = File{Name: name, Dev: st.Dev, Inode: st.Ino, Size: st.Size, Ctime: time.Unix(st.Ctim.Unix()),
		Unlinked: st.Nlink == 0}
	if f.Unlinked {
		if f.Name = strings.TrimSuffix(name, " (deleted)"); strings.HasPrefix(f.Name, "/memfd:") {
			f.Name = ""
		}
	}
	return f, st, nil
}

// openNode opens for reading a file that was opened with O_PATH.
func openNode(node int) (*os.File, error) {
	fd, err := unix.Open("/proc/self/fd/"+strconv.Itoa(node),
		unix.O_RDONLY|unix.O_NONBLOCK|unix.O_NOCTTY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	return os.NewFile(uintptr(fd), "program"), nil
}

// openNamed is [Exec].Open.
func (l *look) openNamed(name string) (f File, err error) {
	node, err := l.root.Open(l.call, "cwd", name, false)
	if err != nil {
		return f, err
	}
	defer unix.Close(node)
	f, st, err := describe(node)
	switch {
	case err != nil:
		return f, err
	case !l.call.Waits():
		return f, unix.ESRCH
	case st.Mode&unix.S_IFMT != unix.S_IFREG:
		return f, unix.EACCES
	}
	f.Handle, err = openNode(node)
	return f, err
}

// followLoader adds the file that a dynamic loader would load, if the file that was added last is one.
func (l *look) followLoader(head []byte) error {
	image, argv := l.image, l.argv
	defer func() { l.image = image }()
	for range maxScripts {
		f := l.exec.Files[len(l.exec.Files)-1]
		if linked(head) || f.Handle == nil || !isLoader(head, f.Handle) {
			return nil
		}
		var program string
		if program, argv = LoaderOperand(argv); program == "" {
			return nil
		}
		if !strings.Contains(program, "/") {
			return errLoaderOperand
		}
		node, err := l.root.Open(l.call, "cwd", program, false)
		if err != nil {
			return nil // the loader will fail in the same way
		}
		if head, err = l.add(node, 0o777); err == unix.EACCES || err == errNotExecutable {
			return nil // the loader will fail in the same way
		} else if err != nil {
			return err
		}
	}
	return unix.ELOOP
}

// asker is [Exec].Asker.
func (l *look) asker() (a Asker) {
	a.Process, _ = strconv.Atoi(l.call.Status()["Tgid"])
	shell, parent := l.gate.roots()
	pid := a.Process
	for first := true; pid > 1 && len(a.Chain) < proc.MaxChain; first = false {
		s, err := proc.StatOf(pid)
		if err != nil {
			break
		}
		if first {
			a.Started = s.Started
		}
		if pid == parent { // the parent adopts orphans
			break
		}
		a.Chain = append(a.Chain, s.Name)
		if pid == shell {
			break
		}
		pid = s.Parent
	}
	slices.Reverse(a.Chain)
	// A forked process that has not started a program yet has its parent's name.
	a.Chain = slices.Compact(a.Chain)
	if len(a.Chain) > 0 && pid == shell {
		a.Chain = a.Chain[1:]
	}
	return a
}
