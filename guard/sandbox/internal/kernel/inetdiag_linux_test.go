package kernel

import (
	"net"
	"net/netip"
	"testing"

	"golang.org/x/sys/unix"
)

// A connection is found by its addresses, from each of its sides, whatever family its socket has.
func TestTCP(t *testing.T) {
	table, err := OpenSocketTable()
	if err != nil {
		t.Skip(err)
	}
	defer table.Close()
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	for _, address := range []string{"127.0.0.1", "::ffff:127.0.0.1"} {
		fd, err := unix.Socket(unix.AF_INET6, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
		to := unix.Sockaddr(&unix.SockaddrInet6{Port: l.Addr().(*net.TCPAddr).Port,
			Addr: netip.MustParseAddr("::ffff:127.0.0.1").As16()})
		if address == "127.0.0.1" && err == nil {
			unix.Close(fd)
			fd, err = unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
			to = &unix.SockaddrInet4{Port: l.Addr().(*net.TCPAddr).Port, Addr: [4]byte{127, 0, 0, 1}}
		}
		if err != nil {
			t.Skip(err)
		}
		defer unix.Close(fd)
		if err := unix.Connect(fd, to); err != nil {
			t.Skip(err)
		}
		c, err := l.Accept()
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		from := netip.MustParseAddrPort(c.RemoteAddr().String())
		var st unix.Stat_t
		if err := unix.Fstat(fd, &st); err != nil {
			t.Fatal(err)
		}
		if inode, err := table.TCP(from, netip.MustParseAddrPort(l.Addr().String())); uint64(inode) != st.Ino ||
			err != nil {
			t.Errorf("%s: socket %d, %v, want %d", address, inode, err, st.Ino)
		}
		if inode, err := table.TCP(netip.AddrPortFrom(from.Addr(), 1), from); inode != 0 || err == nil {
			t.Errorf("%s: socket %d of no connection", address, inode)
		}
	}
}

func TestListeningTCP(t *testing.T) {
	table, err := OpenSocketTable()
	if err != nil {
		t.Skip(err)
	}
	defer table.Close()
	has := func(listener netip.AddrPort) (found bool) {
		if err := table.ListeningTCP(func(a netip.AddrPort, inode uint32) {
			found = found || a == listener && inode != 0
		}); err != nil {
			t.Error(err)
		}
		return found
	}
	for _, network := range []string{"tcp4", "tcp6"} {
		l, err := net.Listen(network, "localhost:0")
		if err != nil {
			t.Log(err)
			continue
		}
		address := l.Addr().(*net.TCPAddr).AddrPort()
		if !has(address) {
			t.Errorf("%s: no program listens on %v", network, address)
		}
		if l.Close(); has(address) {
			t.Errorf("%s: a program listens on %v after it was closed", network, address)
		}
	}
}
