package listen

import (
	"net"

	"golang.org/x/sys/unix"
)

// peerUser returns the user that has connected, as the kernel reports it.
func peerUser(conn *net.UnixConn) (uid uint32, known bool) {
	raw, err := conn.SyscallConn()
	if err != nil {
		return 0, false
	}
	err = raw.Control(func(fd uintptr) {
		if cred, e := unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED); e == nil {
			uid, known = cred.Uid, true
		}
	})
	return uid, known && err == nil
}
