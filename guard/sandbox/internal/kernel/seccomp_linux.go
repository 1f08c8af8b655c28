package kernel

import (
	"errors"
	"fmt"
	"slices"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Instructions and offsets of a seccomp filter, see seccomp(2): struct
// seccomp_data is the system call number, the architecture, the instruction
// pointer and six arguments of 64 bits, of which the low halves are examined.
const (
	bpfLoad = unix.BPF_LD | unix.BPF_W | unix.BPF_ABS
	bpfJeq  = unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K
	bpfJge  = unix.BPF_JMP | unix.BPF_JGE | unix.BPF_K
	bpfJset = unix.BPF_JMP | unix.BPF_JSET | unix.BPF_K
	bpfAnd  = unix.BPF_ALU | unix.BPF_AND | unix.BPF_K
	bpfRet  = unix.BPF_RET | unix.BPF_K

	offNumber = 0
	offArch   = 4
	offArg0   = 16
	offArg1   = 24

	retAllow = unix.SECCOMP_RET_ALLOW
	retKill  = unix.SECCOMP_RET_KILL_PROCESS
	retEPERM = unix.SECCOMP_RET_ERRNO | uint32(unix.EPERM)
	retNoSys = unix.SECCOMP_RET_ERRNO | uint32(unix.ENOSYS)
	retNoAF  = unix.SECCOMP_RET_ERRNO | uint32(unix.EAFNOSUPPORT)
	retNoST  = unix.SECCOMP_RET_ERRNO | uint32(unix.ESOCKTNOSUPPORT)
	retNoTFO = unix.SECCOMP_RET_ERRNO | uint32(unix.EOPNOTSUPP)
	retJudge = unix.SECCOMP_RET_USER_NOTIF

	// x32Bit marks system calls of the x32 interface, which would pass a filter
	// by number on amd64; no other architecture has numbers that high.
	x32Bit = 0x40000000

	// cloneNew are the flags of clone(2) that make namespaces; unshareNew those
	// of unshare(2), where the time namespace has a flag too.
	cloneNew = unix.CLONE_NEWNS | unix.CLONE_NEWCGROUP | unix.CLONE_NEWUTS | unix.CLONE_NEWIPC |
		unix.CLONE_NEWUSER | unix.CLONE_NEWPID | unix.CLONE_NEWNET
	unshareNew = cloneNew | unix.CLONE_NEWTIME
)

// Refused are system calls that fail with EPERM. Most need capabilities that
// no command has; they are refused as well because each has been, or offers,
// surface for kernel exploits, or reaches files without a path (io_uring,
// open_by_handle_at).
var Refused = [...]uint32{
	unix.SYS_IO_URING_SETUP, unix.SYS_IO_URING_ENTER, unix.SYS_IO_URING_REGISTER,
	unix.SYS_MOUNT, unix.SYS_UMOUNT2, unix.SYS_PIVOT_ROOT, unix.SYS_CHROOT,
	unix.SYS_OPEN_TREE, unix.SYS_OPEN_TREE_ATTR, unix.SYS_MOVE_MOUNT, unix.SYS_MOUNT_SETATTR,
	unix.SYS_FSOPEN, unix.SYS_FSMOUNT, unix.SYS_FSCONFIG, unix.SYS_FSPICK,
	unix.SYS_SETNS, unix.SYS_OPEN_BY_HANDLE_AT, unix.SYS_PIDFD_GETFD,
	unix.SYS_BPF, unix.SYS_PERF_EVENT_OPEN, unix.SYS_USERFAULTFD,
	unix.SYS_KEYCTL, unix.SYS_ADD_KEY, unix.SYS_REQUEST_KEY,
	unix.SYS_KEXEC_LOAD, unix.SYS_KEXEC_FILE_LOAD,
	unix.SYS_INIT_MODULE, unix.SYS_FINIT_MODULE, unix.SYS_DELETE_MODULE,
	unix.SYS_SWAPON, unix.SYS_SWAPOFF, unix.SYS_ACCT, unix.SYS_REBOOT, unix.SYS_QUOTACTL,
}

// SharedIPC are system calls that reach memory, messages and semaphores of all
// programs of a user, by numbers and names that are not files. They are refused where
// commands have no IPC namespace of their own.
var SharedIPC = [...]uint32{
	unix.SYS_SHMGET, unix.SYS_SHMAT, unix.SYS_SHMCTL,
	unix.SYS_MSGGET, unix.SYS_MSGSND, unix.SYS_MSGRCV, unix.SYS_MSGCTL,
	unix.SYS_SEMGET, unix.SYS_SEMOP, unix.SYS_SEMTIMEDOP, unix.SYS_SEMCTL,
	unix.SYS_MQ_OPEN, unix.SYS_MQ_UNLINK,
}

// Families are the socket families commands may use. Others are refused: a
// network namespace does not contain all of them (AF_VSOCK reaches the
// hypervisor), and most are rarely used kernel code.
var Families = [...]uint32{unix.AF_UNIX, unix.AF_INET, unix.AF_INET6, unix.AF_NETLINK}

// fcntl(2) commands that make another program's open(2) of a file wait for the holder.
// The second is for directories, since Linux 6.19.
const (
	fSetLease = unix.F_SETLEASE
	fSetDeleg = 1024 + 16
)

// A modeCall is a system call that is given the mode of a file, and which of its
// arguments that is. Those that open a file have their flags in the one before.
type modeCall struct{ nr, arg uint32 }

var (
	// changers change the mode of a file or directory, and makers make a node, which is no directory.
	changers = append([]modeCall{{unix.SYS_FCHMOD, 1}, {unix.SYS_FCHMODAT, 2}, {unix.SYS_FCHMODAT2, 2}}, oldChangers...)
	makers   = append([]modeCall{{unix.SYS_MKNODAT, 2}}, oldMakers...)
	// openers are nearly all of the calls that programs make of these, and come first in the filter.
	openers = append([]modeCall{{unix.SYS_OPENAT, 3}}, oldOpeners...)
)

// setID are the bits of a mode that give a program the rights of the owner or the group of its file.
const setID = unix.S_ISUID | unix.S_ISGID

const (
	// makes are the flags of open(2) that create a file, so that its mode is used.
	makes = unix.O_CREAT | unix.O_TMPFILE&^unix.O_DIRECTORY
	// changes are those with which a file may be changed.
	changes = makes | unix.O_WRONLY | unix.O_RDWR | unix.O_TRUNC
)

// Changes are the system calls, besides those that open a file or change its mode, that change files or directories
// by their names. What else changes a file needs a descriptor that was opened for it.
func Changes() []uint32 {
	return append([]uint32{unix.SYS_RENAMEAT, unix.SYS_RENAMEAT2, unix.SYS_LINKAT, unix.SYS_SYMLINKAT,
		unix.SYS_MKDIRAT, unix.SYS_MKNODAT, unix.SYS_UNLINKAT, unix.SYS_TRUNCATE, unix.SYS_BIND}, oldChanges...)
}

// Opens are the numbers of the system calls that open a file.
func Opens() (list []uint32) {
	for _, c := range openers {
		list = append(list, c.nr)
	}
	return list
}

// SetsGroupID reports whether a call is one of the [ModeChanges] and sets the set-group-ID bit.
func SetsGroupID(c *Call) bool {
	return slices.Contains(ModeChanges(), c.Number) && ModeChangeOf(c).Mode&unix.S_ISGID != 0
}

func offArg(n uint32) uint32 { return offArg0 + 8*n }

// filter builds a seccomp program. Every rule loads the system call's number
// first, so that rules can be in any order.
type filter struct{ prog []unix.SockFilter }

func (f *filter) op(code uint16, k uint32, jt, jf uint8) {
	f.prog = append(f.prog, unix.SockFilter{Code: code, K: k, Jt: jt, Jf: jf})
}

// on answers system call nr with ret.
func (f *filter) on(nr, ret uint32) {
	f.op(bpfLoad, offNumber, 0, 0)
	f.op(bpfJeq, nr, 0, 1)
	f.op(bpfRet, ret, 0, 0)
}

// onBits answers nr with ret if the argument at off has one of bits.
func (f *filter) onBits(nr, off, bits, ret uint32) { f.onArgument(nr, off, bpfJset, bits, ret) }

// onValue answers nr with ret if the argument at off is value.
func (f *filter) onValue(nr, off, value, ret uint32) { f.onArgument(nr, off, bpfJeq, value, ret) }

func (f *filter) onArgument(nr, off uint32, test uint16, with, ret uint32) {
	f.op(bpfLoad, offNumber, 0, 0)
	f.op(bpfJeq, nr, 0, 3)
	f.op(bpfLoad, off, 0, 0)
	f.op(test, with, 0, 1)
	f.op(bpfRet, ret, 0, 0)
}

// onOpen answers an opener: with EPERM if it makes a file with one of bits, with ret if it may change one, and lets it
// pass else.
func (f *filter) onOpen(c modeCall, bits, ret uint32) {
	f.op(bpfLoad, offNumber, 0, 0)
	f.op(bpfJeq, c.nr, 0, 9)
	f.op(bpfLoad, offArg(c.arg-1), 0, 0)
	f.op(bpfJset, makes, 0, 3)
	f.op(bpfLoad, offArg(c.arg), 0, 0)
	f.op(bpfJset, bits, 0, 1)
	f.op(bpfRet, retEPERM, 0, 0)
	f.op(bpfLoad, offArg(c.arg-1), 0, 0)
	f.op(bpfJset, changes, 0, 1)
	f.op(bpfRet, ret, 0, 0)
	f.op(bpfRet, retAllow, 0, 0)
}

// onDevice refuses to make the node of a device.
func (f *filter) onDevice(c modeCall) {
	f.op(bpfLoad, offNumber, 0, 0)
	f.op(bpfJeq, c.nr, 0, 5)
	f.op(bpfLoad, offArg(c.arg), 0, 0)
	f.op(bpfAnd, unix.S_IFMT, 0, 0)
	f.op(bpfJeq, unix.S_IFCHR, 1, 0)
	f.op(bpfJeq, unix.S_IFBLK, 0, 1)
	f.op(bpfRet, retEPERM, 0, 0)
}

// modes keeps set-id bits from files: such a program would outlast the command, and runs with the
// rights of the owner of the workspace. The set-group-ID bit of a directory says the group of new files; a filter
// cannot tell whether a path is that of a directory, so the listener does, see [ModeChange]. Without one the
// bit is refused. openat2 has the mode in memory; libraries that are told that it does not exist use openat.
func (f *filter) modes(listener, writes bool) {
	write := uint32(retAllow)
	if writes {
		write = retJudge
	}
	for _, c := range openers {
		f.onOpen(c, setID, write)
	}
	group := retEPERM
	if listener {
		group = retJudge
	}
	for _, c := range changers {
		f.onBits(c.nr, offArg(c.arg), unix.S_ISUID, retEPERM)
		f.onBits(c.nr, offArg(c.arg), unix.S_ISGID, group)
	}
	for _, c := range makers {
		f.onBits(c.nr, offArg(c.arg), setID, retEPERM)
		f.onDevice(c)
	}
	f.on(unix.SYS_OPENAT2, retNoSys)
	// A device of number 0 may be made: overlay file systems use it.
	f.onBits(unix.SYS_RENAMEAT2, offArg(4), unix.RENAME_WHITEOUT, retEPERM)
}

// A ModeChange is what a call of the [ModeChanges] asks for.
type ModeChange struct {
	Dir   int    // the descriptor of the file, or of the directory that the path begins at
	Path  uint64 // where the path is in the memory of the caller; 0: there is none
	Mode  uint32
	Flags int // of fchmodat2
}

// ModeChanges are the numbers of the calls that change a mode.
func ModeChanges() (list []int32) {
	for _, c := range changers {
		list = append(list, int32(c.nr))
	}
	return list
}

// ModeChangeOf returns the arguments of one of the [ModeChanges].
func ModeChangeOf(c *Call) ModeChange {
	a := c.Args
	switch c.Number {
	case unix.SYS_FCHMOD:
		return ModeChange{Dir: int(int32(a[0])), Mode: uint32(a[1])}
	case unix.SYS_FCHMODAT:
		return ModeChange{Dir: int(int32(a[0])), Path: a[1], Mode: uint32(a[2])}
	case unix.SYS_FCHMODAT2:
		return ModeChange{Dir: int(int32(a[0])), Path: a[1], Mode: uint32(a[2]), Flags: int(uint32(a[3]))}
	}
	return ModeChange{Dir: unix.AT_FDCWD, Path: a[0], Mode: uint32(a[1])}
}

// unlessOneOf answers nr with ret unless its first argument is in values.
func (f *filter) unlessOneOf(nr uint32, values []uint32, ret uint32) {
	n := uint8(len(values))
	f.op(bpfLoad, offNumber, 0, 0)
	f.op(bpfJeq, nr, 0, n+2)
	f.op(bpfLoad, offArg0, 0, 0)
	for i, v := range values {
		f.op(bpfJeq, v, n-uint8(i), 0)
	}
	f.op(bpfRet, ret, 0, 0)
}

// streamsOnly refuses the Unix sockets of system call nr whose type is not a stream or
// a sequence of packets. A datagram socket, and each of a connected pair, sends to any
// path without connect(2), and the address is in memory, which a filter cannot read.
// The kernel takes SOCK_RAW for SOCK_DGRAM.
func (f *filter) streamsOnly(nr uint32) {
	const typeMask = 0xf // SOCK_TYPE_MASK; SOCK_NONBLOCK and SOCK_CLOEXEC lie above
	f.op(bpfLoad, offNumber, 0, 0)
	f.op(bpfJeq, nr, 0, 7)
	f.op(bpfLoad, offArg0, 0, 0)
	f.op(bpfJeq, unix.AF_UNIX, 0, 5)
	f.op(bpfLoad, offArg1, 0, 0)
	f.op(bpfAnd, typeMask, 0, 0)
	f.op(bpfJeq, unix.SOCK_STREAM, 2, 0)
	f.op(bpfJeq, unix.SOCK_SEQPACKET, 1, 0)
	f.op(bpfRet, retNoST, 0, 0)
}

// FilterRules define what a filter allows to commands.
type FilterRules struct {
	// Families are the socket families that may be used.
	Families []uint32
	// Refused are system calls that fail with EPERM, in addition to [Refused].
	Refused []uint32
	// Judged are system calls that wait for the answer of a listener, see [InstallWithListener].
	Judged []uint32
	// Modes has the listener answer the [ModeChanges] with a set-group-ID bit, which fail with EPERM otherwise.
	Modes bool
	// Writes has the listener told of each call that may change files or directories.
	Writes bool
}

// Filter is the program for commands.
func Filter(r FilterRules) []unix.SockFilter {
	f := &filter{}
	f.op(bpfLoad, offArch, 0, 0)
	f.op(bpfJeq, auditArch, 1, 0)
	f.op(bpfRet, retKill, 0, 0) // other numbers, other calls: 32-bit programs
	f.op(bpfLoad, offNumber, 0, 0)
	f.op(bpfJge, x32Bit, 0, 1)
	f.op(bpfRet, retNoSys, 0, 0)
	f.modes(r.Modes, r.Writes)
	if r.Writes {
		for _, nr := range Changes() {
			f.on(nr, retJudge)
		}
		for _, c := range changers {
			f.on(c.nr, retJudge)
		}
	}
	for _, nr := range slices.Concat(r.Refused, Refused[:]) {
		f.on(nr, retEPERM)
	}
	for _, nr := range r.Judged {
		f.on(nr, retJudge)
	}
	if slices.Contains(r.Judged, unix.SYS_EXECVE) {
		f.onListener()
	}
	if slices.Contains(r.Judged, unix.SYS_CONNECT) { // which these would do without
		f.onBits(unix.SYS_SENDTO, offArg(3), unix.MSG_FASTOPEN, retNoTFO)
		f.onBits(unix.SYS_SENDMSG, offArg(2), unix.MSG_FASTOPEN, retNoTFO)
		f.onBits(unix.SYS_SENDMMSG, offArg(3), unix.MSG_FASTOPEN, retNoTFO)
	}
	// clone3 has its flags in memory, which a filter cannot read. Libraries that are told that it
	// does not exist use clone.
	f.on(unix.SYS_CLONE3, retNoSys)
	// CLONE_PARENT makes a sibling, which would not be an orphan of the command.
	f.onBits(unix.SYS_CLONE, offArg0, cloneNew|unix.CLONE_PARENT, retEPERM)
	// The spawner itself makes a UTS namespace for every command. Commands do not
	// have the capability for it.
	f.onValue(unix.SYS_UNSHARE, offArg0, unix.CLONE_NEWUTS, retAllow)
	f.onBits(unix.SYS_UNSHARE, offArg0, unshareNew, retEPERM)
	// Both put input into the terminal of whichever process started us.
	f.onValue(unix.SYS_IOCTL, offArg1, unix.TIOCSTI, retEPERM)
	f.onValue(unix.SYS_IOCTL, offArg1, tiocLinux, retEPERM)
	f.onValue(unix.SYS_FCNTL, offArg1, fSetLease, retEPERM)
	f.onValue(unix.SYS_FCNTL, offArg1, fSetDeleg, retEPERM)
	f.streamsOnly(unix.SYS_SOCKET)
	f.streamsOnly(unix.SYS_SOCKETPAIR)
	f.unlessOneOf(unix.SYS_SOCKET, r.Families, retNoAF)
	f.op(bpfRet, retAllow, 0, 0)
	return f.prog
}

// Execs are the system calls that start a program.
var Execs = [...]uint32{unix.SYS_EXECVE, unix.SYS_EXECVEAT}

// onListener sends the installation of another listener, which fails with EBUSY, to the listener.
func (f *filter) onListener() {
	f.onBits(unix.SYS_SECCOMP, offArg1, unix.SECCOMP_FILTER_FLAG_NEW_LISTENER, retJudge)
}

// AllExecs are those of every interface that [ExecFilter] judges.
func AllExecs() []uint32 { return slices.Concat(Execs[:], oldExecs, foreignExecs[:]) }

// ExecFilter is the program for commands of which only the start of programs is judged,
// including programs of the other architecture that runs here.
func ExecFilter() []unix.SockFilter {
	f := &filter{}
	f.op(bpfLoad, offArch, 0, 0)
	f.op(bpfJeq, auditArch, 7, 0)
	f.op(bpfJeq, foreignArch, 1, 0)
	f.op(bpfRet, retKill, 0, 0)
	f.op(bpfLoad, offNumber, 0, 0)
	f.op(bpfJeq, foreignExecs[0], 1, 0)
	f.op(bpfJeq, foreignExecs[1], 0, 1)
	f.op(bpfRet, retJudge, 0, 0)
	f.op(bpfRet, retAllow, 0, 0)
	for _, nr := range slices.Concat(Execs[:], oldExecs) {
		f.on(nr, retJudge)
	}
	f.onListener()
	f.op(bpfRet, retAllow, 0, 0)
	return f.prog
}

// Is32Bit reports whether the pointers of a call have 32 bits.
func Is32Bit(arch, nr uint32) bool { return arch != auditArch || nr >= x32Bit }

// IsExecveat reports whether a call of [AllExecs] is execveat.
func IsExecveat(arch, nr uint32) bool {
	if arch != auditArch {
		return nr == foreignExecs[1]
	}
	return nr == unix.SYS_EXECVEAT || len(oldExecs) > 1 && nr == oldExecs[1]
}

// tiocLinux is TIOCLINUX of ioctl_console(2): selection and paste.
const tiocLinux = 0x541c

// Install puts the calling thread, which must have no_new_privs, and its
// children under prog.
func Install(prog []unix.SockFilter) error {
	_, err := install(prog, 0)
	return err
}

// InstallWithListener is Install for a program with judged system calls, and returns the descriptor
// from which they are read and answered, see [NewListener].
// A thread has one listener at most, those of its ancestors included: a further one
// fails with EBUSY.
func InstallWithListener(prog []unix.SockFilter) (int, error) {
	fd, err := install(prog, unix.SECCOMP_FILTER_FLAG_NEW_LISTENER|unix.SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV)
	if errors.Is(err, unix.EINVAL) { // before Linux 5.19, where signals restart calls that are being judged
		fd, err = install(prog, unix.SECCOMP_FILTER_FLAG_NEW_LISTENER)
	}
	return fd, err
}

func install(prog []unix.SockFilter, flags uintptr) (int, error) {
	p := unix.SockFprog{Len: uint16(len(prog)), Filter: &prog[0]}
	fd, _, errno := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, flags, uintptr(unsafe.Pointer(&p)))
	if errno != 0 {
		return -1, fmt.Errorf("installing the system call filter: %w", errno)
	}
	return int(fd), nil
}
