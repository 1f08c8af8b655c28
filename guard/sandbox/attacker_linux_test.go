package sandbox

import (
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// attacker does what a shell cannot: bare system calls. It prints what it got
// hold of, or the error.
func attacker(name string, args []string) {
	attacks := map[string]func([]string) error{
		"ptrace": attackPtrace, "setns": attackSetns, "opentree": attackOpenTree, "uring": attackUring,
		"handle": attackHandle, "exchange": attackExchange, "connect": attackConnect, "serve": attackServe, "underlistener": attackUnderListener, "trysockets": attackTrySockets, "vsock": attackVsock,
		"clone": attackClone, "unshare": attackUnshare, "caps": attackCaps, "detach": attackDetach,
		"setuid":     attackSetuid,
		"leaderless": attackLeaderless, "x32": attackX32, "lease": attackLease, "tiocsti": attackTiocsti, "mount": attackMount,
		"readmem": attackReadMem, "mknod": attackMknod, "swap": attackSwap,
		"sibling": attackSibling, "deafen": attackDeafen,
	}
	f, ok := attacks[name]
	if !ok {
		f, ok = kernelAttackers[name]
	}
	if !ok {
		fmt.Println("no attack", name)
		os.Exit(2)
	}
	if err := f(args); err != nil {
		fmt.Printf("%s: %v\n", name, err)
		os.Exit(1)
	}
}

func dump(fd int) error {
	buf := make([]byte, 256)
	n, err := unix.Read(fd, buf)
	if err != nil {
		return err
	}
	os.Stdout.Write(buf[:n])
	return nil
}

func attackPtrace(args []string) error {
	runtime.LockOSThread()
	pid, err := strconv.Atoi(args[0])
	if err != nil {
		return err
	}
	if err := unix.PtraceAttach(pid); err != nil {
		return err
	}
	fmt.Println(breach, "attached to", pid)
	return nil
}

// attackReadMem reads another process's memory through /proc and by system call.
func attackReadMem(args []string) error {
	f, err := os.OpenFile("/proc/"+args[0]+"/mem", os.O_RDWR, 0)
	if err == nil {
		fmt.Println(breach, "opened", f.Name())
	}
	pid, _ := strconv.Atoi(args[0])
	buf := make([]byte, 8)
	local := []unix.Iovec{{Base: &buf[0], Len: 8}}
	remote := []unix.RemoteIovec{{Base: 0x400000, Len: 8}}
	if _, callErr := unix.ProcessVMReadv(pid, local, remote, 0); callErr == nil {
		fmt.Println(breach, "read memory")
	}
	return err
}

func attackSetns(args []string) error {
	fd, err := unix.Open(args[0], unix.O_RDONLY, 0)
	if err != nil {
		return err
	}
	if err := unix.Setns(fd, 0); err != nil {
		return err
	}
	fmt.Println(breach, "entered", args[0])
	return nil
}

func attackOpenTree(args []string) error {
	fd, err := unix.OpenTree(unix.AT_FDCWD, args[0], unix.OPEN_TREE_CLONE)
	if err != nil {
		return err
	}
	file, err := unix.Openat(fd, args[1], unix.O_RDONLY, 0)
	if err != nil {
		return err
	}
	return dump(file)
}

func attackMount(args []string) error {
	if err := unix.Mount("none", args[0], "tmpfs", 0, ""); err != nil {
		return err
	}
	fmt.Println(breach, "mounted")
	return nil
}

// attackUring opens a file through io_uring, past filters on open.
func attackUring(args []string) error {
	var params [120]byte
	ring, _, errno := unix.Syscall(unix.SYS_IO_URING_SETUP, 4, uintptr(unsafe.Pointer(&params[0])), 0)
	if errno != 0 {
		return errno
	}
	fmt.Println(breach, "has a ring", ring)
	return nil
}

// attackHandle opens a file by its handle, without a path. Made outside of the
// sandbox the handle is the file's; the mount is that of the directory.
func attackHandle(args []string) error {
	kind, err := strconv.Atoi(args[1])
	if err != nil {
		return err
	}
	mount, err := unix.Open(args[0], unix.O_RDONLY|unix.O_DIRECTORY, 0)
	if err != nil {
		return err
	}
	var data []byte
	if _, err := fmt.Sscanf(args[2], "%x", &data); err != nil {
		return err
	}
	fd, err := unix.OpenByHandleAt(mount, unix.NewFileHandle(int32(kind), data), unix.O_RDONLY)
	if err != nil {
		return err
	}
	return dump(fd)
}

// attackExchange swaps two names and reads what came to light.
func attackExchange(args []string) error {
	if err := unix.Renameat2(unix.AT_FDCWD, args[0], unix.AT_FDCWD, args[1], unix.RENAME_EXCHANGE); err != nil {
		return err
	}
	b, err := os.ReadFile(args[0])
	fmt.Printf("%s %s", breach, b)
	return err
}

func attackConnect(args []string) error {
	c, err := net.Dial(args[0], args[1])
	if err != nil {
		return err
	}
	// A port may be one of the sandbox's own, whose program waits for a request.
	if err := c.SetDeadline(time.Now().Add(5 * time.Second)); err != nil {
		return err
	}
	_, err = io.Copy(os.Stdout, c)
	return err
}

func attackVsock([]string) error {
	fd, err := unix.Socket(unix.AF_VSOCK, unix.SOCK_STREAM, 0)
	if err != nil {
		return err
	}
	fmt.Println(breach, "has a socket to the hypervisor", fd)
	return nil
}

func attackClone([]string) error {
	cmd := exec.Command("/bin/true")
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: unix.CLONE_NEWUSER | unix.CLONE_NEWNS}
	if err := cmd.Run(); err != nil {
		return err
	}
	fmt.Println(breach, "has a user namespace")
	return nil
}

// attackSibling makes a child of its parent's parent, which is none of its
// descendants.
func attackSibling([]string) error {
	cmd := exec.Command("/bin/true")
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: unix.CLONE_PARENT}
	if err := cmd.Start(); err != nil {
		return err
	}
	fmt.Println(breach, "has a sibling")
	return nil
}

// attackUnshare tries every namespace: commands are recognized by theirs.
func attackUnshare([]string) error {
	runtime.LockOSThread()
	for _, flag := range []int{
		unix.CLONE_NEWUSER, unix.CLONE_NEWNS, unix.CLONE_NEWUTS, unix.CLONE_NEWIPC, unix.CLONE_NEWPID,
		unix.CLONE_NEWNET, unix.CLONE_NEWCGROUP, unix.CLONE_NEWTIME, unix.CLONE_NEWUTS | unix.CLONE_NEWUSER,
	} {
		if err := unix.Unshare(flag); err == nil {
			fmt.Printf("%s unshared %#x\n", breach, flag)
		}
	}
	return nil
}

// attackCaps reports any capability, and any way to get one.
func attackCaps([]string) error {
	runtime.LockOSThread()
	status, err := os.ReadFile("/proc/thread-self/status")
	if err != nil {
		return err
	}
	for line := range strings.Lines(string(status)) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), ":")
		value = strings.TrimSpace(value)
		if name == "CapBnd" && os.Geteuid() != 0 {
			continue // only a capability lets go of it; without new privileges it bounds nothing
		}
		if strings.HasPrefix(name, "Cap") && strings.Trim(value, "0") != "" {
			fmt.Println(breach, name, value)
		}
		if name == "NoNewPrivs" && value != "1" || name == "Seccomp" && value != "2" {
			fmt.Println(breach, name, value)
		}
	}
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	data := [2]unix.CapUserData{{Effective: 1 << unix.CAP_SYS_ADMIN, Permitted: 1 << unix.CAP_SYS_ADMIN}}
	if unix.Capset(&header, &data[0]) == nil {
		fmt.Println(breach, "took a capability")
	}
	if unix.Prctl(unix.PR_SET_SECUREBITS, 0, 0, 0, 0) == nil {
		fmt.Println(breach, "unlocked the secure bits")
	}
	return nil
}

// attackDetach leaves a process behind that has nothing in common with its
// parent any more: session, group, parent, environment, descriptors, name.
func attackDetach(args []string) error {
	if len(args) == 2 && args[1] == "2" {
		exec.Command("/bin/sleep", args[0]).Start()
		return nil
	}
	cmd := exec.Command("/proc/self/exe", attackArg, "detach", args[0], "2")
	cmd.Env = []string{}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	return cmd.Run()
}

// attackLeaderless is a process whose main thread has ended: much of what /proc
// says about a process is then empty.
func attackLeaderless([]string) error {
	ready := make(chan struct{})
	go func() {
		runtime.LockOSThread()
		close(ready)
		time.Sleep(time.Hour)
	}()
	<-ready
	fmt.Println("leaderless")
	os.Stdout.Close()
	os.Stderr.Close()
	if unix.Gettid() == unix.Getpid() {
		unix.RawSyscall(unix.SYS_EXIT, 0, 0, 0) // the thread, not the group
	}
	time.Sleep(time.Hour)
	return nil
}

// attackDeafen occupies a process with signals.
func attackDeafen(args []string) error {
	pid, err := strconv.Atoi(args[0])
	if err != nil {
		return err
	}
	for range 4 {
		go func() {
			for {
				for sig := syscall.Signal(1); sig <= 64; sig++ {
					unix.Kill(pid, sig)
				}
			}
		}()
	}
	select {}
}

func attackX32([]string) error {
	const x32Bit, getpid = 0x40000000, 39 // the bit of another interface to the same kernel
	if runtime.GOARCH != "amd64" {
		return unix.ENOSYS
	}
	if _, _, errno := unix.RawSyscall(x32Bit|getpid, 0, 0, 0); errno != 0 {
		return errno
	}
	fmt.Println(breach, "x32")
	return nil
}

// attackLease makes every program that opens a file for writing wait for us.
func attackLease(args []string) error {
	fd, err := unix.Open(args[0], unix.O_RDONLY, 0)
	if err != nil {
		return err
	}
	for _, command := range []uintptr{unix.F_SETLEASE, unix.F_SETLEASE | 1<<32, 1024 + 16} {
		if _, _, errno := unix.Syscall(unix.SYS_FCNTL, uintptr(fd), command, unix.F_RDLCK); errno == 0 {
			fmt.Println(breach, "has a lease")
		}
	}
	return nil
}

func attackTiocsti([]string) error {
	c := byte('x')
	for _, fd := range []uintptr{0, 1, 2} {
		// With the upper half set: the kernel looks at the lower only.
		_, _, errno := unix.Syscall(unix.SYS_IOCTL, fd, unix.TIOCSTI|1<<32, uintptr(unsafe.Pointer(&c)))
		if errno != unix.EPERM {
			fmt.Println(breach, "reached the terminal driver:", errno)
		}
	}
	return nil
}

func attackMknod(args []string) error {
	if err := unix.Mknod(args[0], unix.S_IFBLK|0o600, int(unix.Mkdev(254, 0))); err != nil {
		return err
	}
	f, err := os.Open(args[0])
	if err != nil {
		return err
	}
	fmt.Println(breach, "opened a disk", f.Name())
	return nil
}

// attackSwap reads a name as fast as it can, for a second, while the host
// replaces the file.
func attackSwap(args []string) error {
	for end := time.Now().Add(time.Second); time.Now().Before(end); {
		b, err := os.ReadFile(args[0])
		if err == nil && strings.Contains(string(b), secret) {
			os.Stdout.Write(b)
			return nil
		}
	}
	return nil
}
