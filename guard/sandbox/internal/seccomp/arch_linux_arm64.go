package seccomp

import "golang.org/x/sys/unix"

// auditArch is the only architecture whose system calls commands may use.
const auditArch = unix.AUDIT_ARCH_AARCH64

var oldMakers, oldOpeners []modeCall // it has none
