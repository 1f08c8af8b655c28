package namespaces

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// LoopbackUp switches on the loopback interface of a new network namespace.
func LoopbackUp() error {
	s, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("loopback interface: %w", err)
	}
	defer unix.Close(s)
	req, err := unix.NewIfreq("lo")
	if err != nil {
		return err
	}
	req.SetUint16(unix.IFF_UP | unix.IFF_RUNNING)
	if err := unix.IoctlIfreq(s, unix.SIOCSIFFLAGS, req); err != nil {
		return fmt.Errorf("loopback interface: %w", err)
	}
	return nil
}

// ListenLoopback opens a socket at which commands will find the proxy, or a service of the host. The
// host accepts from it: a socket stays in the network namespace it was made in.
func ListenLoopback(port int) (int, error) {
	s, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err == nil {
		err = unix.Bind(s, &unix.SockaddrInet4{Port: port, Addr: [4]byte{127, 0, 0, 1}})
	}
	if err == nil {
		err = unix.Listen(s, unix.SOMAXCONN)
	}
	if err != nil {
		return -1, fmt.Errorf("a listening socket: %w", err)
	}
	return s, nil
}

// DialLoopback connects to a port of the loopback interface, of either family.
// No one listens beyond it, so that the answer comes at once.
func DialLoopback(port int) (int, error) {
	var last error
	for _, a := range []struct {
		family  int
		address unix.Sockaddr
	}{
		{unix.AF_INET, &unix.SockaddrInet4{Port: port, Addr: [4]byte{127, 0, 0, 1}}},
		{unix.AF_INET6, &unix.SockaddrInet6{Port: port, Addr: [16]byte{15: 1}}},
	} {
		s, err := unix.Socket(a.family, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
		if err != nil {
			last = err
			continue
		}
		if last = unix.Connect(s, a.address); last == nil {
			return s, nil
		}
		unix.Close(s)
	}
	return -1, last
}
