package kernel

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// idValid is SECCOMP_IOCTL_NOTIF_ID_VALID, absent from the library.
const idValid = 0x40082102

// notification and response are struct seccomp_notif and seccomp_notif_resp.
type (
	notification struct {
		id         uint64
		pid, flags uint32
		nr         int32
		arch       uint32
		ip         uint64
		args       [6]uint64
	}
	response struct {
		id    uint64
		val   int64
		err   int32
		flags uint32
	}
)

// A Listener receives the calls of all processes under one filter. The process that
// reads it must not be one that starts those processes: a Go program that forks while it
// answers its child would wait for itself.
type Listener struct {
	file *os.File
	raw  syscall.RawConn
}

// A Judge answers one call, which fails with the error, or returns 0 where that is 0.
// The kernel does not run the call, whose arguments another thread could change after
// they were judged: the judge does the work of the call itself, or calls
// [Call.Continue], after which its result has no effect.
type Judge func(*Call) unix.Errno

// NewListener takes over fd, which [InstallWithListener] returned.
func NewListener(fd int) (*Listener, error) {
	if err := unix.SetNonblock(fd, true); err != nil { // or the runtime does not poll it
		unix.Close(fd)
		return nil, os.NewSyscallError("fcntl", err)
	}
	l := &Listener{file: os.NewFile(uintptr(fd), "listener")}
	var err error
	if l.raw, err = l.file.SyscallConn(); err != nil {
		l.file.Close()
		return nil, err
	}
	return l, nil
}

// Serve answers calls, each in a goroutine of its own, until the last process under the
// filter has ended or Close is called, and then closes the listener. Calls by a number
// without a judge fail with EPERM.
func (l *Listener) Serve(judges map[int32]Judge) {
	defer l.Close()
	for {
		var n notification
		if err := l.next(&n); err != nil {
			return
		}
		c := &Call{Thread: int(n.pid), Arch: n.arch, Number: n.nr, Args: n.args, id: n.id, listener: l}
		judge := judges[n.nr]
		if judge == nil {
			judge = func(*Call) unix.Errno { return unix.EPERM }
		}
		go func() {
			if errno := judge(c); !c.answered {
				c.answer(response{err: -int32(errno)})
			}
		}()
	}
}

// Close ends Serve. Calls that have no answer yet, and all later ones, fail with ENOSYS.
func (l *Listener) Close() error { return l.file.Close() }

// next waits for a call. SECCOMP_IOCTL_NOTIF_RECV would block a thread while there is none.
func (l *Listener) next(n *notification) error {
	var failure error
	err := l.raw.Read(func(fd uintptr) bool {
		for {
			p := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}
			_, err := unix.Poll(p, 0)
			switch {
			case errors.Is(err, unix.EINTR):
				continue
			case err != nil:
				failure = err
				return true
			case p[0].Revents&unix.POLLIN == 0:
				if p[0].Revents&unix.POLLHUP != 0 {
					failure = io.EOF
				}
				return failure != nil
			}
			*n = notification{} // the kernel wants zeros
			failure = control(fd, unix.SECCOMP_IOCTL_NOTIF_RECV, unsafe.Pointer(n))
			if !errors.Is(failure, unix.ENOENT) && !errors.Is(failure, unix.EINTR) {
				return true
			}
			failure = nil // the caller has ended, or was interrupted
		}
	})
	return errors.Join(err, failure)
}

func control(fd uintptr, request uintptr, arg unsafe.Pointer) error {
	if _, _, errno := unix.Syscall(unix.SYS_IOCTL, fd, request, uintptr(arg)); errno != 0 {
		return errno
	}
	return nil
}

// A Call is a system call whose caller waits for the answer.
type Call struct {
	// Thread is the number of the calling thread, as this process sees it.
	Thread int
	// Arch is the architecture whose call it is (AUDIT_ARCH_X86_64), and Number the call's.
	Arch   uint32
	Number int32
	// Args are the arguments in registers.
	Args [6]uint64

	id       uint64
	listener *Listener
	answered bool
}

// answer ends the call. It is no error if the caller does not wait any more.
func (c *Call) answer(r response) {
	r.id, c.answered = c.id, true
	c.listener.raw.Control(func(fd uintptr) { _ = control(fd, unix.SECCOMP_IOCTL_NOTIF_SEND, unsafe.Pointer(&r)) })
}

// Continue has the kernel run the call, with the arguments that the caller has now.
func (c *Call) Continue() { c.answer(response{flags: unix.SECCOMP_USER_NOTIF_FLAG_CONTINUE}) }

// Waits reports whether the caller still waits. If it does not, Thread may be the number of
// another thread: what was read through it is valid only if Waits is true afterwards.
func (c *Call) Waits() bool {
	err := error(unix.EBADF)
	c.listener.raw.Control(func(fd uintptr) { err = control(fd, idValid, unsafe.Pointer(&c.id)) })
	return err == nil
}

// Memory copies n bytes of the caller's memory. It fails with EFAULT where the caller has
// less, and with EPERM if the caller's memory cannot be read.
func (c *Call) Memory(address uint64, n int) ([]byte, error) {
	buf := make([]byte, n)
	if n == 0 {
		return buf, nil
	}
	local := []unix.Iovec{{Base: &buf[0], Len: uint64(n)}}
	got, err := unix.ProcessVMReadv(c.Thread, local, []unix.RemoteIovec{{Base: uintptr(address), Len: n}}, 0)
	if err == nil && got < n {
		err = unix.EFAULT
	}
	return buf, err
}

// Text copies a string of the caller's memory up to its zero byte. If it is longer than
// limit bytes, whole is false.
func (c *Call) Text(address uint64, limit int) (text string, whole bool, err error) {
	const first, page = 256, 4096 // the second is a divisor of every page size
	var buf []byte
	for chunk := first; len(buf) < limit; chunk = page {
		at := address + uint64(len(buf))
		part, err := c.Memory(at, min(chunk, page-int(at%page), limit-len(buf)))
		if err != nil {
			return "", false, err
		}
		if end := bytes.IndexByte(part, 0); end >= 0 {
			return string(append(buf, part[:end]...)), true, nil
		}
		buf = append(buf, part...)
	}
	return string(buf), false, nil
}

// Descriptor returns a copy of a descriptor of the caller, for the same open file.
func (c *Call) Descriptor(fd int) (int, error) {
	pidfd, err := unix.PidfdOpen(c.Thread, pidfdThread)
	if errors.Is(err, unix.EINVAL) { // before Linux 6.9 there are only those of processes
		status := c.Status()
		process, convErr := strconv.Atoi(status["Tgid"])
		if convErr != nil {
			return -1, unix.ESRCH
		}
		pidfd, err = unix.PidfdOpen(process, 0)
	}
	if err != nil {
		return -1, err
	}
	defer unix.Close(pidfd)
	return unix.PidfdGetfd(pidfd, fd, 0)
}

// pidfdThread is PIDFD_THREAD, absent from the library.
const pidfdThread = unix.O_EXCL

// Status returns the fields of the caller's /proc/PID/status. It is empty once the caller is gone.
func (c *Call) Status() map[string]string {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", c.Thread))
	if err != nil {
		return nil
	}
	fields := make(map[string]string)
	for line := range strings.Lines(string(text)) {
		if name, value, ok := strings.Cut(line, ":"); ok {
			fields[name] = strings.TrimSpace(value)
		}
	}
	return fields
}

// Interrupted reports whether a signal is pending that the caller's program handles. The
// kernel delivers it when the call is answered; with [Restart] the call is then made
// again, or fails with EINTR, as the program has requested.
func (c *Call) Interrupted() bool {
	status := c.Status()
	bits := func(name string) uint64 {
		n, _ := strconv.ParseUint(status[name], 16, 64)
		return n
	}
	pending := bits("SigPnd")
	if status["Tgid"] == status["Pid"] { // a signal to the process may be for any of its other threads
		pending |= bits("ShdPnd")
	}
	return pending&bits("SigCgt")&^bits("SigBlk") != 0
}

// Restart is ERESTARTSYS of the kernel, the answer to a call that was Interrupted.
const Restart = unix.Errno(512)

// TellWorks reports why a listener is not told of calls on this machine, or cannot see when they are over.
func TellWorks() error {
	action := uint32(unix.SECCOMP_RET_USER_NOTIF)
	if _, _, errno := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_GET_ACTION_AVAIL, 0,
		uintptr(unsafe.Pointer(&action))); errno != 0 {
		return fmt.Errorf("seccomp user notification: %w", errno)
	}
	const noAttach = "3" // no process may attach to another
	if scope, err := os.ReadFile("/proc/sys/kernel/yama/ptrace_scope"); err == nil &&
		strings.TrimSpace(string(scope)) == noAttach {
		return errors.New("kernel.yama.ptrace_scope is 3")
	}
	return nil
}

// NotifyWorks reports why calls cannot be judged on this machine, as far as a process can test it
// on itself.
func NotifyWorks() error {
	if err := TellWorks(); err != nil {
		return err
	}
	self := &Call{Thread: os.Getpid()}
	var word [4]byte
	if _, err := self.Memory(uint64(uintptr(unsafe.Pointer(&word))), len(word)); err != nil {
		return fmt.Errorf("process_vm_readv: %w", err)
	}
	r, w, err := os.Pipe()
	if err != nil {
		return err
	}
	defer r.Close()
	defer w.Close()
	fd, err := self.Descriptor(int(r.Fd()))
	if err != nil {
		return fmt.Errorf("pidfd_getfd: %w", err)
	}
	return unix.Close(fd)
}
