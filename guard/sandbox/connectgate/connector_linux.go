package connectgate

import (
	"bytes"
	"encoding/binary"
	"errors"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/toolhost/toolhost/guard/internal/proxy"
	"github.com/toolhost/toolhost/guard/sandbox/internal/behalf"
	"github.com/toolhost/toolhost/guard/sandbox/internal/kernel"
	"github.com/toolhost/toolhost/guard/sandbox/internal/place"
)

const (
	// maxConnecting is how many connections of a sandbox are made at the same time. Connections that wait for the
	// other side do not count, because they hold no resource.
	maxConnecting = 32
	// firstWait is how long an attempt waits for the other side.
	firstWait = 2 * time.Millisecond
	// shortestWait and longestWait bound the pause before the next attempt to
	// connect.
	shortestWait = time.Millisecond
	longestWait  = 100 * time.Millisecond
)

// A Config says which Unix sockets commands reach.
type Config struct {
	// Sockets are sockets of the host that commands may connect to, or directories of such sockets.
	Sockets []string
	// Private are directories of the host that commands see replaced by directories of their own. Commands reach
	// Sockets in them all the same.
	Private []string
	// Hidden are paths below which commands reach none of Sockets.
	Hidden []string
}

// A Connector makes the connections of commands. Their connect(2) waits until the Connector has connected a copy of
// their socket. It connects to a path only if a command listens there or the policy names the path. It connects to
// the file that it judged, even if that file has got another name since.
type Connector struct {
	Config
	allowed []place.Object      // sockets and directories that the policy names
	host    *kernel.SocketTable // of the host's network namespace
	places  chan struct{}
	outside atomic.Bool // addresses outside the loopback interface go to a TUN device
	refused proxy.Refusals

	mu sync.Mutex
	// inside is the listener of the commands in a network namespace, by the socket table of that namespace.
	inside   map[*kernel.SocketTable]*kernel.Listener
	listened map[uint16]bool // ports of TCP on which commands have listened
	// callers are the processes that connected last, by the inodes of their sockets; older are those before them.
	callers, older map[uint32]Caller
	serving        sync.WaitGroup
}

// NewConnector reports an error where connections cannot be made on behalf of others.
func NewConnector(c Config) (*Connector, error) {
	if err := kernel.NotifyWorks(); err != nil {
		return nil, err
	}
	table, err := kernel.OpenSocketTable()
	if err != nil {
		return nil, err
	}
	k := &Connector{
		Config: c, host: table, places: make(chan struct{}, maxConnecting),
		inside: make(map[*kernel.SocketTable]*kernel.Listener), listened: make(map[uint16]bool),
		callers: make(map[uint32]Caller),
	}
	if _, err := table.Has(kernel.SocketFile{}); err != nil {
		table.Close()
		return nil, err
	}
	for _, path := range c.Sockets {
		t, err := place.Locate(path)
		if err != nil {
			t = place.Object{Path: path} // the file may be made later
		}
		k.allowed = append(k.allowed, t)
	}
	return k, nil
}

// Serve makes the connections of the processes under a filter until the last of them has ended; their other calls are
// answered by judges. Serve takes over the filter's listener. table is the socket table of their network namespace.
func (k *Connector) Serve(listener, table int, judges map[int32]kernel.Judge) error {
	l, err := kernel.NewListener(listener)
	if err != nil {
		unix.Close(table)
		return err
	}
	judges[unix.SYS_CONNECT] = k.connect
	t := kernel.NewSocketTable(table)
	k.mu.Lock()
	k.inside[t] = l
	k.mu.Unlock()
	k.serving.Go(func() {
		l.Serve(judges)
		k.mu.Lock()
		delete(k.inside, t)
		k.mu.Unlock()
		t.Close()
	})
	return nil
}

// Close ends all serving. No command may run any more.
func (k *Connector) Close() error {
	if k == nil {
		return nil
	}
	k.mu.Lock()
	for _, l := range k.inside {
		l.Close()
	}
	k.mu.Unlock()
	k.serving.Wait()
	return k.host.Close()
}

// connect is the [kernel.Judge] of connect(2). A connection for which the caller has to wait is tried again and
// again, each time from the beginning, so that no thread and no descriptor is held between the attempts.
func (k *Connector) connect(c *kernel.Call) unix.Errno {
	begun := time.Now()
	for wait := time.Duration(0); ; wait = min(max(2*wait, shortestWait), longestWait) {
		time.Sleep(wait)
		if wait > 0 && !c.Waits() {
			return unix.EINTR // the caller is gone, and does not see this
		}
		if wait > shortestWait && c.Interrupted() {
			return kernel.Restart
		}
		a := k.attempt(c)
		if wait > 0 && a.errno == unix.EISCONN {
			return 0 // connected since the last attempt: protocols other than TCP say so in this way
		}
		if !a.waits || a.limit > 0 && time.Since(begun) >= a.limit {
			return a.errno
		}
	}
}

// outcome is the result of one attempt to connect.
type outcome struct {
	errno unix.Errno
	waits bool          // the other side has not answered yet
	limit time.Duration // how long the caller waits, or 0 for no limit (SO_SNDTIMEO)
}

// attempt judges a call and connects with no more rights than commands have. At most maxConnecting attempts run at
// once.
func (k *Connector) attempt(c *kernel.Call) (o outcome) {
	k.places <- struct{}{}
	defer func() { <-k.places }()
	if err := behalf.WithoutPowers(func() { o = k.try(c) }); err != nil {
		return outcome{errno: behalf.Errno(err)}
	}
	return o
}

// try is attempt without the bound on concurrency.
func (k *Connector) try(c *kernel.Call) outcome {
	fd, err := c.Descriptor(int(int32(c.Args[0])))
	if err != nil {
		return outcome{errno: k.failure(c, err)}
	}
	defer unix.Close(fd)
	domain, err := unix.GetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_DOMAIN)
	if err != nil {
		return outcome{errno: behalf.Errno(err)}
	}
	size := int(int32(c.Args[2]))
	if size < 0 || size > unix.SizeofSockaddrAny {
		return outcome{errno: unix.EINVAL}
	}
	address, err := c.Memory(c.Args[1], size)
	if err != nil {
		return outcome{errno: k.failure(c, err)}
	}
	if !c.Waits() { // else the process that was examined may be another one
		return outcome{errno: unix.EINTR}
	}
	switch domain {
	case unix.AF_UNIX:
		return k.connectUnix(c, fd, address)
	case unix.AF_NETLINK:
		if !plainNetlink(address) {
			return outcome{errno: unix.EPERM}
		}
	case unix.AF_INET, unix.AF_INET6:
		if !k.note(c, fd) {
			return outcome{errno: unix.EINTR}
		}
		if other := k.redirected(fd, address); other != nil {
			address = other
		}
	default:
		return outcome{errno: unix.EAFNOSUPPORT}
	}
	return connectTo(fd, address)
}

// plainNetlink reports whether every user may connect a netlink socket to an address. The kernel would check the
// rights of this process, which owns the network namespace.
func plainNetlink(address []byte) bool {
	const pid, end = 4, unix.SizeofSockaddrNetlink
	if len(address) < end || family(address) != unix.AF_NETLINK {
		return true // the kernel refuses the address, or disconnects
	}
	return !bytes.ContainsFunc(address[pid:end], func(r rune) bool { return r != 0 })
}

func family(address []byte) uint16 {
	if len(address) < 2 {
		return unix.AF_UNSPEC
	}
	return binary.NativeEndian.Uint16(address)
}

// connectUnix judges the address of a Unix socket.
func (k *Connector) connectUnix(c *kernel.Call, fd int, address []byte) outcome {
	const pathAt = 2
	kind, err := unix.GetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_TYPE)
	switch {
	case err != nil:
		return outcome{errno: behalf.Errno(err)}
	case kind != unix.SOCK_STREAM && kind != unix.SOCK_SEQPACKET:
		return outcome{errno: unix.EPERM} // commands cannot make such sockets: it was passed to them
	case len(address) <= pathAt || len(address) > unix.SizeofSockaddrUnix || family(address) != unix.AF_UNIX:
		return outcome{errno: unix.EINVAL}
	case address[pathAt] == 0: // an abstract name, of the network namespace
		return connectTo(fd, address)
	}
	path, _, _ := bytes.Cut(address[pathAt:], []byte{0})
	node, err := k.socket(c, string(path))
	if err != nil {
		return outcome{errno: behalf.Errno(err)}
	}
	defer unix.Close(node)
	name := append([]byte("/proc/self/fd/"+strconv.Itoa(node)), 0)
	return connectTo(fd, append(address[:pathAt:pathAt], name...))
}

// socket opens the file of a socket that a command may connect to by path.
func (k *Connector) socket(c *kernel.Call, path string) (int, error) {
	node, err := behalf.Open(c, path)
	if errors.Is(err, unix.ENOENT) {
		return k.underPrivate(path)
	}
	if err != nil {
		return -1, k.failure(c, err)
	}
	if errno := k.judge(c, node); errno != 0 {
		unix.Close(node)
		return -1, errno
	}
	return node, nil
}

// underPrivate opens a socket of the host that the policy names. Commands cannot see it, because they have a
// directory of their own in the place of the socket's directory.
func (k *Connector) underPrivate(path string) (int, error) {
	if !filepath.IsAbs(path) {
		return -1, unix.ENOENT
	}
	t, err := place.Locate(path)
	switch {
	case err != nil,
		place.WithinAny(t.Path, k.Hidden), !place.WithinAny(t.Path, k.Private),
		!slices.ContainsFunc(k.allowed, func(a place.Object) bool { return place.Within(t.Path, a.Path) }):
		return -1, unix.ENOENT
	}
	node, err := place.OpenPath(t.Path)
	if err != nil {
		return -1, err
	}
	if id, err := place.InodeOf(node); err != nil || id != t.Inode {
		unix.Close(node)
		return -1, unix.ENOENT
	}
	return node, nil
}

// connectTo connects without waiting for the other side. It makes a blocking socket non-blocking for that time; the
// caller's descriptor shares this flag.
func connectTo(fd int, address []byte) outcome {
	flags, err := unix.FcntlInt(uintptr(fd), unix.F_GETFL, 0)
	if err != nil {
		return outcome{errno: behalf.Errno(err)}
	}
	if flags&unix.O_NONBLOCK != 0 {
		return outcome{errno: connectRaw(fd, address)}
	}
	if _, err := unix.FcntlInt(uintptr(fd), unix.F_SETFL, flags|unix.O_NONBLOCK); err != nil {
		return outcome{errno: behalf.Errno(err)}
	}
	a := outcome{errno: connectRaw(fd, address)}
	if a.errno == unix.EINPROGRESS {
		a.errno = connectRaw(fd, address) // on the loopback interface the answer is there by now
	}
	if a.errno == unix.EALREADY && answered(fd) {
		a.errno = connectRaw(fd, address)
	}
	unix.FcntlInt(uintptr(fd), unix.F_SETFL, flags)
	switch a.errno {
	case unix.EALREADY:
		a.errno, a.waits = unix.EINPROGRESS, true // the error of a wait that took too long
	case unix.EINPROGRESS, unix.EAGAIN:
		a.waits = true
	}
	if a.waits {
		if limit, err := unix.GetsockoptTimeval(fd, unix.SOL_SOCKET, unix.SO_SNDTIMEO); err == nil {
			a.limit = time.Duration(limit.Nano())
		}
	}
	return a
}

// answered waits firstWait for the other side, and reports whether it has answered. Most allowed hosts do.
func answered(fd int) bool {
	n, err := unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLOUT}}, int(firstWait.Milliseconds()))
	return n > 0 && err == nil
}

func connectRaw(fd int, address []byte) unix.Errno {
	_, _, errno := unix.Syscall(unix.SYS_CONNECT, uintptr(fd), uintptr(unsafe.Pointer(unsafe.SliceData(address))),
		uintptr(len(address)))
	return errno
}
