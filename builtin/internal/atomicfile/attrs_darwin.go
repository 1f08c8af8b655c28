package atomicfile

import "golang.org/x/sys/unix"

var errNoXattr error = unix.ENOATTR
