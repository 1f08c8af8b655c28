// Package behalf acts for a process whose system call waits until the host has answered it. It opens the file that a
// path means to that process, in its root directory and with its /proc/self, where the kernel would resolve the path
// for the host; and it changes what the process asked for with no more rights than commands have.
package behalf

import (
	"errors"
	"os"
	"strconv"
	"strings"
	"sync"

	"golang.org/x/sys/unix"

	"github.com/toolhost/toolhost/guard/sandbox/internal/kernel"
	"github.com/toolhost/toolhost/guard/sandbox/internal/place"
)

// maxLinks is how many symbolic links the kernel follows in one path.
const maxLinks = 40

// Open opens, by O_PATH, what a path is to the caller: in its root and its working
// directory, and with its /proc/self.
func Open(c *kernel.Call, path string) (int, error) {
	return (*Root)(nil).Open(c, "cwd", path, false)
}

// A Root is the root directory of callers that cannot change it. For a nil Root the root directory that the caller
// has at that moment is used.
type Root struct {
	once sync.Once
	file *os.File // closed when it is no longer used
	fd   int
	err  error
}

// of returns the root directory of a caller, which distinguishes it from all others, and whether
// the caller must close it.
func (r *Root) of(c *kernel.Call) (fd int, own bool, err error) {
	if r == nil {
		fd, err = openOf(c, "root")
		return fd, err == nil, err
	}
	r.once.Do(func() {
		if r.fd, r.err = openOf(c, "root"); r.err == nil {
			r.file = os.NewFile(uintptr(r.fd), "root")
		}
	})
	return r.fd, false, r.err
}

// plain looks up an absolute path in one call, and reports whether the result is what the caller would find. It is
// not if the path leads through a link of /proc: then the result lies in /proc, or the look-up fails although the
// link exists.
func plain(root int, path string) (node int, err error, ok bool) {
	const flags = unix.O_PATH | unix.O_CLOEXEC
	node,
		err = unix.Openat2(root, path, &unix.OpenHow{Flags: flags, Resolve: unix.RESOLVE_IN_ROOT | unix.RESOLVE_NO_SYMLINKS})
	switch {
	case err == nil, errors.Is(err, unix.ENOENT), errors.Is(err, unix.ENOTDIR):
		return node, err, true
	case !errors.Is(err, unix.ELOOP):
		return -1, err, false
	}
	node, err = unix.Openat2(root, path,
		&unix.OpenHow{Flags: flags, Resolve: unix.RESOLVE_IN_ROOT | unix.RESOLVE_NO_MAGICLINKS})
	if err != nil {
		return -1, err, false
	}
	var fs unix.Statfs_t
	if err := unix.Fstatfs(node, &fs); err != nil || fs.Type == unix.PROC_SUPER_MAGIC {
		unix.Close(node)
		return -1, err, false
	}
	return node, nil, true
}

// Open is [Open] for a path below a directory of the caller's, which is cwd or fd and a number. With nofollow a
// symbolic link at the end of the path is an error, ELOOP.
func (r *Root) Open(c *kernel.Call, dir, path string, nofollow bool) (int, error) {
	w := &walk{call: c, root: -1, at: -1, nofollow: nofollow}
	defer w.end()
	var err error
	if w.root, w.own, err = r.of(c); err != nil {
		return -1, &UnseenError{Err: err}
	}
	if strings.HasPrefix(path, "/") && !nofollow {
		if node, err, ok := plain(w.root, path); ok {
			return node, err
		}
	}
	if w.rootID, err = place.InodeOf(w.root); err != nil {
		return -1, err
	}
	if !strings.HasPrefix(path, "/") {
		if w.at, err = openOf(c, dir); err != nil {
			return -1, &UnseenError{Err: err}
		}
	}
	if err := w.run(path); err != nil {
		return -1, err
	}
	found := w.at
	w.at = -1
	return found, nil
}

// UnseenError reports that the open files of a caller cannot be examined.
type UnseenError struct{ Err error }

func (e *UnseenError) Error() string { return e.Err.Error() }

func (e *UnseenError) Unwrap() error { return e.Err }

// openOf opens a directory of the caller's by its name in /proc: root, cwd, or fd and a number.
func openOf(c *kernel.Call, name string) (int, error) {
	return unix.Open("/proc/"+strconv.Itoa(c.Thread)+"/"+name, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
}

// walk is a lookup on its way.
type walk struct {
	call   *kernel.Call
	root   int
	own    bool // root is closed at the end
	rootID place.Inode
	at     int // where the walk is, or -1
	links  int

	nofollow bool
}

func (w *walk) end() {
	if w.own {
		unix.Close(w.root)
	}
	if w.at >= 0 {
		unix.Close(w.at)
	}
}

// move goes to name, from where the walk is.
func (w *walk) move(name string, flags int) error {
	fd, err := unix.Openat(w.at, name, unix.O_PATH|unix.O_CLOEXEC|flags, 0)
	if err != nil {
		return err
	}
	unix.Close(w.at)
	w.at = fd
	return nil
}

// toRoot goes to the caller's root.
func (w *walk) toRoot() error {
	fd, err := unix.FcntlInt(uintptr(w.root), unix.F_DUPFD_CLOEXEC, 0)
	if err != nil {
		return err
	}
	unix.Close(w.at)
	w.at = fd
	return nil
}

func (w *walk) run(path string) error {
	if path == "" {
		return unix.ENOENT
	}
	for path != "" {
		if path[0] == '/' {
			if err := w.toRoot(); err != nil {
				return err
			}
			path = strings.TrimLeft(path, "/")
			continue
		}
		name, rest, slash := strings.Cut(path, "/")
		if path = strings.TrimLeft(rest, "/"); slash && path == "" {
			path = "." // what a slash follows must be a directory
		}
		link, err := w.step(name, path == "")
		if err != nil {
			return err
		}
		if link == "" {
			continue
		}
		if path != "" {
			link += "/" + path
		}
		path = link
	}
	return nil
}

// step goes to name, the last of the path or not, or returns the text of the symbolic
// link that has the name.
func (w *walk) step(name string, last bool) (link string, err error) {
	if name == ".." {
		if here, err := place.InodeOf(w.at); err != nil || here == w.rootID {
			return "", err
		}
	}
	fd, err := unix.Openat(w.at, name, unix.O_PATH|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return "", err
	}
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		unix.Close(fd)
		return "", err
	}
	if st.Mode&unix.S_IFMT != unix.S_IFLNK {
		unix.Close(w.at)
		w.at = fd
		return "", nil
	}
	defer unix.Close(fd)
	if w.links++; w.links > maxLinks || last && w.nofollow {
		return "", unix.ELOOP
	}
	return w.follow(fd, name)
}

// follow returns the text of the link fd, called name. A link of /proc, except at its top, leads to an object that no
// text names: follow goes there itself.
func (w *walk) follow(fd int, name string) (string, error) {
	var fs unix.Statfs_t
	if err := unix.Fstatfs(fd, &fs); err != nil {
		return "", err
	}
	if fs.Type == unix.PROC_SUPER_MAGIC {
		const procRoot = 1 // the inode number of the top of every /proc
		dir, err := place.InodeOf(w.at)
		switch {
		case err != nil:
			return "", err
		case dir.Ino != procRoot:
			return "", w.move(name, 0)
		case name == "self":
			return w.number("NStgid"), nil
		case name == "thread-self":
			return w.number("NStgid") + "/task/" + w.number("NSpid"), nil
		}
	}
	text := make([]byte, unix.PathMax)
	n, err := unix.Readlinkat(fd, "", text)
	if err == nil && n == 0 {
		err = unix.ENOENT
	}
	return string(text[:max(n, 0)]), err
}

// number returns the number that the caller has in its own PID namespace.
func (w *walk) number(field string) string {
	numbers := strings.Fields(w.call.Status()[field])
	if len(numbers) == 0 {
		return "0" // the caller is gone, and there is no such process
	}
	return numbers[len(numbers)-1]
}
