package kernel

import (
	"slices"
	"testing"

	"golang.org/x/sys/unix"
)

// The filter answers what it is to answer: it is interpreted here.
func TestFilter(t *testing.T) {
	prog := Filter(FilterRules{Families: Families[:], Judged: []uint32{unix.SYS_CONNECT}})
	for _, c := range []struct {
		name     string
		arch, nr uint32
		args     [4]uint32
		want     uint32
	}{
		{"read", auditArch, unix.SYS_READ, [4]uint32{}, retAllow},
		{"other architecture", 0x40000003, 20, [4]uint32{}, retKill},
		{"x32", auditArch, x32Bit | 39, [4]uint32{}, retNoSys},
		{"mount", auditArch, unix.SYS_MOUNT, [4]uint32{}, retEPERM},
		{"clone3", auditArch, unix.SYS_CLONE3, [4]uint32{}, retNoSys},
		{"fork", auditArch, unix.SYS_CLONE, [4]uint32{uint32(unix.SIGCHLD)}, retAllow},
		{"thread", auditArch, unix.SYS_CLONE, [4]uint32{unix.CLONE_VM | unix.CLONE_THREAD}, retAllow},
		{"clone with a user namespace", auditArch, unix.SYS_CLONE, [4]uint32{unix.CLONE_NEWUSER | unix.CLONE_VM}, retEPERM},
		{"clone a sibling", auditArch, unix.SYS_CLONE, [4]uint32{unix.CLONE_PARENT | uint32(unix.SIGCHLD)}, retEPERM},
		{"unshare files", auditArch, unix.SYS_UNSHARE, [4]uint32{unix.CLONE_FILES}, retAllow},
		{"unshare UTS", auditArch, unix.SYS_UNSHARE, [4]uint32{unix.CLONE_NEWUTS}, retAllow},
		{"unshare UTS and user", auditArch, unix.SYS_UNSHARE, [4]uint32{unix.CLONE_NEWUTS | unix.CLONE_NEWUSER}, retEPERM},
		{"unshare time", auditArch, unix.SYS_UNSHARE, [4]uint32{unix.CLONE_NEWTIME}, retEPERM},
		{"TIOCSTI", auditArch, unix.SYS_IOCTL, [4]uint32{0, unix.TIOCSTI}, retEPERM},
		{"TCGETS", auditArch, unix.SYS_IOCTL, [4]uint32{0, unix.TCGETS}, retAllow},
		{"unix socket", auditArch, unix.SYS_SOCKET, [4]uint32{unix.AF_UNIX, unix.SOCK_STREAM | unix.SOCK_CLOEXEC}, retAllow},
		{"unix packets", auditArch, unix.SYS_SOCKET, [4]uint32{unix.AF_UNIX, unix.SOCK_SEQPACKET | unix.SOCK_NONBLOCK}, retAllow},
		{"unix datagrams", auditArch, unix.SYS_SOCKET, [4]uint32{unix.AF_UNIX, unix.SOCK_DGRAM | unix.SOCK_CLOEXEC}, retNoST},
		{"unix raw, which is datagrams", auditArch, unix.SYS_SOCKET, [4]uint32{unix.AF_UNIX, unix.SOCK_RAW}, retNoST},
		{"unix pair", auditArch, unix.SYS_SOCKETPAIR, [4]uint32{unix.AF_UNIX, unix.SOCK_STREAM | unix.SOCK_CLOEXEC}, retAllow},
		{"unix pair of datagrams", auditArch, unix.SYS_SOCKETPAIR, [4]uint32{unix.AF_UNIX, unix.SOCK_DGRAM}, retNoST},
		{"internet datagrams", auditArch, unix.SYS_SOCKET, [4]uint32{unix.AF_INET, unix.SOCK_DGRAM}, retAllow},
		{"connect", auditArch, unix.SYS_CONNECT, [4]uint32{}, retJudge},
		{"lease", auditArch, unix.SYS_FCNTL, [4]uint32{3, unix.F_SETLEASE, unix.F_WRLCK}, retEPERM},
		{"lease of a directory", auditArch, unix.SYS_FCNTL, [4]uint32{3, fSetDeleg}, retEPERM},
		{"lock", auditArch, unix.SYS_FCNTL, [4]uint32{3, unix.F_SETLKW}, retAllow},
		{"internet socket", auditArch, unix.SYS_SOCKET, [4]uint32{unix.AF_INET6}, retAllow},
		{"vsock", auditArch, unix.SYS_SOCKET, [4]uint32{unix.AF_VSOCK}, retNoAF},
		{"reading a file", auditArch, unix.SYS_OPENAT, [4]uint32{0, 0, unix.O_RDONLY, unix.S_ISUID}, retAllow},
		{"making a file", auditArch, unix.SYS_OPENAT, [4]uint32{0, 0, unix.O_CREAT | unix.O_WRONLY, 0o755}, retAllow},
		{"making a setuid file", auditArch, unix.SYS_OPENAT, [4]uint32{0, 0, unix.O_CREAT | unix.O_WRONLY, 0o4755}, retEPERM},
		{"making a setuid file without a name", auditArch, unix.SYS_OPENAT, [4]uint32{0, 0, unix.O_TMPFILE | unix.O_WRONLY, 0o4755}, retEPERM},
		{"opening a directory", auditArch, unix.SYS_OPENAT, [4]uint32{0, 0, unix.O_DIRECTORY, 0o4755}, retAllow},
		{"openat2", auditArch, unix.SYS_OPENAT2, [4]uint32{}, retNoSys},
		{"making a setgid file", auditArch, unix.SYS_OPENAT, [4]uint32{0, 0, unix.O_CREAT | unix.O_WRONLY, 0o2755}, retEPERM},
		{"chmod", auditArch, unix.SYS_FCHMODAT, [4]uint32{0, 0, 0o1777}, retAllow},
		{"chmod g+s", auditArch, unix.SYS_FCHMODAT, [4]uint32{0, 0, 0o2755}, retEPERM},
		{"chmod u+s", auditArch, unix.SYS_FCHMODAT, [4]uint32{0, 0, 0o4755}, retEPERM},
		{"chmod u+s of a descriptor", auditArch, unix.SYS_FCHMOD, [4]uint32{0, 0o4755}, retEPERM},
		{"chmod u+s with flags", auditArch, unix.SYS_FCHMODAT2, [4]uint32{0, 0, 0o4755}, retEPERM},
		{"a setuid node", auditArch, unix.SYS_MKNODAT, [4]uint32{0, 0, unix.S_IFREG | 0o4755}, retEPERM},
		{"a setgid node", auditArch, unix.SYS_MKNODAT, [4]uint32{0, 0, 0o2755}, retEPERM},
		{"a file", auditArch, unix.SYS_MKNODAT, [4]uint32{0, 0, unix.S_IFREG | 0o755}, retAllow},
		{"a pipe", auditArch, unix.SYS_MKNODAT, [4]uint32{0, 0, unix.S_IFIFO | 0o644}, retAllow},
		{"a socket", auditArch, unix.SYS_MKNODAT, [4]uint32{0, 0, unix.S_IFSOCK | 0o644}, retAllow},
		{"a character device", auditArch, unix.SYS_MKNODAT, [4]uint32{0, 0, unix.S_IFCHR | 0o644}, retEPERM},
		{"a block device", auditArch, unix.SYS_MKNODAT, [4]uint32{0, 0, unix.S_IFBLK | 0o644}, retEPERM},
		{"alg", auditArch, unix.SYS_SOCKET, [4]uint32{unix.AF_ALG}, retNoAF},
	} {
		if got := interpret(t, prog, c.arch, c.nr, c.args); got != c.want {
			t.Errorf("%s: %#x, want %#x", c.name, got, c.want)
		}
	}
	listener := [4]uint32{unix.SECCOMP_SET_MODE_FILTER, unix.SECCOMP_FILTER_FLAG_NEW_LISTENER}
	for _, c := range []struct {
		name     string
		arch, nr uint32
		args     [4]uint32
		want     uint32
	}{
		{"read", auditArch, unix.SYS_READ, [4]uint32{}, retAllow},
		{"execve", auditArch, unix.SYS_EXECVE, [4]uint32{}, retJudge},
		{"execveat", auditArch, unix.SYS_EXECVEAT, [4]uint32{}, retJudge},
		{"execve of another architecture", foreignArch, foreignExecs[0], [4]uint32{}, retJudge},
		{"execveat of another architecture", foreignArch, foreignExecs[1], [4]uint32{}, retJudge},
		{"another call of another architecture", foreignArch, unix.SYS_EXECVE, [4]uint32{}, retAllow},
		{"an unknown architecture", 1, foreignExecs[0], [4]uint32{}, retKill},
		{"listener", auditArch, unix.SYS_SECCOMP, listener, retJudge},
		{"filter", auditArch, unix.SYS_SECCOMP, [4]uint32{unix.SECCOMP_SET_MODE_FILTER}, retAllow},
	} {
		if got := interpret(t, ExecFilter(), c.arch, c.nr, c.args); got != c.want {
			t.Errorf("without a sandbox, %s: %#x, want %#x", c.name, got, c.want)
		}
	}
	for _, nr := range oldExecs {
		if got := interpret(t, ExecFilter(), auditArch, nr, [4]uint32{}); got != retJudge {
			t.Errorf("without a sandbox, call %#x: %#x", nr, got)
		}
	}
	judged := Filter(FilterRules{Families: Families[:], Judged: Execs[:]})
	for nr, args := range map[uint32][4]uint32{unix.SYS_EXECVE: {}, unix.SYS_EXECVEAT: {}, unix.SYS_SECCOMP: listener} {
		if got := interpret(t, judged, auditArch, nr, args); got != retJudge {
			t.Errorf("call %d: %#x", nr, got)
		}
	}
	if got := interpret(t, Filter(FilterRules{Families: Families[:], Refused: SharedIPC[:]}), auditArch, unix.SYS_SHMAT,
		[4]uint32{}); got != retEPERM {
		t.Errorf("attaching shared memory: %#x", got)
	}
	for _, c := range slices.Concat(changers, makers, openers) {
		for _, bit := range []uint32{0o4000, 0o2000, 0o6000} {
			args := [4]uint32{0, unix.O_CREAT, unix.O_CREAT}
			args[c.arg] = bit | 0o755
			if got := interpret(t, prog, auditArch, c.nr, args); got != retEPERM {
				t.Errorf("a file with %o by call %d: %#x", bit, c.nr, got)
			}
		}
	}
	writes := Filter(FilterRules{Families: Families[:], Modes: true, Writes: true})
	for _, c := range []struct {
		name string
		nr   uint32
		args [4]uint32
		want uint32
	}{
		{"reading", unix.SYS_OPENAT, [4]uint32{0, 0, unix.O_RDONLY | unix.O_DIRECTORY}, retAllow},
		{"writing", unix.SYS_OPENAT, [4]uint32{0, 0, unix.O_WRONLY}, retJudge},
		{"reading and writing", unix.SYS_OPENAT, [4]uint32{0, 0, unix.O_RDWR}, retJudge},
		{"making", unix.SYS_OPENAT, [4]uint32{0, 0, unix.O_CREAT, 0o644}, retJudge},
		{"making a setuid file", unix.SYS_OPENAT, [4]uint32{0, 0, unix.O_CREAT, 0o4755}, retEPERM},
		{"emptying", unix.SYS_OPENAT, [4]uint32{0, 0, unix.O_TRUNC}, retJudge},
		{"without a name", unix.SYS_OPENAT, [4]uint32{0, 0, unix.O_TMPFILE | unix.O_RDWR, 0o644}, retJudge},
		{"openat2", unix.SYS_OPENAT2, [4]uint32{}, retNoSys},
		{"renaming", unix.SYS_RENAMEAT2, [4]uint32{}, retJudge},
		{"removing", unix.SYS_UNLINKAT, [4]uint32{}, retJudge},
		{"a directory", unix.SYS_MKDIRAT, [4]uint32{}, retJudge},
		{"a pipe", unix.SYS_MKNODAT, [4]uint32{0, 0, unix.S_IFIFO | 0o644}, retJudge},
		{"a device", unix.SYS_MKNODAT, [4]uint32{0, 0, unix.S_IFCHR | 0o644}, retEPERM},
		{"a socket", unix.SYS_BIND, [4]uint32{}, retJudge},
		{"a mode", unix.SYS_FCHMOD, [4]uint32{0, 0o755}, retJudge},
		{"a setuid mode", unix.SYS_FCHMOD, [4]uint32{0, 0o4755}, retEPERM},
		{"mount", unix.SYS_MOUNT, [4]uint32{}, retEPERM},
	} {
		if got := interpret(t, writes, auditArch, c.nr, c.args); got != c.want {
			t.Errorf("told of changes, %s: %#x, want %#x", c.name, got, c.want)
		}
	}
	modes := Filter(FilterRules{Families: Families[:], Modes: true})
	for _, c := range changers {
		for mode, want := range map[uint32]uint32{0o755: retAllow, 0o2755: retJudge, 0o4755: retEPERM,
			0o6755: retEPERM} {
			var args [4]uint32
			args[c.arg] = mode
			if got := interpret(t, modes, auditArch, c.nr, args); got != want {
				t.Errorf("with a listener, mode %o by call %d: %#x", mode, c.nr, got)
			}
		}
	}
	for _, nr := range Refused {
		if got := interpret(t, prog, auditArch, nr, [4]uint32{}); got != retEPERM {
			t.Errorf("call %d: %#x", nr, got)
		}
	}
}

// interpret runs a filter as the kernel would.
func interpret(t *testing.T, prog []unix.SockFilter, arch, nr uint32, args [4]uint32) uint32 {
	t.Helper()
	data := map[uint32]uint32{offNumber: nr, offArch: arch, offArg0: args[0], offArg1: args[1], offArg(2): args[2],
		offArg(3): args[3]}
	var a uint32
	for pc := 0; pc < len(prog); pc++ {
		op := prog[pc]
		jump := func(yes bool) {
			if yes {
				pc += int(op.Jt)
			} else {
				pc += int(op.Jf)
			}
		}
		switch op.Code {
		case bpfLoad:
			a = data[op.K]
		case bpfJeq:
			jump(a == op.K)
		case bpfJge:
			jump(a >= op.K)
		case bpfJset:
			jump(a&op.K != 0)
		case bpfAnd:
			a &= op.K
		case bpfRet:
			return op.K
		default:
			t.Fatalf("instruction %#x", op.Code)
		}
	}
	t.Fatal("ran off the end")
	return 0
}
