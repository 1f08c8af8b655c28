// Package listen opens the listener of a server: a TCP address with or without TLS, a Unix socket, or a socket that
// systemd has opened. It refuses addresses on which tokens would cross a network unencrypted, and it limits how many
// connections are open at once.
package listen

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"strings"
	"sync"

	"github.com/coreos/go-systemd/v22/activation"
)

// DefaultAddress is the address that is used if none is configured.
const DefaultAddress = "127.0.0.1:8377"

// unixPrefix marks an address that is the path of a Unix socket.
const unixPrefix = "unix:"

// SocketPath returns the path of the Unix socket in an address, or "" if it is not that of one.
func SocketPath(address string) string {
	path, _ := strings.CutPrefix(address, unixPrefix)
	if path == address {
		return ""
	}
	return path
}

// A Config configures a listener. The zero value listens on [DefaultAddress], or on the socket that systemd has
// opened for this process.
type Config struct {
	// Address is host:port, or unix:PATH. With port 0 the system chooses one. Empty: see [Config].
	Address string
	// CertFile and KeyFile are PEM files with a certificate chain and its key. Both or neither are set. They are read
	// again when they change.
	CertFile, KeyFile string
	// PlainHTTP permits an address without TLS that other machines can reach.
	PlainHTTP bool
	// Hosts are the names by which clients address the server. [Listener.URL] has the first.
	Hosts []string
	// maxConnections limits the open connections. Zero: the constant maxConnections, or half of the descriptors that the
	// process may have open if that is less.
	maxConnections int
	// Log gets refused connections, and certificates that cannot be read. Nil: they are not logged.
	Log *slog.Logger
}

// A Listener accepts connections of clients. Closing it removes its Unix socket, unless that was inherited.
type Listener struct {
	net.Listener
	// Connections is how many connections are open at once.
	Connections int
	// URL is the URL by which a client on this machine, or one that knows the host by its first name, reaches the
	// server: scheme and authority without a path.
	URL string
	// Socket is the path of the Unix socket, or "".
	Socket string
	// Inherited says that systemd has opened the socket, which outlives this process: clients that connect when the
	// process ends wait for the next one.
	Inherited bool

	closing sync.Mutex // when net/http shuts down, two goroutines close the listener
	closers []func() error
}

// Close stops listening. It may be called more than once.
func (l *Listener) Close() error {
	err := l.Listener.Close()
	l.closing.Lock()
	defer l.closing.Unlock()
	for _, c := range l.closers {
		err = errors.Join(err, c())
	}
	l.closers = nil
	return err
}

// Open opens a listener. Its errors say what to change.
func Open(cfg Config) (*Listener, error) {
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	if (cfg.CertFile == "") != (cfg.KeyFile == "") {
		return nil, Usage("TLS needs a certificate and its key: give both --tls-cert and --tls-key")
	}
	l, err := cfg.open()
	if err != nil {
		return nil, err
	}
	if l.Listener, err = cfg.guard(l); err != nil {
		return nil, errors.Join(err, l.Close())
	}
	l.URL = cfg.url(l)
	return l, nil
}

// open opens the socket without limits and TLS, or returns the inherited one.
func (c Config) open() (*Listener, error) {
	inherited, err := inherited()
	if err != nil {
		return nil, err
	}
	switch path, isUnix := strings.CutPrefix(c.Address, unixPrefix); {
	case c.Address == "" && inherited != nil:
		l := &Listener{Listener: inherited, Inherited: true}
		if inherited.Addr().Network() == "unix" {
			l.Socket = inherited.Addr().String()
		}
		return l, nil
	case inherited != nil:
		return nil, errors.Join(fmt.Errorf("systemd has opened %s for this server and --listen names %s: leave one out",
			inherited.Addr(), c.Address), inherited.Close())
	case isUnix:
		return openUnix(path, c.Log)
	}
	address := cmp.Or(c.Address, DefaultAddress)
	if err := CheckAddress(address); err != nil {
		return nil, fmt.Errorf("--listen %s: %w", address, err)
	}
	where, err := net.ResolveTCPAddr("tcp", address)
	if err != nil {
		return nil, fmt.Errorf("--listen %s: %w", address, err)
	}
	if err := c.permit(where); err != nil {
		return nil, err
	}
	l, err := net.ListenTCP("tcp", where)
	if err != nil {
		return nil, fmt.Errorf("--listen %s: %w", address, err)
	}
	return &Listener{Listener: l}, nil
}

// permit returns an error for an address that others can reach without TLS, unless PlainHTTP is set.
func (c Config) permit(where net.Addr) error {
	tcp, ok := where.(*net.TCPAddr)
	if !ok || tcp.IP.IsLoopback() || c.CertFile != "" || c.PlainHTTP {
		return nil
	}
	return Usage("%s can be reached by others, and tokens and files would cross the network in the clear: "+
		"give --tls-cert and --tls-key, listen on a loopback address behind a proxy with TLS, or say --insecure-plain-http", where)
}

// guard adds the limit on connections, and TLS, to a listener.
func (c Config) guard(l *Listener) (net.Listener, error) {
	if err := c.permit(l.Addr()); err != nil {
		return l.Listener, err
	}
	limited := newLimiter(l.Listener, c.maxConnections, c.CertFile == "", c.Log)
	l.Connections = limited.limit
	if c.CertFile == "" {
		return limited, nil
	}
	if l.Socket != "" {
		return l.Listener, Usage("a Unix socket does not leave the machine: leave --tls-cert and --tls-key out")
	}
	return withTLS(limited, c.CertFile, c.KeyFile, c.Log)
}

// url returns the URL that is shown to the user.
func (c Config) url(l *Listener) string {
	scheme := "http://"
	if c.CertFile != "" {
		scheme = "https://"
	}
	tcp, ok := l.Addr().(*net.TCPAddr)
	if !ok {
		return scheme + "localhost"
	}
	host := tcp.IP.String()
	switch {
	case len(c.Hosts) > 0 && !tcp.IP.IsLoopback():
		host = c.Hosts[0]
	case tcp.IP.IsUnspecified():
		host = "localhost"
	}
	return scheme + net.JoinHostPort(host, fmt.Sprint(tcp.Port))
}

// inherited returns the only socket that systemd has opened for this process, or nil. It removes systemd's variables
// for it from the environment, so that no command uses them.
func inherited() (net.Listener, error) {
	files := activation.Files(true)
	if len(files) == 0 {
		return nil, nil
	}
	defer func() {
		for _, f := range files {
			f.Close() // a listener has its own descriptor
		}
	}()
	if len(files) > 1 {
		return nil, fmt.Errorf("systemd has opened %d sockets, one is served: leave one ListenStream= in the socket unit",
			len(files))
	}
	l, err := net.FileListener(files[0])
	if err != nil {
		return nil, fmt.Errorf("the socket that systemd has opened: %w", err)
	}
	if u, ok := l.(*net.UnixListener); ok {
		u.SetUnlinkOnClose(false) // the socket belongs to systemd
	}
	return l, nil
}
