package kernel

import "golang.org/x/sys/unix"

// auditArch is the only architecture whose system calls commands may use.
const auditArch = unix.AUDIT_ARCH_AARCH64

// What older architectures have in addition.
var (
	oldChangers, oldMakers, oldOpeners []modeCall
	oldExecs, oldChanges               []uint32
)

// foreignArch is the other architecture whose programs run here, and foreignExecs its execve and execveat.
const foreignArch = unix.AUDIT_ARCH_ARM

var foreignExecs = [2]uint32{11, 387}
