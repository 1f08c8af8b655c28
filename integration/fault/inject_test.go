//go:build linux

package fault

import (
	"fmt"
	"os"
	"runtime"
	"strings"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// changing are the system calls by which a host changes files. Unlinking is not made to fail: what cannot be removed stays.
var changing = []uintptr{
	unix.SYS_WRITE, unix.SYS_PWRITE64, unix.SYS_FTRUNCATE, unix.SYS_FSYNC, unix.SYS_FDATASYNC, unix.SYS_RENAMEAT,
	unix.SYS_RENAMEAT2,
	unix.SYS_LINKAT, unix.SYS_OPENAT, unix.SYS_OPENAT2, unix.SYS_MKDIRAT, unix.SYS_FCHMOD, unix.SYS_COPY_FILE_RANGE,
	unix.SYS_FALLOCATE,
}

// watching are those by which it watches them.
var watching = []uintptr{unix.SYS_INOTIFY_INIT1, unix.SYS_INOTIFY_ADD_WATCH}

// injectVariable tells the test binary that it is to install the filter and become the program in its arguments.
const injectVariable = "TOOLHOST_TEST_INJECT"

func init() {
	if os.Getenv(injectVariable) != "" {
		fmt.Fprintln(os.Stderr, become(os.Args[1:]))
		os.Exit(125)
	}
}

// become installs the filter on this thread, hands its listener out on descriptor 3 and executes a program. It returns on errors only.
func become(argv []string) error {
	runtime.LockOSThread()
	filter := []unix.SockFilter{{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS}}
	for _, nr := range append(append([]uintptr{unix.SYS_UNLINKAT, unix.SYS_SYMLINKAT, unix.SYS_FLOCK}, changing...), watching...) {
		filter = append(filter, unix.SockFilter{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, K: uint32(nr), Jf: 1},
			unix.SockFilter{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_USER_NOTIF})
	}
	filter = append(filter, unix.SockFilter{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_ALLOW})
	program := unix.SockFprog{Len: uint16(len(filter)), Filter: &filter[0]}
	if os.Geteuid() != 0 {
		if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
			return err
		}
	}
	env := os.Environ()
	kept := env[:0]
	for _, v := range env {
		if !strings.HasPrefix(v, injectVariable+"=") {
			kept = append(kept, v)
		}
	}
	listener, _, errno := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER,
		unix.SECCOMP_FILTER_FLAG_NEW_LISTENER, uintptr(unsafe.Pointer(&program)))
	if errno != 0 {
		return fmt.Errorf("seccomp: %w", errno)
	}
	if err := unix.Sendmsg(3, []byte{0}, unix.UnixRights(int(listener)), nil, 0); err != nil {
		return err
	}
	unix.CloseOnExec(int(listener))
	unix.CloseOnExec(3)
	return syscall.Exec(argv[0], argv, kept)
}
