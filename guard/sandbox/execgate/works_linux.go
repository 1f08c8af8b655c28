package execgate

import (
	"fmt"
	"os"
	"runtime"
	"strings"
	"sync"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/toolhost/toolhost/guard/sandbox/internal/kernel"
)

// Works returns nil if the programs that commands start can be judged on this machine, or says why not. It tries.
// contained says that commands have a user namespace of their own, in which they can be examined.
func Works(contained bool) error {
	err := try()
	if err == nil && !contained && os.Geteuid() != 0 {
		if scope, readErr := os.ReadFile("/proc/sys/kernel/yama/ptrace_scope"); readErr == nil &&
			strings.TrimSpace(string(scope)) > "1" {
			err = fmt.Errorf("kernel.yama.ptrace_scope is %s; at most 1 is needed", strings.TrimSpace(string(scope)))
		}
	}
	if err != nil {
		return fmt.Errorf("sandbox: programs cannot be judged when they start: %w", err)
	}
	return nil
}

// try tries to start a program that does not exist, by a thread whose calls are judged, and examines the call.
var try = sync.OnceValue(func() error {
	if err := kernel.NotifyWorks(); err != nil {
		return err
	}
	const name = "/proc/self/toolhost-exec-gate"
	path, err := unix.BytePtrFromString(name)
	if err != nil {
		return err
	}
	began, tried := make(chan error), make(chan error)
	listener := -1
	go func() {
		runtime.LockOSThread() // never unlocked: the filter stays on the thread, which ends with its goroutine
		var err error
		listener, err = Listen()
		if began <- err; err != nil {
			return
		}
		argv := [2]*byte{path, nil}
		_, _, errno := unix.Syscall(unix.SYS_EXECVE, uintptr(unsafe.Pointer(path)),
			uintptr(unsafe.Pointer(&argv[0])), 0)
		tried <- errno
	}()
	if err := <-began; err != nil {
		return err
	}
	seen := make(chan error, 1)
	judge := func(c *kernel.Call) unix.Errno {
		text, _, err := c.Text(c.Args[0], len(name)+1)
		if err == nil && text != name {
			err = fmt.Errorf("%q was read, not %q", text, name)
		}
		seen <- err
		c.Continue()
		return 0
	}
	l, err := kernel.NewListener(listener)
	if err != nil {
		return err
	}
	defer l.Close()
	go l.Serve(map[int32]kernel.Judge{unix.SYS_EXECVE: judge})
	if err := <-tried; err != unix.ENOENT {
		return fmt.Errorf("a program that was to be looked for: %w; Linux 5.5 or later is needed", err)
	}
	return <-seen
})

// Listen puts the calling thread, which must be locked, under a filter: every program that it starts from now on is
// judged, and it cannot gain privileges any more. Another process gives the descriptor to [Gate.Serve], because a
// process must not answer for its own thread.
func Listen() (listener int, err error) {
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return -1, fmt.Errorf("refusing new privileges: %w", err)
	}
	return kernel.InstallWithListener(kernel.ExecFilter())
}
