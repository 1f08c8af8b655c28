package connectgate

import (
	"encoding/binary"
	"net/netip"

	"golang.org/x/sys/unix"

	"github.com/toolhost/toolhost/guard/internal/netstack"
)

// redirected returns the address to connect a socket to instead of an address of the loopback interface, or nil to
// connect to the address itself.
func (k *Connector) redirected(fd int, address []byte) []byte {
	to := loopbackOf(address)
	if !to.IsValid() || !k.outside.Load() || !plainTCP(fd) || !k.leadsOutside(to.Port()) {
		return nil
	}
	list := append([]byte(nil), address...)
	if family(address) == unix.AF_INET {
		host := netstack.Host.As4()
		copy(list[4:8], host[:])
		return list
	}
	if !to.Addr().Is4In6() { // the network has no IPv6
		if unix.SetsockoptInt(fd, unix.IPPROTO_IPV6, unix.IPV6_V6ONLY, 0) != nil {
			return nil
		}
	}
	host := netstack.Host.As16()
	copy(list[8:24], host[:])
	return list
}

// loopbackOf returns the address in a struct sockaddr if it leads to the loopback interface; the unspecified address
// leads there too.
func loopbackOf(address []byte) (to netip.AddrPort) {
	var a netip.Addr
	switch f := family(address); {
	case f == unix.AF_INET && len(address) >= 8:
		a = netip.AddrFrom4([4]byte(address[4:8]))
	case f == unix.AF_INET6 && len(address) >= 24:
		a = netip.AddrFrom16([16]byte(address[8:24]))
	default:
		return to
	}
	if plain := a.Unmap(); !plain.IsLoopback() && !plain.IsUnspecified() {
		return to
	}
	return netip.AddrPortFrom(a, binary.BigEndian.Uint16(address[2:]))
}

// plainTCP reports whether a socket is a TCP socket without an address of its own. A socket with an address reaches
// the loopback interface only.
func plainTCP(fd int) bool {
	if protocol, err := unix.GetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_PROTOCOL); err != nil ||
		protocol != unix.IPPROTO_TCP {
		return false
	}
	name, err := unix.Getsockname(fd)
	switch a := name.(type) {
	case *unix.SockaddrInet4:
		return err == nil && a.Addr == [4]byte{}
	case *unix.SockaddrInet6:
		return err == nil && a.Addr == [16]byte{}
	}
	return false
}

// leadsOutside reports whether no command listens on a port of the loopback interface, so that a connection to it
// goes to the host.
func (k *Connector) leadsOutside(port uint16) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	for table := range k.inside {
		if k.listened[port] {
			break
		}
		if err := table.ListeningTCP(func(a netip.AddrPort, _ uint32) { k.listened[a.Port()] = true }); err != nil {
			return false
		}
	}
	return !k.listened[port]
}
