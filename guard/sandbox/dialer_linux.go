package sandbox

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
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
	r, err := n.request(k, func(e *encoder) { e.uint(uint64(port)) })
	if err != nil {
		return nil, fmt.Errorf("sandbox: port %d: %w", port, err)
	}
	if len(r.files) != 1 {
		closeAll(r.files)
		return nil, errMalformed
	}
	return os.NewFile(uintptr(r.files[0]), "port"), nil
}

// listening implements dialer. Port 0 asks process 1 for the list, which comes
// in a memory file.
func (n *namespaces) listening() ([]int, error) {
	r, err := n.request(msgDial, func(e *encoder) { e.uint(0) })
	if err != nil {
		return nil, fmt.Errorf("sandbox: listening ports: %w", err)
	}
	if len(r.files) != 1 {
		closeAll(r.files)
		return nil, errMalformed
	}
	f := os.NewFile(uintptr(r.files[0]), "ports")
	defer f.Close()
	buf := make([]byte, r.n)
	if _, err := f.ReadAt(buf, 0); err != nil && r.n > 0 {
		return nil, fmt.Errorf("sandbox: listening ports: %w", err)
	}
	return listeningPorts(string(buf), n.proxyPort), nil
}

// listeningPorts extracts the ports of sockets in the state LISTEN from tables
// in the form of /proc/net/tcp, except own.
func listeningPorts(tables string, own int) []int {
	const listen = "0A"
	var ports []int
	for line := range strings.Lines(tables) {
		fields := strings.Fields(line)
		if len(fields) < 4 || fields[3] != listen {
			continue
		}
		_, hex, _ := strings.Cut(fields[1], ":")
		if port, err := strconv.ParseUint(hex, 16, 16); err == nil && int(port) != own {
			ports = append(ports, int(port))
		}
	}
	slices.Sort(ports)
	return slices.Compact(ports)
}

// takenPorts returns the TCP ports that programs listen on in the network of this process, on other addresses than 127.0.0.1,
// where publishing finds out by itself.
func takenPorts() map[int]bool {
	const ours = "0100007F"
	tables, err := readPortTables()
	if err != nil {
		return nil // without /proc nothing is contained
	}
	taken := map[int]bool{}
	for line := range strings.Lines(string(tables)) {
		if fields := strings.Fields(line); len(fields) > 1 && !strings.HasPrefix(fields[1], ours+":") {
			for _, port := range listeningPorts(line, 0) {
				taken[port] = true
			}
		}
	}
	return taken
}

// dial answers msgDial.
func (g *initProcess) dial(id uint64, port int) error {
	if port != 0 {
		return g.reply(id, 0, func() (int, error) { return dialLoopback(port) })
	}
	fd, size, err := portTables()
	return g.reply(id, size, func() (int, error) { return fd, err })
}

// reply answers a request with a descriptor.
func (g *initProcess) reply(id uint64, size int, open func() (int, error)) error {
	m := newMessage(msgDone, id)
	fd, err := open()
	m.err(err)
	m.uint(uint64(size))
	if err != nil {
		return send(g.conn, m.buf)
	}
	defer unix.Close(fd)
	return send(g.conn, m.buf, fd)
}

// portTables returns the kernel's tables of TCP sockets in a memory file.
func portTables() (fd, size int, err error) {
	all, err := readPortTables()
	if err != nil {
		return -1, 0, err
	}
	fd, err = memoryFile("ports", all)
	return fd, len(all), err
}

func readPortTables() (all []byte, err error) {
	for _, name := range []string{"/proc/self/net/tcp", "/proc/self/net/tcp6"} {
		text, err := os.ReadFile(name)
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			return nil, err
		}
		all = append(all, text...)
	}
	return all, nil
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
