package namespaces

import (
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/toolhost/toolhost/guard/internal/netstack"
	"github.com/toolhost/toolhost/guard/sandbox/internal/contract"
)

const (
	// TUNDevice makes TUN devices.
	TUNDevice = "/dev/net/tun"
	// tunName is the name of the device in the sandbox.
	tunName = "tun0"
)

// OpenTUN makes the network of commands, with routes to everything but the loopback interface.
func OpenTUN() (int, error) {
	fd, err := unix.Open(TUNDevice, unix.O_RDWR|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	if err != nil {
		return -1, &os.PathError{Op: "open", Path: TUNDevice, Err: err}
	}
	if err := setUpTUN(fd); err != nil {
		unix.Close(fd)
		return -1, err
	}
	return fd, nil
}

func setUpTUN(fd int) error {
	s, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("TUN device: %w", err)
	}
	defer unix.Close(s)
	for _, step := range []struct {
		fd, request int
		set         func(*unix.Ifreq) error
	}{
		{fd, unix.TUNSETIFF, func(r *unix.Ifreq) error { r.SetUint16(unix.IFF_TUN | unix.IFF_NO_PI); return nil }},
		{s, unix.SIOCSIFADDR, func(r *unix.Ifreq) error { return r.SetInet4Addr(netstack.Inside.AsSlice()) }},
		{s, unix.SIOCSIFNETMASK, func(r *unix.Ifreq) error { return r.SetInet4Addr([]byte{255, 255, 255, 255}) }},
		{s, unix.SIOCSIFMTU, func(r *unix.Ifreq) error { r.SetUint32(netstack.MTU); return nil }},
		{s, unix.SIOCSIFFLAGS, func(r *unix.Ifreq) error { r.SetUint16(unix.IFF_UP | unix.IFF_RUNNING); return nil }},
	} {
		req, err := unix.NewIfreq(tunName)
		if err == nil {
			err = step.set(req)
		}
		if err == nil {
			err = unix.IoctlIfreq(step.fd, uint(step.request), req)
		}
		if err != nil {
			return fmt.Errorf("TUN device: ioctl %#x: %w", step.request, err)
		}
	}
	// The stack has no IPv6: without an address of the device a connection fails at once. It is no reason not to start.
	_ = os.WriteFile("/proc/sys/net/ipv6/conf/"+tunName+"/disable_ipv6", []byte("1"), 0)
	if err := routeAll(s); err != nil {
		return fmt.Errorf("TUN device: route: %w", err)
	}
	return nil
}

// A route is struct rtentry of the kernel.
type route struct {
	_                    uint64
	dst, gateway, mask   unix.RawSockaddrInet4
	flags                uint16
	_                    int16
	_, _                 uint64
	metric               int16
	device               *byte
	mtu, window, initial uint64
}

// routeAll sends what is not for the loopback interface to the TUN device.
func routeAll(socket int) error {
	device, err := unix.BytePtrFromString(tunName)
	if err != nil {
		return err
	}
	any4 := unix.RawSockaddrInet4{Family: unix.AF_INET}
	r := route{dst: any4, gateway: any4, mask: any4, flags: unix.RTF_UP, device: device}
	if _, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(socket), unix.SIOCADDRT,
		uintptr(unsafe.Pointer(&r))); errno != 0 {
		return errno
	}
	return nil
}

// nameFiles are files that say how names are found, with what they say in a sandbox with a TUN device. content gets
// that of the host's file. Files that this machine does not have are not made.
var nameFiles = []nameFile{
	{"/etc/resolv.conf", func(string) string {
		return "# The resolver of the sandbox.\nnameserver " + netstack.Resolver.String() + "\noptions ndots:0\n"
	}},
	{"/etc/hosts", hostsContent},
	{"/etc/nsswitch.conf", func(host string) string {
		text := "hosts: files dns\n"
		for line := range strings.Lines(host) {
			if database, _, _ := strings.Cut(strings.TrimSpace(line), ":"); strings.TrimSpace(database) != "hosts" {
				text += strings.TrimSuffix(line, "\n") + "\n"
			}
		}
		return text
	}},
}

// hostsContent keeps the lines on the loopback interface, where commands have servers of their own. It adds localhost
// and the name of the machine only if no line has them: a further address of localhost would be tried in the place of
// the host's.
func hostsContent(host string) string {
	text := ""
	named := map[string]bool{}
	for line := range strings.Lines(host) {
		line = strings.TrimSuffix(line, "\n")
		entry, _, _ := strings.Cut(line, "#")
		words := strings.Fields(entry)
		if len(words) == 0 {
			continue
		}
		if a, err := netip.ParseAddr(words[0]); err != nil || !a.IsLoopback() {
			continue
		}
		text += line + "\n"
		for _, name := range words[1:] {
			named[name] = true
		}
	}
	if !named["localhost"] {
		text += "127.0.0.1 localhost\n::1 localhost ip6-localhost ip6-loopback\n"
	}
	if name, err := os.Hostname(); err == nil && name != "" && !strings.ContainsAny(name, " \n#") && !named[name] {
		text += "127.0.1.1 " + name + "\n"
	}
	return text
}

type nameFile struct {
	path    string
	content func(host string) string
}

// NameContents returns what commands read in the place of [nameFiles].
func NameContents() (list []contract.Copy) {
	for _, f := range nameFiles {
		path, err := filepath.EvalSymlinks(f.path)
		if err != nil { // it does not exist, or leads where commands cannot read it either
			continue
		}
		host, _ := os.ReadFile(path) // one that cannot be read says nothing
		list = append(list, contract.Copy{Path: path, Mode: 0o644, Content: f.content(string(host))})
	}
	return list
}
