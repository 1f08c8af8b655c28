package kernel

import "golang.org/x/sys/unix"

// auditArch is the only architecture whose system calls commands may use.
const auditArch = unix.AUDIT_ARCH_X86_64

// makers and openers of files that newer architectures have in the *at form alone.
var (
	oldChangers = []modeCall{{unix.SYS_CHMOD, 1}}
	oldMakers   = []modeCall{{unix.SYS_CREAT, 1}, {unix.SYS_MKNOD, 1}}
	oldOpeners  = []modeCall{{unix.SYS_OPEN, 2}}
	oldChanges  = []uint32{unix.SYS_RENAME, unix.SYS_LINK, unix.SYS_SYMLINK, unix.SYS_MKDIR, unix.SYS_MKNOD,
		unix.SYS_UNLINK,
		unix.SYS_RMDIR, unix.SYS_CREAT}
)

// oldExecs are execve and execveat of the x32 interface.
var oldExecs = []uint32{x32Bit | 520, x32Bit | 545}

// foreignArch is the other architecture whose programs run here, and foreignExecs its execve and execveat.
const foreignArch = unix.AUDIT_ARCH_I386

var foreignExecs = [2]uint32{11, 358}
