package kernel

import (
	"encoding/binary"
	"fmt"
	"net/netip"
	"unsafe"

	"golang.org/x/sys/unix"
)

// inetRequest is a netlink message with struct inet_diag_req_v2, for one TCP socket.
type inetRequest struct {
	header           unix.NlMsghdr
	family, protocol uint8
	_                [2]uint8 // ext, pad
	states           uint32
	sport, dport     [2]byte
	src, dst         [16]byte
	_                uint32 // the interface
	cookie           [2]uint32
}

// Where struct inet_diag_msg has the port of the socket itself, its address, and its inode, in bytes.
const portAt, addressAt, inodeAt = 4, 8, 68

// ListeningTCP calls f with the address and the inode of each TCP socket that a program listens on.
func (t *SocketTable) ListeningTCP(f func(address netip.AddrPort, inode uint32)) error {
	for _, family := range []uint8{unix.AF_INET, unix.AF_INET6} {
		r := inetRequest{family: family, protocol: unix.IPPROTO_TCP, states: listening}
		if err := t.exchange(&r.header, unsafe.Sizeof(r), unix.NLM_F_DUMP, func(body []byte) {
			if len(body) < inodeAt+4 {
				return
			}
			address := netip.AddrFrom16([16]byte(body[addressAt:]))
			if family == unix.AF_INET {
				address = netip.AddrFrom4([4]byte(body[addressAt:]))
			}
			f(netip.AddrPortFrom(address, binary.BigEndian.Uint16(body[portAt:])),
				binary.NativeEndian.Uint32(body[inodeAt:]))
		}); err != nil {
			return err
		}
	}
	return nil
}

// TCP returns the inode of the TCP socket of a connection, established or not. from is the address of the socket
// itself, to that of the other side. Both are IPv4; a socket of IPv6 that uses such addresses is found, too.
func (t *SocketTable) TCP(from, to netip.AddrPort) (inode uint32, err error) {
	for _, family := range []uint8{unix.AF_INET, unix.AF_INET6} {
		if inode, err = t.tcp(family, from, to); err == nil {
			return inode, nil
		}
	}
	return 0, fmt.Errorf("looking for the socket %s → %s: %w", from, to, err)
}

// tcp is TCP for sockets of one family.
func (t *SocketTable) tcp(family uint8, from, to netip.AddrPort) (inode uint32, err error) {
	r := inetRequest{family: family, protocol: unix.IPPROTO_TCP, states: ^uint32(0),
		cookie: [2]uint32{^uint32(0), ^uint32(0)}}
	binary.BigEndian.PutUint16(r.sport[:], from.Port())
	binary.BigEndian.PutUint16(r.dport[:], to.Port())
	if family == unix.AF_INET {
		copy(r.src[:], from.Addr().AsSlice())
		copy(r.dst[:], to.Addr().AsSlice())
	} else {
		r.src, r.dst = from.Addr().As16(), to.Addr().As16()
	}
	err = t.exchange(&r.header, unsafe.Sizeof(r), 0, func(body []byte) {
		if len(body) >= inodeAt+4 {
			inode = binary.NativeEndian.Uint32(body[inodeAt:])
		}
	})
	if err == nil && inode == 0 {
		err = unix.ENOENT // a connection without a socket file: its program has closed it
	}
	return inode, err
}
