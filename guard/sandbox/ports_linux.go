package sandbox

import (
	"fmt"
	"net/netip"
	"os"
	"slices"

	"github.com/toolhost/toolhost/guard/sandbox/internal/kernel"
)

// hostService is [proxy.Rules].Local: records is the directory of [RecordPort].
func hostService(port int, records string) (open bool, why string) {
	own := false
	_ = hostListening(func(address netip.AddrPort, inode uint32) { // works where a sandbox does
		if int(address.Port()) == port {
			open, own = true, own || holdsFile(fmt.Sprintf("socket:[%d]", inode))
		}
	})
	if own {
		return true, "it is a port of this toolhost, which commands never reach"
	}
	return open, unreached(port, records)
}

// holdsFile reports whether this process has a file open that /proc names so.
func holdsFile(name string) bool {
	const path = "/proc/self/fd"
	dir, err := os.Open(path)
	if err != nil {
		return false
	}
	defer dir.Close()
	names, _ := dir.Readdirnames(-1) // what it has read counts
	return slices.ContainsFunc(names, func(fd string) bool {
		link, err := os.Readlink(path + "/" + fd)
		return err == nil && link == name
	})
}

// hostListening calls f with the address and the inode of each TCP socket that a program listens on in the network of
// this process.
func hostListening(f func(address netip.AddrPort, inode uint32)) error {
	table, err := kernel.OpenSocketTable()
	if err != nil {
		return err
	}
	defer table.Close()
	return table.ListeningTCP(f)
}

// takenPorts returns the TCP ports that programs listen on in the network of this process, on other addresses than
// 127.0.0.1, where publishing finds out by itself.
func takenPorts() map[int]bool {
	ours := netip.AddrFrom4([4]byte{127, 0, 0, 1})
	taken := map[int]bool{}
	_ = hostListening(func(address netip.AddrPort, _ uint32) { // works where a sandbox does
		if address.Addr() != ours {
			taken[int(address.Port())] = true
		}
	})
	return taken
}
