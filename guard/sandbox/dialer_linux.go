package sandbox

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"os"
	"slices"

	"github.com/toolhost/toolhost/guard/sandbox/internal/contract"
	"github.com/toolhost/toolhost/guard/sandbox/internal/kernel"
)

// dial implements dialer: process 1 makes the socket, inside, and hands it out
// connected.
func (n *insideProcess) dial(_ context.Context, port int) (net.Conn, error) {
	f, err := n.socket(contract.Dial, port)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return net.FileConn(f)
}

// listen implements dialer.
func (n *insideProcess) listen(port int) (net.Listener, error) {
	f, err := n.socket(contract.Listen, port)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return net.FileListener(f)
}

// socket has process 1 open a socket at a port.
func (n *insideProcess) socket(k contract.Kind, port int) (*os.File, error) {
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
func (n *insideProcess) descriptor(k contract.Kind, port int) (int, error) {
	r, err := n.request(contract.Request{Kind: k, Port: port})
	if err != nil {
		return -1, err
	}
	if len(r.files) != 1 {
		contract.CloseAll(r.files)
		return -1, contract.ErrMalformed
	}
	return r.files[0], nil
}

// listening implements dialer. Port 0 asks process 1 for the table of sockets. The kernel tells from it what listens
// without a look at all connections, as /proc/net/tcp takes: milliseconds on machines with much memory.
func (n *insideProcess) listening() ([]int, error) {
	fd, err := n.descriptor(contract.Dial, 0)
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
