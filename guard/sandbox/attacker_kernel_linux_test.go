package sandbox

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"sync/atomic"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/toolhost/toolhost/guard/sandbox/execgate"
	"github.com/toolhost/toolhost/guard/sandbox/internal/kernel"
)

// attackSetuid makes files with set-id bits, and devices, in every way there is.
func attackSetuid(args []string) error {
	for i, mode := range []uint32{unix.S_ISUID | 0o755, unix.S_ISGID | 0o755, unix.S_ISUID | unix.S_ISGID | 0o755} {
		name := args[0] + strconv.Itoa(i)
		if fd, err := unix.Open(name+"1", unix.O_CREAT|unix.O_WRONLY, mode); err == nil {
			unix.Fchmod(fd, mode)
			unix.Close(fd)
		}
		if fd, err := unix.Openat2(unix.AT_FDCWD, name+"2",
			&unix.OpenHow{Flags: unix.O_CREAT | unix.O_WRONLY, Mode: uint64(mode)}); err == nil {
			unix.Close(fd)
		}
		if fd, err := unix.Open(".", unix.O_TMPFILE|unix.O_WRONLY, mode); err == nil {
			unix.Linkat(unix.AT_FDCWD, "/proc/self/fd/"+strconv.Itoa(fd), unix.AT_FDCWD, name+"3",
				unix.AT_SYMLINK_FOLLOW)
			unix.Close(fd)
		}
		if fd, err := unix.Open(".", unix.O_TMPFILE|unix.O_WRONLY, 0o755); err == nil {
			unix.Fchmod(fd, mode)
			unix.Linkat(unix.AT_FDCWD, "/proc/self/fd/"+strconv.Itoa(fd), unix.AT_FDCWD, name+"6",
				unix.AT_SYMLINK_FOLLOW)
			unix.Close(fd)
		}
		unix.Mknod(name+"4", unix.S_IFREG|mode, 0)
		unix.Mkfifo(name+"7", 0o600)
		unix.Chmod(name+"7", mode)
		changeModes(name+"5", mode)
	}
	unix.Mknod(args[0]+"c", unix.S_IFCHR|0o666, 0) // which needs no capability
	unix.Mknod(args[0]+"b", unix.S_IFBLK|0o666, 7<<8)
	if fd, err := unix.Open(args[0]+"w", unix.O_CREAT|unix.O_WRONLY, 0o600); err == nil {
		unix.Close(fd)
		unix.Renameat2(unix.AT_FDCWD, args[0]+"w", unix.AT_FDCWD, args[0]+"x", unix.RENAME_WHITEOUT)
	}
	return nil
}

// changeModes gives a file a mode by every call and every way to name the file.
func changeModes(name string, mode uint32) {
	fd, err := unix.Open(name, unix.O_CREAT|unix.O_RDWR, 0o755)
	if err != nil {
		return
	}
	defer unix.Close(fd)
	unix.Fchmod(fd, mode)
	unix.Chmod(name, mode)
	unix.Chmod("/proc/self/fd/"+strconv.Itoa(fd), mode)
	unix.Chmod("/proc/thread-self/cwd/"+name, mode)
	unix.Fchmodat(unix.AT_FDCWD, name, mode, 0)
	unix.Fchmodat(fd, "", mode, unix.AT_EMPTY_PATH)
	unix.Fchmodat(unix.AT_FDCWD, name, mode, unix.AT_SYMLINK_NOFOLLOW)
	if dir, err := unix.Open(".", unix.O_PATH|unix.O_DIRECTORY, 0); err == nil {
		unix.Fchmodat(dir, name, mode, 0)
		unix.Close(dir)
	}
	if path, err := unix.Open(name, unix.O_PATH, 0); err == nil {
		unix.Fchmod(path, mode)
		unix.Fchmodat(path, "", mode, unix.AT_EMPTY_PATH)
		unix.Close(path)
	}
	// A name that is a directory at one moment and the file at the next.
	other := name + "d"
	unix.Mkdir(other, 0o755)
	done := make(chan bool)
	go func() {
		defer close(done)
		for range 300 {
			unix.Renameat2(unix.AT_FDCWD, name, unix.AT_FDCWD, other, unix.RENAME_EXCHANGE)
		}
	}()
	for range 300 {
		unix.Chmod(name, mode)
	}
	<-done
}

// kernelAttackers reach for what is neither a file nor a process of the command's.
var kernelAttackers = map[string]func([]string) error{
	"reach": attackReach, "pidfd": attackPidfd, "refused": attackRefused, "writable": attackWritable,
	"shm": attackSharedMemory, "mq": attackMessageQueue, "capability": attackCapability, "moveout": attackMoveOut,
	"watch": attackWatch, "inflight": attackInFlight, "execveat": attackExecveat, "vfork": attackVfork, "missing": attackMissing, "flip": attackFlip, "listen": attackListen, "tracing": attackTracing,
}

// attackExecveat starts a program below a directory.
func attackExecveat(args []string) error {
	dir, err := unix.Open(args[0], unix.O_PATH|unix.O_DIRECTORY, 0)
	if err != nil {
		return err
	}
	path, err := unix.BytePtrFromString(args[1])
	if err != nil {
		return err
	}
	argv, err := syscall.SlicePtrFromStrings(args[1:])
	if err != nil {
		return err
	}
	_, _, errno := unix.Syscall6(unix.SYS_EXECVEAT, uintptr(dir), uintptr(unsafe.Pointer(path)),
		uintptr(unsafe.Pointer(&argv[0])), 0, 0, 0)
	return errno
}

// attackListen asks for a listener of its own.
func attackListen([]string) error {
	_, err := execgate.Listen()
	return err
}

// attackMissing tries to start a program that is not there, so many times.
func attackMissing(args []string) error {
	n, err := strconv.Atoi(args[0])
	if err != nil {
		return err
	}
	argv, envv := []string{"x", "y", "z"}, []string{}
	for range n {
		if err := syscall.Exec("/usr/local/sbin/x", argv, envv); !errors.Is(err, unix.ENOENT) {
			return err
		}
	}
	return nil
}

// attackFlip starts a program so many times whose argument another process changes all the while, in memory that they
// share, between ran----good and ran----bad-, with the number of the try.
func attackFlip(args []string) error {
	n, err := strconv.Atoi(args[0])
	if err != nil {
		return err
	}
	path, err := unix.BytePtrFromString(args[1])
	if err != nil {
		return err
	}
	memory, err := unix.MmapPtr(-1, 0, nil, 4096, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED|unix.MAP_ANONYMOUS)
	if err != nil {
		return err
	}
	arg := unsafe.Slice((*byte)(memory), 4096)
	word := (*atomic.Uint32)(unsafe.Pointer(&arg[8]))
	argv := [3]*byte{path, &arg[0], nil}
	copy(arg, "ran-----good")
	fork := func() uintptr {
		pid, _, _ := unix.RawSyscall6(unix.SYS_CLONE, uintptr(unix.SIGCHLD), 0, 0, 0, 0, 0)
		return pid
	}
	runtime.LockOSThread()
	other := fork()
	for i := 0; other == 0; i++ {
		word.Store(binary.NativeEndian.Uint32([]byte([]string{"good", "bad-"}[i/1000%2])))
	}
	for i := range n {
		copy(arg[12:], strconv.Itoa(i)+"\x00")
		pid := fork()
		if pid == 0 {
			unix.RawSyscall(unix.SYS_EXECVE, uintptr(unsafe.Pointer(path)), uintptr(unsafe.Pointer(&argv[0])), 0)
			unix.RawSyscall(unix.SYS_EXIT_GROUP, 126, 0, 0)
		}
		for _, err := unix.Wait4(int(pid), nil, 0, nil); err == unix.EINTR; {
			_, err = unix.Wait4(int(pid), nil, 0, nil)
		}
	}
	return unix.Kill(int(other), unix.SIGKILL)
}

// attackTracing starts a program and traces it.
func attackTracing(args []string) error {
	runtime.LockOSThread()
	p, err := os.StartProcess("/bin/sh", append([]string{"sh", "-c", `exec "$@"`, "sh"}, args...),
		&os.ProcAttr{Files: []*os.File{nil, os.Stdout, os.Stderr}, Sys: &syscall.SysProcAttr{Ptrace: true}})
	if err != nil {
		return err
	}
	for {
		var ws unix.WaitStatus
		if _, err := unix.Wait4(p.Pid, &ws, 0, nil); err != nil || !ws.Stopped() {
			return err
		}
		signal := int(ws.StopSignal())
		if ws.StopSignal() == unix.SIGTRAP {
			signal = 0
		}
		if err := unix.PtraceCont(p.Pid, signal); err != nil {
			return err
		}
	}
}

// attackVfork starts a program by vfork, as Go does.
func attackVfork(args []string) error {
	_, err := syscall.ForkExec(args[0], args, &syscall.ProcAttr{Files: []uintptr{0, 1, 2}})
	return err
}

// attackReach opens what /proc has of each of the processes.
func attackReach(pids []string) error {
	for _, pid := range pids {
		dir := "/proc/" + pid
		for _, name := range []string{"mem", "auxv", "environ", "maps", "stack", "syscall", "root/etc/passwd", "exe",
			"ns/mnt", "ns/user"} {
			f, err := os.Open(dir + "/" + name)
			if err == nil {
				if n, _ := f.Read(make([]byte, 1)); n > 0 || name == "mem" || name[:2] == "ns" {
					fmt.Println(breach, f.Name())
				}
				f.Close()
			}
		}
		if to, err := os.Readlink(dir + "/cwd"); err == nil {
			fmt.Println(breach, "works in", to)
		}
		for _, list := range []string{"fd", "map_files"} { // that there are some is no secret
			entries, _ := os.ReadDir(dir + "/" + list)
			for _, e := range entries {
				if to, err := os.Readlink(dir + "/" + list + "/" + e.Name()); err == nil {
					fmt.Println(breach, dir, list, e.Name(), to)
				}
			}
		}
	}
	return nil
}

// attackPidfd takes a descriptor from another process and writes into its memory.
func attackPidfd(args []string) error {
	pid, err := strconv.Atoi(args[0])
	if err != nil {
		return err
	}
	fd, err := unix.PidfdOpen(pid, 0)
	if err == nil {
		for n := range 16 {
			if got, err := unix.PidfdGetfd(fd, n, 0); err == nil {
				fmt.Println(breach, "took descriptor", n, "as", got)
			}
		}
		if unix.PidfdSendSignal(fd, unix.SIGKILL, nil, 0) == nil && pid != 1 {
			fmt.Println(breach, "sent a signal")
		}
		if err := unix.Setns(fd, unix.CLONE_NEWNS); err == nil {
			fmt.Println(breach, "entered its namespaces")
		}
	}
	buf := make([]byte, 8)
	local := []unix.Iovec{{Base: &buf[0], Len: 8}}
	remote := []unix.RemoteIovec{{Base: 0x400000, Len: 8}}
	if _, err := unix.ProcessVMWritev(pid, local, remote, 0); !errors.Is(err, unix.EPERM) &&
		!errors.Is(err, unix.ESRCH) {
		fmt.Println(breach, "writes memory:", err)
	}
	return err
}

// attackRefused calls everything that is refused, and says what was not.
func attackRefused([]string) error {
	for _, nr := range kernel.Refused {
		if _, _, errno := unix.Syscall6(uintptr(nr), 0, 0, 0, 0, 0, 0); errno != unix.EPERM {
			fmt.Println(breach, "call", nr, errno)
		}
	}
	return nil
}

// attackWritable opens for writing what lies below the directories, and changes nothing.
func attackWritable(dirs []string) error {
	for _, dir := range dirs {
		filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
			if err != nil || !d.Type().IsRegular() {
				return nil
			}
			fd, err := unix.Open(path, unix.O_WRONLY|unix.O_NONBLOCK|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
			if err == nil {
				unix.Close(fd)
				fmt.Println(breach, path)
			}
			return nil
		})
	}
	return nil
}

// attackSharedMemory reads a segment of the host's.
func attackSharedMemory(args []string) error {
	id, err := strconv.Atoi(args[0])
	if err != nil {
		return err
	}
	memory, err := unix.SysvShmAttach(id, 0, unix.SHM_RDONLY)
	if err != nil {
		return err
	}
	fmt.Printf("%s\n", memory[:len(secret)])
	return nil
}

// attackMessageQueue opens a queue of the host's.
func attackMessageQueue(args []string) error {
	fd, err := openQueue(args[0], unix.O_RDONLY)
	if err == nil {
		fmt.Println(breach, "opened a queue", fd)
	}
	return err
}

// openQueue opens a POSIX message queue, which has no path.
func openQueue(name string, flags int) (int, error) {
	p, err := unix.BytePtrFromString(name)
	if err != nil {
		return -1, err
	}
	fd, _, errno := unix.Syscall6(unix.SYS_MQ_OPEN, uintptr(unsafe.Pointer(p)), uintptr(flags), 0o600, 0, 0, 0)
	if errno != 0 {
		return -1, errno
	}
	return int(fd), nil
}

func removeQueue(name string) {
	if p, err := unix.BytePtrFromString(name); err == nil {
		unix.Syscall(unix.SYS_MQ_UNLINK, uintptr(unsafe.Pointer(p)), 0, 0)
	}
}

// attackCapability leaves a program with a capability for somebody else to run.
func attackCapability(args []string) error {
	// From vfs_cap_data of linux/capability.h: revision 2, effective, CAP_DAC_OVERRIDE.
	capability := []byte{1, 0, 0, 2, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0}
	if err := unix.Setxattr(args[0], "security.capability", capability, 0); err != nil {
		return err
	}
	fmt.Println(breach, "gave a capability to", args[0])
	return nil
}

// attackWatch takes all watches there are, and keeps them.
func attackWatch([]string) error {
	n := 0
	for {
		if _, err := unix.InotifyInit(); err != nil {
			fmt.Println("took", n, err)
			select {}
		}
		n++
	}
}

// attackInFlight puts as many descriptors on their way as the kernel lets the user,
// and leaves them there.
func attackInFlight([]string) error {
	files := make([]int, 250)
	for i := range files {
		files[i] = 1
	}
	rights := unix.UnixRights(files...)
	sent, failure := 0, error(nil)
	for failure == nil || errors.Is(failure, unix.EAGAIN) {
		pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_NONBLOCK, 0)
		if err != nil {
			failure = err
			break
		}
		for failure = nil; failure == nil; sent += len(files) {
			failure = unix.Sendmsg(pair[0], []byte{0}, rights, nil, 0)
		}
	}
	fmt.Println("sent about", sent, failure)
	select {}
}

// attackMoveOut holds a directory open, moves it and goes up from there.
func attackMoveOut(args []string) error {
	fd, err := unix.Open(args[0], unix.O_PATH|unix.O_DIRECTORY, 0)
	if err != nil {
		return err
	}
	if err := os.Rename(args[0], args[1]); err != nil {
		return err
	}
	file, err := unix.Openat(fd, args[2], unix.O_RDONLY, 0)
	if err != nil {
		return err
	}
	return dump(file)
}
