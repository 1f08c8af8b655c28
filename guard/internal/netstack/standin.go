package netstack

import (
	"encoding/binary"
	"net/netip"
	"sync"
)

// maxStandIns is how many names of a sandbox get an address. Further ones get none (SERVFAIL).
const maxStandIns = 1 << 16

// firstStandIn is the address of the first name; the others follow.
var firstStandIn = binary.BigEndian.Uint32([]byte{198, 18, 1, 0})

// standIns are the addresses of the names that a sandbox has looked up. An address never changes its name.
type standIns struct {
	mu     sync.Mutex
	byName map[string]int
	names  []string
}

// address returns the address of a name, and makes one if it has none. It reports false when all are taken.
func (s *standIns) address(name string) (netip.Addr, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	i, ok := s.byName[name]
	if !ok {
		if i = len(s.names); i == maxStandIns {
			return netip.Addr{}, false
		}
		if s.byName == nil {
			s.byName = map[string]int{}
		}
		s.byName[name], s.names = i, append(s.names, name)
	}
	var b [4]byte
	binary.BigEndian.PutUint32(b[:], firstStandIn+uint32(i))
	return netip.AddrFrom4(b), true
}

// name returns the name of an address, if it was given to one.
func (s *standIns) name(a netip.Addr) (string, bool) {
	if !a.Is4() {
		return "", false
	}
	b := a.As4()
	i := binary.BigEndian.Uint32(b[:]) - firstStandIn // wraps around for lower addresses
	s.mu.Lock()
	defer s.mu.Unlock()
	if i >= uint32(len(s.names)) {
		return "", false
	}
	return s.names[i], true
}
