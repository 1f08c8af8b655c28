package sandbox

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"os"
	"slices"

	"golang.org/x/sys/unix"

	"github.com/toolhost/toolhost/guard/sandbox/internal/kernel"
)

// dial implements dialer: process 1 makes the socket, inside, and hands it out
// connected.
func (n *namespaces) dial(_ context.Context, port int) (net.Conn, error) {
	f, err := n.socket(msgDial, port)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return net.FileConn(f)
}

// listen implements dialer.
func (n *namespaces) listen(port int) (net.Listener, error) {
	f, err := n.socket(msgListen, port)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return net.FileListener(f)
}

// socket has process 1 open a socket at a port.
func (n *namespaces) socket(k kind, port int) (*os.File, error) {
	if port < 1 || port > 65535 {
		return nil, fmt.Errorf("sandbox: %d is not a port", port)
	}
	fd, err := n.descriptor(k, port)
	if err != nil {
		return nil, fmt.Errorf("sandbox: port %d: %w", port, err)
	}
	return os.NewFile(uintptr(fd), "port"), nil
}

// descriptor has process 1 open what it is asked for.
func (n *namespaces) descriptor(k kind, port int) (int, error) {
	r, err := n.request(k, func(e *encoder) { e.uint(uint64(port)) })
	if err != nil {
		return -1, err
	}
	if len(r.files) != 1 {
		closeAll(r.files)
		return -1, errMalformed
	}
	return r.files[0], nil
}

// listening implements dialer. Port 0 asks process 1 for the table of sockets. The kernel tells from it what listens
// without a look at all connections, as /proc/net/tcp takes: milliseconds on machines with much memory.
func (n *namespaces) listening() ([]int, error) {
	fd, err := n.descriptor(msgDial, 0)
	if err != nil {
		return nil, fmt.Errorf("sandbox: listening ports: %w", err)
	}
	table := kernel.NewSocketTable(fd)
	defer table.Close()
	var ports []int
	err = table.ListeningTCP(func(address netip.AddrPort, _ uint32) {
		if port := int(address.Port()); port != n.proxyPort {
			ports = append(ports, port)
		}
	})
	if err != nil {
		return nil, fmt.Errorf("sandbox: listening ports: %w", err)
	}
	slices.Sort(ports)
	return slices.Compact(ports), nil
}

// dial answers msgDial.
func (g *initProcess) dial(id uint64, port int) error {
	if port == 0 {
		return g.reply(id, kernel.DiagSocket)
	}
	return g.reply(id, func() (int, error) { return dialLoopback(port) })
}

// reply answers a request with a descriptor.
func (g *initProcess) reply(id uint64, open func() (int, error)) error {
	m := newMessage(msgDone, id)
	fd, err := open()
	m.err(err)
	m.uint(0)
	if err != nil {
		return send(g.conn, m.buf)
	}
	defer unix.Close(fd)
	return send(g.conn, m.buf, fd)
}

// dialLoopback connects to a port of the loopback interface, of either family.
// No one listens beyond it, so that the answer comes at once.
func dialLoopback(port int) (int, error) {
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
