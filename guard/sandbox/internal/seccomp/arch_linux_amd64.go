package seccomp

import "golang.org/x/sys/unix"

// auditArch is the only architecture whose system calls commands may use.
const auditArch = unix.AUDIT_ARCH_X86_64

// makers and openers of files that newer architectures have in the *at form alone.
var (
	oldMakers  = []modeCall{{unix.SYS_CHMOD, 1}, {unix.SYS_CREAT, 1}, {unix.SYS_MKNOD, 1}}
	oldOpeners = []modeCall{{unix.SYS_OPEN, 2}}
)
