//go:build slow && linux

package fault

import (
	"bytes"
	"context"
	little "encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/toolhost/toolhost/integration/client"
	"github.com/toolhost/toolhost/integration/host"
)

// An injector stands between a host and its kernel: the system calls by which files are changed wait for its word (seccomp(2), user
// notification). So every moment of a change can be met, one after the other, with an error of any kind, a kill, or the client's end.
type injector struct {
	fd int

	mu       sync.Mutex
	below    []string // only paths below these are met
	kinds    []uintptr
	at, seen int  // the station that is met, 0 for none, and how many were passed
	sticky   bool // all later ones are met too
	hits     int
	meet     func() syscall.Errno // what happens there; 0 lets the call proceed
}

// injected starts a host with an injector before it.
func (g *ground) injected(flags ...string) (*session, *injector) {
	g.T.Helper()
	h := &host.Host{Stderr: &host.LockedBuffer{}}
	h.Cmd = exec.Command(host.Binary, append([]string{"stdio", "--root", g.WS, "--state-dir", g.State}, flags...)...)
	h.Cmd.Dir, h.Cmd.Env, h.Cmd.Stderr = g.WS, host.CleanEnv(g.Home), h.Stderr
	in, started := g.inject(h.Cmd)
	ctx, cancel := context.WithTimeout(context.Background(), 4*host.Patience)
	g.T.Cleanup(cancel)
	var err error
	h.Conn, err = client.Stdio(ctx, client.Modern, h.Cmd)
	host.Must(g.T, err)
	if err := started(); err != nil {
		_ = h.Close()
		g.T.Skipf("system calls cannot be intercepted here: %v %s", err, h.Stderr)
	}
	return &session{&host.Session{Host: h, T: g.T, Ctx: ctx}}, in
}

// inject puts an injector before a command of the binary, which decides from the moment on when started is called. Call it once the command
// has started: its system calls wait for that.
func (g *ground) inject(cmd *exec.Cmd) (in *injector, started func() error) {
	g.T.Helper()
	self, err := os.Executable()
	host.Must(g.T, err)
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC, 0)
	host.Must(g.T, err)
	theirs := os.NewFile(uintptr(pair[1]), "listener")
	cmd.Path, cmd.Args, cmd.ExtraFiles = self, append([]string{self}, cmd.Args...), []*os.File{theirs}
	// A signal that preempts a thread makes its system call begin again, and it would be counted twice.
	cmd.Env = append(cmd.Env, injectVariable+"=1", "GODEBUG=asyncpreemptoff=1")
	in = &injector{}
	received := make(chan error, 1)
	go func() { received <- in.receive(pair[0]) }()
	return in, func() error {
		theirs.Close()
		if err := <-received; err != nil {
			return err
		}
		served := make(chan struct{})
		go func() { in.serve(); close(served) }()
		g.T.Cleanup(func() {
			_ = cmd.Process.Kill()
			<-served
		})
		return nil
	}
}

// receive takes the listener from a socket, which it closes.
func (in *injector) receive(socket int) error {
	defer unix.Close(socket)
	data, rights := make([]byte, 1), make([]byte, unix.CmsgSpace(4))
	_, n, _, _, err := unix.Recvmsg(socket, data, rights, unix.MSG_CMSG_CLOEXEC)
	if err != nil {
		return err
	}
	messages, err := unix.ParseSocketControlMessage(rights[:n])
	if err != nil || len(messages) != 1 {
		return fmt.Errorf("no listener came: %w", errors.Join(err, fs.ErrNotExist))
	}
	fds, err := unix.ParseUnixRights(&messages[0])
	if err != nil {
		return err
	}
	in.fd = fds[0]
	return nil
}

// A notification is struct seccomp_notif, and a verdict struct seccomp_notif_resp, of linux/seccomp.h.
type (
	notification struct {
		id         uint64
		pid, flags uint32
		nr, arch   uint32
		ip         uint64
		args       [6]uint64
	}
	verdict struct {
		id           uint64
		value        int64
		errno, flags int32
	}
)

// Requests of linux/seccomp.h.
const (
	notifyReceive = 0xc0502100
	notifySend    = 0xc0182101
)

// serve decides every call until no one is left to make one.
func (in *injector) serve() {
	defer unix.Close(in.fd)
	for {
		poll := []unix.PollFd{{Fd: int32(in.fd), Events: unix.POLLIN}}
		if _, err := unix.Poll(poll, -1); err != nil && !errors.Is(err, unix.EINTR) {
			return
		}
		if poll[0].Revents&unix.POLLIN == 0 {
			if poll[0].Revents != 0 {
				return
			}
			continue
		}
		var n notification
		if _, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(in.fd), notifyReceive,
			uintptr(unsafe.Pointer(&n))); errno != 0 {
			continue // who asked has ended, or was interrupted
		}
		v := verdict{id: n.id}
		if errno := in.decide(&n); errno != 0 {
			v.errno = -int32(errno)
		} else {
			v.flags = unix.SECCOMP_USER_NOTIF_FLAG_CONTINUE
		}
		_, _, _ = unix.Syscall(unix.SYS_IOCTL, uintptr(in.fd), notifySend, uintptr(unsafe.Pointer(&v)))
	}
}

func (in *injector) decide(n *notification) syscall.Errno {
	in.mu.Lock()
	defer in.mu.Unlock()
	if in.at == 0 || !in.met(n) {
		return 0
	}
	if in.seen++; in.seen == in.at || in.sticky && in.seen > in.at {
		in.hits++
		return in.meet()
	}
	return 0
}

// met tells whether a call is one of those that are met.
func (in *injector) met(n *notification) bool {
	kind := false
	for _, nr := range in.kinds {
		kind = kind || uint32(nr) == n.nr
	}
	if !kind {
		return false
	}
	path := ""
	switch uintptr(n.nr) {
	case unix.SYS_INOTIFY_INIT1:
		return true
	case unix.SYS_INOTIFY_ADD_WATCH:
		path = text(n.pid, n.args[1])
		if rest, ok := strings.CutPrefix(path, "/proc/self/fd/"); ok {
			fd, _ := strconv.ParseUint(rest, 10, 32)
			path = descriptor(n.pid, fd)
		}
	case unix.SYS_OPENAT, unix.SYS_OPENAT2:
		flags := n.args[2]
		if uintptr(n.nr) == unix.SYS_OPENAT2 {
			flags = little.LittleEndian.Uint64(memoryOf(n.pid, n.args[2], 8))
		}
		if flags&unix.O_CREAT == 0 {
			return false
		}
		path = at(n.pid, n.args[0], n.args[1])
	case unix.SYS_RENAMEAT, unix.SYS_RENAMEAT2, unix.SYS_LINKAT:
		path = at(n.pid, n.args[2], n.args[3])
	case unix.SYS_SYMLINKAT:
		path = at(n.pid, n.args[1], n.args[2])
	case unix.SYS_MKDIRAT, unix.SYS_UNLINKAT:
		path = at(n.pid, n.args[0], n.args[1])
	case unix.SYS_COPY_FILE_RANGE:
		path = descriptor(n.pid, n.args[2])
	default:
		path = descriptor(n.pid, n.args[0])
	}
	for _, dir := range in.below {
		if path == dir || strings.HasPrefix(path, dir+"/") {
			return true
		}
	}
	return false
}

// descriptor is the path of an open file of a process.
func descriptor(pid uint32, fd uint64) string {
	path, _ := os.Readlink(fmt.Sprintf("/proc/%d/fd/%d", pid, int32(fd)))
	return path
}

// at is the path of an argument of a process, relative to a directory's descriptor.
func at(pid uint32, dir, name uint64) string {
	path := text(pid, name)
	if filepath.IsAbs(path) {
		return path
	}
	if int32(dir) == unix.AT_FDCWD {
		cwd, _ := os.Readlink(fmt.Sprintf("/proc/%d/cwd", pid))
		return filepath.Join(cwd, path)
	}
	return filepath.Join(descriptor(pid, dir), path)
}

// text is a string in the memory of a process.
func text(pid uint32, address uint64) string {
	raw, _, _ := bytes.Cut(memoryOf(pid, address, 4096), []byte{0})
	return string(raw)
}

// memoryOf reads memory of a process that waits for us. What cannot be read is zero.
func memoryOf(pid uint32, address uint64, size int) []byte {
	raw := make([]byte, size)
	f, err := os.Open(fmt.Sprintf("/proc/%d/mem", pid))
	if err == nil {
		_, _ = f.ReadAt(raw, int64(address)) // less, at the end of a mapping
		f.Close()
	}
	return raw
}

// arm makes something happen at a station of the calls of some kinds on files below some directories, and if it is sticky at all later ones.
func (in *injector) arm(station int, sticky bool, kinds []uintptr, meet func() syscall.Errno, below ...string) {
	in.mu.Lock()
	defer in.mu.Unlock()
	in.at, in.seen, in.hits, in.kinds, in.meet, in.below, in.sticky = station, 0, 0, kinds, meet, below, sticky
}

// disarm lets all calls pass, and tells how often something happened.
func (in *injector) disarm() int {
	in.mu.Lock()
	defer in.mu.Unlock()
	in.at = 0
	return in.hits
}

// failing is an error at a station.
func failing(errno syscall.Errno) func() syscall.Errno {
	return func() syscall.Errno { return errno }
}
